//! A question to a model and its answer. A summary is a state machine that makes questions; its
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
    /// The billed tokens, if the service reports them.
    pub used: Option<TokenUsage>,
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoReply {
    /// No model is configured.
    Nobody,
    /// The question was longer than the model accepts, even though it fits the window that is
    /// known.
    TooLong,
    /// The request failed, for this reason.
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
