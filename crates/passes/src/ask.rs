//! A question to a model, and its answer. A summary is a state machine that makes questions; the
//! caller sends the questions and passes the answers in.

use std::fmt;

use serde::Serialize;

pub use epitome_model::{StopReason, TokenUsage};

/// One question to a model. The model gets no tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ask {
    /// The system prompt.
    pub system: String,
    /// The message of the user.
    pub prompt: String,
    /// Maximum number of tokens in the answer.
    pub max_tokens: u64,
}

/// The answer of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reply {
    /// The text of the answer.
    pub text: String,
    /// Why the model stopped.
    pub stopped: StopReason,
    /// The billed tokens, if the service reports them.
    pub used: Option<TokenUsage>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoReply {
    /// No model is configured.
    #[serde(rename = "nobody")]
    NoModel,
    /// The model refused the question as too long, although the question fits the context window
    /// that is known for the model.
    TooLong,
    /// The request failed; the text is the reason.
    Failed(String),
}

impl fmt::Display for NoReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoReply::NoModel => f.write_str("there is no model to ask"),
            NoReply::TooLong => f.write_str("the question is too long for the model"),
            NoReply::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for NoReply {}
