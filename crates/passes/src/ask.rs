//! What a model is asked, and what it says: the machine of a summary asks, floor 4 answers.

use epitome_model::Tokens;
use serde::{Deserialize, Serialize};

/// One question to a model, which has no tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ask {
    /// Who it is and what it is to do.
    pub system: String,
    /// What it is asked.
    pub prompt: String,
    /// Tokens that the answer may have.
    pub max_tokens: u64,
}

/// What it said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reply {
    /// Its words.
    pub text: String,
    /// Why it ended.
    pub stopped: Stopped,
    /// What was billed, where the service says so.
    pub used: Option<Used>,
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stopped {
    /// It was done.
    End,
    /// It reached the limit: the answer is cut off.
    Length,
    /// It called a tool, though it has none.
    Call,
    /// It, or the service, declined to answer.
    Refused,
    /// For a reason that the service names and nobody here knows.
    Other(String),
}

/// Tokens that one call was billed for. Each stands in one field only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Read, neither from a cache nor into one.
    pub input: Tokens,
    /// Read from a cache.
    pub cached: Tokens,
    /// Written into a cache.
    pub cache_written: Tokens,
    /// Written, reasoning included.
    pub output: Tokens,
}

impl std::ops::Add for Used {
    type Output = Used;

    fn add(self, other: Used) -> Used {
        Used {
            input: self.input + other.input,
            cached: self.cached + other.cached,
            cache_written: self.cache_written + other.cache_written,
            output: self.output + other.output,
        }
    }
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum NoReply {
    /// There is nobody to ask.
    #[error("there is no model to ask")]
    Nobody,
    /// The question was longer than the model takes, whatever it was said to take.
    #[error("the question is too long for the model")]
    TooLong,
    /// Something went wrong.
    #[error("{0}")]
    Failed(String),
}
