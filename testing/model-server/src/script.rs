//! The script of the model, step by step.

use serde_json::Value;

/// A script for the model: each request that offers tools gets the next step of its conversation as
/// the answer; after the last step, the text `That is all.`
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// The steps of the main conversation, in order.
    pub steps: Vec<Step>,
    /// Conversations of sub-agents, identified by a mark in their first user message.
    pub tracks: Vec<Track>,
    /// The text that answers requests without tools, which agents send for titles and summaries.
    /// `None`: a fixed text.
    pub canned: Option<String>,
    /// A whole step that answers requests without tools; it has precedence over `canned`.
    pub aside: Option<Step>,
}

/// The steps of one sub-agent's conversation.
#[derive(Debug, Clone)]
pub struct Track {
    /// A text that only the first user message of this conversation contains.
    pub mark: String,
    /// The steps of this conversation, in order.
    pub steps: Vec<Step>,
}

/// One answer of the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// The reasoning before the text. Anthropic and Responses send it with a signature; for
    /// Anthropic and Gemini it is left out unless the request asks for thinking.
    pub thinking: Option<String>,
    /// The text of the answer.
    pub text: Option<String>,
    /// The tool calls of the answer; several are parallel calls.
    pub calls: Vec<ToolCall>,
    /// Why the answer ends.
    pub ending: Ending,
}

/// Why an answer without calls ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ending {
    /// The model has finished its answer.
    #[default]
    Done,
    /// The request's limit of output tokens was reached.
    Length,
    /// The model or the service refused to answer.
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

    /// The script of one conversation that a JSON list describes: each step has a `text`, a list of
    /// `calls` (`name` and `input`), or both. `None` if the JSON is no such list.
    ///
    /// ```
    /// use model_server::{Script, Step};
    /// let script = Script::from_json(&serde_json::json!([{ "text": "Hello." }]));
    /// assert_eq!(script.map(|script| script.steps), Some(vec![Step::text("Hello.")]));
    /// assert!(Script::from_json(&serde_json::json!(["Hello."])).is_none());
    /// ```
    pub fn from_json(steps: &Value) -> Option<Self> {
        let steps = steps.as_array()?.iter().map(Step::from_json);
        steps.collect::<Option<Vec<_>>>().map(Self::new)
    }
}

impl Step {
    /// A step with only a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    fn from_json(step: &Value) -> Option<Self> {
        let text = step.as_object()?.get("text").and_then(Value::as_str).map(str::to_owned);
        let calls = step["calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        let calls = calls.iter().map(ToolCall::from_json).collect::<Option<Vec<_>>>()?;
        Some(Self { text, calls, ..Self::default() })
    }

    /// Sets the reason for the end of the answer.
    #[must_use]
    pub fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }
}

impl ToolCall {
    fn from_json(call: &Value) -> Option<Self> {
        Some(Self { name: call["name"].as_str()?.to_owned(), input: call["input"].clone() })
    }
}
