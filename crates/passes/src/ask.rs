//! A question to a model and its answer: the state machine of a summary makes questions, and its
//! caller gets the answers.

use std::fmt;

use serde::Serialize;

pub use epitome_model::{StopReason, TokenUsage};

/// One question to a model, which has no tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ask {
    /// The system prompt.
    pub system: String,
    /// The message of the user.
    pub prompt: String,
    /// The most tokens of the answer.
    pub max_tokens: u64,
}

/// The answer of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reply {
    /// Its text.
    pub text: String,
    /// Why it ended.
    pub stopped: StopReason,
    /// What was billed, where the service says so.
    pub used: Option<TokenUsage>,
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoReply {
    /// There is no model to ask.
    Nobody,
    /// The question was longer than the model takes, whatever it was said to take.
    TooLong,
    /// Something went wrong.
    Failed(String),
}

impl fmt::Display for NoReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoReply::Nobody => f.write_str("there is no model to ask"),
            NoReply::TooLong => f.write_str("the question is too long for the model"),
            NoReply::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for NoReply {}
