//! Messages in the form that models receive: in chats of the CLI, and in transcripts.

use epitome_json::Value;
use epitome_model::{Block, Call, Output, Part, Role, Span, Thinking};

use super::tools;

/// Calls without a result so far. In transcripts, calls have no ids, and few have results.
#[derive(Debug, Default)]
pub struct Calls {
    open: Vec<(Box<str>, bool)>,
    made: u64,
}

impl Calls {
    /// Adds a call, and returns its id: `id`, or a new one if that is missing or empty. `asks` is
    /// whether the user answers the call.
    pub fn begin(&mut self, id: Option<Box<str>>, asks: bool) -> Box<str> {
        let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| {
            self.made += 1;
            format!("call-{}", self.made).into()
        });
        self.open.push((id.clone(), asks));
        id
    }

    /// Removes the call to which a result belongs. Returns the call's id, and whether the user
    /// answered the call. `id` is the id in the result; a result without an id belongs to the first
    /// call that has no result yet. If there is no such call, returns the id in the result, or an
    /// empty one, and false.
    pub fn end(&mut self, id: Option<Box<str>>) -> (Box<str>, bool) {
        let id = id.filter(|id| !id.is_empty());
        let at = match &id {
            Some(id) => self.open.iter().position(|(open, _)| open == id),
            None => (!self.open.is_empty()).then_some(0),
        };
        match at {
            Some(at) => self.open.remove(at),
            None => (id.unwrap_or_default(), false),
        }
    }
}

/// The content of a message: a text, or a list of blocks.
pub fn content(content: &Value<'_>, calls: &mut Calls) -> Vec<Block> {
    if content.is_text() {
        return text(content).into_iter().collect();
    }
    content.list().iter().filter_map(|block| read(block, calls)).collect()
}

/// The role with this name; `None` if no role has it.
pub fn role(name: &str) -> Option<Role> {
    match name {
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        "tool" => Some(Role::Tool),
        "system" => Some(Role::System),
        _ => None,
    }
}

/// Reads a block; a block of an unknown kind becomes opaque. `None` if the block has no content
/// that is sent, or lacks a required member. Kinds have two names, such as `tool-call` in chats and
/// `tool_use` in transcripts.
fn read(block: &Value<'_>, calls: &mut Calls) -> Option<Block> {
    match block.text_of("type").as_deref() {
        Some("text") => text(block.get("text")?),
        Some("reasoning" | "thinking") => {
            let words = block.any(&["text", "thinking"]);
            let thinking_text = words.filter(|words| !is_blank(words));
            let sealed = block.any(&["signature"]).is_some_and(|it| !is_blank(it));
            (thinking_text.is_some() || sealed).then(|| reasoning(block, thinking_text))
        }
        Some("redacted-reasoning") => Some(reasoning(block, None)),
        Some("tool-call" | "tool_use") => {
            let name: Box<str> = block.any(&["toolName", "name"])?.text()?.into();
            let arguments = block.any(&["args", "input"]);
            let id = id(block, &["toolCallId", "id"]);
            Some(Block::Call(call(block, (id, name), arguments, calls)))
        }
        Some("tool-result" | "tool_result") => {
            let (call, from_user) = calls.end(id(block, &["toolCallId", "tool_use_id"]));
            let thinking_text = block.any(&["result", "content", "output"]);
            let error = ["isError", "is_error"]
                .iter()
                .any(|key| block.get(key).is_some_and(Value::is_true));
            Some(Block::Output(Output {
                call,
                error,
                parts: thinking_text.map(parts).unwrap_or_default(),
                whole: thinking_text
                    .map_or_else(Span::default, |thinking_text| thinking_text.span()),
                from_user,
                ..Output::default()
            }))
        }
        Some(_) | None => Some(Block::Opaque(block.span())),
    }
}

fn id(block: &Value<'_>, keys: &[&str]) -> Option<Box<str>> {
    block.any(keys).and_then(Value::text).map(Box::from)
}

/// Makes a call and adds it to `calls`. The arguments are an object, or a string that contains an
/// object.
pub fn call(
    around: &Value<'_>,
    (id, name): (Option<Box<str>>, Box<str>),
    arguments: Option<&Value<'_>>,
    calls: &mut Calls,
) -> Call {
    let classified = tools::classify(&name, arguments);
    let id = calls.begin(id, classified.kind == epitome_model::ToolKind::Ask);
    let Span { start, .. } = around.span();
    let arguments = arguments.map_or(Span { start, end: start }, Value::span);
    classified.into_call(id, name, arguments)
}

/// A block of reasoning. `whole` is the value of the block, `words` its text, if there is one.
pub fn reasoning(whole: &Value<'_>, words: Option<&Value<'_>>) -> Block {
    Block::Thinking(Thinking {
        text: words.filter(|words| words.is_text()).map(|words| words.to_source_text()),
        whole: whole.span(),
        removable: false,
    })
}

/// The block of a text; `None` if `words` is not a string, or is blank.
pub fn text(words: &Value<'_>) -> Option<Block> {
    (!is_blank(words)).then(|| Block::Text(words.to_source_text()))
}

/// Whether a value is not a string, or is blank.
pub fn is_blank(value: &Value<'_>) -> bool {
    value.text().is_none_or(|text| text.trim().is_empty())
}

fn parts(said: &Value<'_>) -> Vec<Part> {
    if said.is_text() {
        return vec![Part::Text(said.to_source_text())];
    }
    if !said.is_list() {
        return vec![Part::Opaque(said.span())];
    }
    let parts = said.list().iter().map(|part| match part.get("text") {
        Some(text) if part.is("type", "text") && text.is_text() => {
            Part::Text(text.to_source_text())
        }
        Some(_) | None => Part::Opaque(part.span()),
    });
    parts.collect()
}
