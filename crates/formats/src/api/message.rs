//! Parsing one message of an API, as a whole or not at all: a message of another API is an error,
//! even where the keys that this API knows look right.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use crate::document::{Document, Value};

/// Keys under which some wire, or a library around one, puts what is said, called or answered. Any
/// other key that is not known stands beside what is said, and is left alone.
const SAYING: [&str; 40] = [
    "action",
    "args",
    "arguments",
    "attachments",
    "audio",
    "call_id",
    "code",
    "content",
    "contents",
    "encrypted_content",
    "experimental_attachments",
    "functionCall",
    "functionResponse",
    "function_call",
    "function_response",
    "images",
    "input",
    "message",
    "messages",
    "operation",
    "output",
    "parts",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "refusal",
    "response",
    "result",
    "summary",
    "system",
    "text",
    "thinking",
    "toolCallId",
    "toolCalls",
    "toolInvocations",
    "tool_call_id",
    "tool_calls",
    "tool_results",
    "tool_use_id",
    "tool_uses",
];

/// Why a message was not understood: half a sentence that begins with the place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotUnderstood(String);

impl fmt::Display for NotUnderstood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotUnderstood {}

/// Parses a message: the text of a JSON object, an element of the list in a body. Returns it in the
/// form that the reader of the API takes, which differs where the reader has no place for a value:
/// that value is text then.
///
/// # Errors
///
/// [`NotUnderstood`], with the reason, if any part of the message is not known.
pub type MessageParser = for<'m> fn(&'m str) -> Result<Cow<'m, str>, NotUnderstood>;

/// The result of checking one part of a message.
pub type Checked = Result<(), NotUnderstood>;

/// That something is not understood.
pub fn no<T>(what: impl fmt::Display) -> Result<T, NotUnderstood> {
    Err(NotUnderstood(what.to_string()))
}

/// Values of a message that are read as something else.
#[derive(Default)]
pub struct Instead(Vec<(Range<usize>, String)>);

impl Instead {
    /// Reads `with` in the place of a value.
    pub fn of(&mut self, value: &Value<'_>, with: String) {
        self.0.push((value.range().clone(), with));
    }

    /// Reads one more member of an object that is not empty.
    pub fn member(&mut self, object: &Value<'_>, key: &str, value: &str) {
        let end = object.range().end - 1;
        self.0.push((end..end, format!(",\"{key}\":{value}")));
    }
}

/// Parses a message with the checks of `each`.
pub fn parse(
    message: &str,
    each: fn(&Value<'_>, &mut Instead) -> Checked,
) -> Result<Cow<'_, str>, NotUnderstood> {
    let document = Document::parse(message.as_bytes())
        .or_else(|bad| no(format_args!("no JSON: {} at byte {}", bad.what, bad.offset)))?;
    if !document.root.is_object() {
        return no("no object");
    }
    let mut instead = Instead::default();
    each(&document.root, &mut instead)?;
    let Instead(mut places) = instead;
    if places.is_empty() {
        return Ok(Cow::Borrowed(message));
    }
    places.sort_by_key(|(range, _)| range.start);
    let (mut text, mut at) = (String::with_capacity(message.len()), 0);
    for (range, with) in places {
        text.push_str(&message[at..range.start]);
        text.push_str(&with);
        at = range.end;
    }
    text.push_str(&message[at..]);
    Ok(Cow::Owned(text))
}

/// Whoever speaks is one of these.
pub fn role(message: &Value<'_>, known: &[&'static str]) -> Result<&'static str, NotUnderstood> {
    let Some(role) = message.get("role") else { return no("no `role`") };
    let word = role.text().unwrap_or_default();
    match known.iter().find(|known| **known == word) {
        Some(known) => Ok(known),
        None => no(format_args!("the role {}", shown(role))),
    }
}

/// What a value says stands under these keys, each once, and under no other.
pub fn own(value: &Value<'_>, own: &[&str]) -> Checked {
    let mut seen = HashSet::new();
    if let Some((key, _)) = value.members().iter().find(|(key, _)| !seen.insert(key)) {
        return no(format_args!("`{}` twice", epitome_model::short(key, 40)));
    }
    let foreign = value.members().iter().find(|(key, member)| {
        SAYING.contains(&&**key) && !own.contains(&&**key) && !is_nothing(member)
    });
    match foreign {
        Some((key, _)) => no(format_args!("`{key}`")),
        None => Ok(()),
    }
}

/// A member is a text.
pub fn text(value: &Value<'_>, key: &str) -> Checked {
    match value.get(key) {
        Some(text) if text.is_text() => Ok(()),
        Some(_) => no(format_args!("a `{key}` that is no text")),
        None => no(format_args!("no `{key}`")),
    }
}

/// A member is an object.
pub fn object<'v, 'd>(value: &'v Value<'d>, key: &str) -> Result<&'v Value<'d>, NotUnderstood> {
    match value.get(key) {
        Some(object) if object.is_object() => Ok(object),
        Some(_) => no(format_args!("a `{key}` that is no object")),
        None => no(format_args!("no `{key}`")),
    }
}

/// A member is a text, or a list of objects that are understood.
pub fn words(value: &Value<'_>, key: &str, each: impl FnMut(&Value<'_>) -> Checked) -> Checked {
    match value.get(key) {
        Some(content) if content.is_text() => Ok(()),
        Some(content) if content.is_list() => list(content, key, each),
        Some(content) => no(format_args!("a `{key}` that is {}", shown(content))),
        None => no(format_args!("no `{key}`")),
    }
}

/// The elements of a list are objects that are understood.
pub fn list(list: &Value<'_>, key: &str, mut each: impl FnMut(&Value<'_>) -> Checked) -> Checked {
    for (idx, element) in list.list().iter().enumerate() {
        let understood = match element.is_object() {
            true => each(element),
            false => no(shown(element)),
        };
        understood.or_else(|NotUnderstood(why)| no(format_args!("{why} in `{key}.{idx}`")))?;
    }
    Ok(())
}

/// Something of a kind that is not known.
pub fn kind<T>(value: &Value<'_>) -> Result<T, NotUnderstood> {
    match value.get("type") {
        Some(kind) => no(format_args!("the type {}", shown(kind))),
        None => no("no `type`"),
    }
}

/// Whether a value says nothing: `null`, or empty.
pub fn is_nothing(value: &Value<'_>) -> bool {
    let raw = value.raw();
    value.is_null()
        || raw == b"\"\""
        || value.is_list() && value.list().is_empty()
        || value.is_object() && value.members().is_empty()
}

/// A value, as an error shows it.
fn shown(value: &Value<'_>) -> String {
    if value.is_object() {
        return "an object".into();
    }
    if value.is_list() {
        return "a list".into();
    }
    format!("`{}`", epitome_model::short(&String::from_utf8_lossy(value.raw()), 40))
}
