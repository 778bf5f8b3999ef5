//! What a model is asked, and what it says: the machine of a summary asks, floor 4 answers.

use serde::Serialize;

pub use epitome_model::{StopReason, TokenUsage};

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
    pub stopped: StopReason,
    /// What was billed, where the service says so.
    pub used: Option<TokenUsage>,
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
