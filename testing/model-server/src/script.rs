//! What the model says, step by step.

use serde_json::Value;

/// A play for the model: each request that offers tools takes the next step.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// The steps of the main conversation, in order.
    pub steps: Vec<Step>,
    /// Conversations of sub-agents, told apart by a mark in their first user message.
    pub tracks: Vec<Track>,
    /// What requests without tools are told: agents ask so for titles and summaries.
    pub canned: Option<String>,
    /// The same as a whole step, which comes before `canned`.
    pub aside: Option<Step>,
}

/// The steps of one sub-agent's conversation.
#[derive(Debug, Clone)]
pub struct Track {
    /// A text that only this conversation's first user message holds.
    pub mark: String,
    /// Its steps, in order.
    pub steps: Vec<Step>,
}

/// One answer of the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// Reasoning, sent signed, and only where the request switched thinking on.
    pub thinking: Option<String>,
    /// What it says.
    pub text: Option<String>,
    /// The tools it calls; several are one parallel response.
    pub calls: Vec<ToolCall>,
    /// Why it ends.
    pub ending: Ending,
}

/// Why an answer ends, beside that it may end with calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ending {
    /// The model is done.
    #[default]
    Done,
    /// It reached the limit of the request.
    Length,
    /// It, or the service, declined.
    Refused,
}

/// A call with the tool's own name and arguments, exactly as the agent expects them.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The tool's name.
    pub name: String,
    /// The arguments: a JSON object, or the text of a tool that takes nothing else.
    pub input: Value,
}

impl Script {
    /// A script of one conversation.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect(), ..Self::default() }
    }
}

impl Step {
    /// A step that only says something.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// The same, ended for another reason.
    #[must_use]
    pub fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }
}
