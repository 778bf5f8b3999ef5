//! Reading trajectories: records of finished runs, with messages as in OpenAI's Chat Completions,
//! and commands in the text of a response.

use std::collections::VecDeque;

use epitome_json::Value;
use epitome_model::{Block, Call, Output, Part, Span, Text, ToolKind};

/// The calls of the last response that have no result yet: their ids, in order. An output that
/// names no call belongs to the first of these calls.
#[derive(Default)]
pub struct Calls(VecDeque<Box<str>>);

impl Calls {
    /// Begins a response: forgets the calls of the response before it, adds its `tool_calls`, and
    /// returns them as blocks.
    pub fn begin(&mut self, message: &Value<'_>) -> Vec<Block> {
        self.0.clear();
        let calls = message.list_of("tool_calls").iter();
        calls
            .map(|value| self.call(value).map_or(Block::Opaque(value.span()), Block::Call))
            .collect()
    }

    fn call(&mut self, value: &Value<'_>) -> Option<Call> {
        let id = value.text_of("id")?;
        let function = value.get("function")?;
        let name = function.text_of("name")?;
        let arguments = function.get("arguments")?;
        let call = epitome_api::call(&id, &name, arguments);
        self.0.push_back(call.id.clone());
        Some(call)
    }

    /// Adds a command of a response as a call without a result. Returns the block of the call.
    pub fn command(&mut self, id: Box<str>, command: &str, arguments: Span) -> Block {
        self.0.push_back(id.clone());
        Block::Call(Call {
            id,
            name: "bash".into(),
            kind: ToolKind::Shell,
            target: Some(Text::Owned(command.trim().into())),
            part: None,
            fields: Vec::new(),
            arguments,
        })
    }

    /// Removes the first call that has no result yet, and returns its id; `None` if there is no
    /// such call.
    pub fn next(&mut self) -> Option<Box<str>> {
        self.0.pop_front()
    }

    /// Removes the call with this id, which has a result.
    pub fn end(&mut self, id: &str) {
        self.0.retain(|call| **call != *id);
    }
}

/// An empty span at the beginning of a value.
pub fn nothing(value: &Value<'_>) -> Span {
    let start = value.span().start;
    Span { start, end: start }
}

/// The blocks of a content: a string, or a list of parts with texts.
pub fn content(content: &Value<'_>) -> Vec<Block> {
    if content.is_text() {
        let is_empty = content.range().len() <= 2;
        return if is_empty { Vec::new() } else { vec![Block::Text(content.to_source_text())] };
    }
    let parts = content.list().iter().map(|part| match part.string("text") {
        Some(text) => Block::Text(text.to_source_text()),
        None => Block::Opaque(part.span()),
    });
    parts.collect()
}

/// The blocks of a content that may be missing.
pub fn blocks(content: Option<&Value<'_>>) -> Vec<Block> {
    content.map(self::content).unwrap_or_default()
}

/// The result of a call.
pub fn result(content: Option<&Value<'_>>, id: &str, error: bool) -> Block {
    let whole = content.map(Value::span).unwrap_or_default();
    let parts = blocks(content).into_iter().map(|block| match block {
        Block::Text(text) => Part::Text(text),
        _ => Part::Opaque(whole),
    });
    let parts = parts.collect();
    Block::Output(Output { call: id.into(), error, parts, whole, ..Output::default() })
}
