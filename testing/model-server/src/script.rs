//! The script of the model, step by step.

use serde_json::Value;

/// A script for the model: each request that offers tools takes the next step.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// The steps of the main conversation, in order.
    pub steps: Vec<Step>,
    /// Conversations of sub-agents, identified by a mark in their first user message.
    pub tracks: Vec<Track>,
    /// The answer to requests without tools, which agents send for titles and summaries.
    pub canned: Option<String>,
    /// The same as a whole step, which has precedence over `canned`.
    pub aside: Option<Step>,
}

/// The steps of one sub-agent's conversation.
#[derive(Debug, Clone)]
pub struct Track {
    /// A text that only the first user message of this conversation contains.
    pub mark: String,
    /// Its steps, in order.
    pub steps: Vec<Step>,
}

/// One answer of the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// Reasoning; sent with a signature, and only if the request has thinking enabled.
    pub thinking: Option<String>,
    /// Its text.
    pub text: Option<String>,
    /// Its tool calls; several are parallel calls.
    pub calls: Vec<ToolCall>,
    /// Why it ends.
    pub ending: Ending,
}

/// Why an answer ends, unless it ends with calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ending {
    /// The model is done.
    #[default]
    Done,
    /// The limit of the request was reached.
    Length,
    /// The model or the service declined.
    Refused,
}

/// A call with the tool's name and arguments, exactly as the agent expects them.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The tool's name.
    pub name: String,
    /// The arguments: a JSON object, or the text for a tool that takes only a text.
    pub input: Value,
}

impl Script {
    /// A script of one conversation.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect(), ..Self::default() }
    }
}

impl Step {
    /// A step with only a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// The step with another reason for its end.
    #[must_use]
    pub fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }
}
