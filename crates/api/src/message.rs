//! Reads one message in the format of an API. A message that this API does not define is refused,
//! even if it has keys that this API knows.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use epitome_json::{Document, Value};
use epitome_model::Entry;

use crate::{Api, Body};

/// Keys under which some API or client library keeps content, calls or results. A message is
/// refused if it has a non-empty value under one of these keys where its own API has no such key.
/// Other unknown keys are taken for metadata, and are ignored.
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

/// Why a message was not understood, in a few words. If the fault is in an element of a list, the
/// text ends with the position of that element: ``no `id` in `content.0` ``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotUnderstood(String);

impl fmt::Display for NotUnderstood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotUnderstood {}

/// The result of checking one part of a message.
pub type CheckResult = Result<(), NotUnderstood>;

/// Fails with a reason.
pub fn reject<T>(what: impl fmt::Display) -> Result<T, NotUnderstood> {
    Err(NotUnderstood(what.to_string()))
}

/// The replacements that are made in a message before it is read: the range of each value, and the
/// JSON that replaces it.
#[derive(Default)]
pub struct Replacements(Vec<(Range<usize>, String)>);

impl Replacements {
    /// Replaces a value.
    pub fn replace(&mut self, value: &Value<'_>, with: String) {
        self.0.push((value.range().clone(), with));
    }

    /// Adds a member to an object that is not empty.
    pub fn member(&mut self, object: &Value<'_>, key: &str, value: &str) {
        let end = object.range().end - 1;
        self.0.push((end..end, format!(",\"{key}\":{value}")));
    }

    /// The message after the replacements.
    fn replace_in(mut self, message: &str) -> String {
        self.0.sort_by_key(|(range, _)| range.start);
        let mut text = String::with_capacity(message.len());
        let mut end = 0;
        for (range, with) in self.0 {
            text.push_str(&message[end..range.start]);
            text.push_str(&with);
            end = range.end;
        }
        text.push_str(&message[end..]);
        text
    }
}

/// One message that was read.
#[derive(Debug)]
pub struct Message<'m> {
    /// The JSON that the spans of `entries` point into. It is the given message, or, if the message
    /// has parts that this crate reads only in the form of text (a refusal, the object that a
    /// Gemini function returned), a copy in which these parts are texts.
    pub source: Cow<'m, [u8]>,
    /// The entries of the message in the order in which they are sent, each with a flag: whether it
    /// is a part of the system prompt, which is sent before the conversation.
    pub entries: Vec<(bool, Entry)>,
}

impl Api {
    /// Reads one message: a JSON object, as in the list of messages of a body.
    ///
    /// ```
    /// let api = epitome_api::find_api("anthropic").expect("an API");
    /// let message = api.message(r#"{"role":"user","content":"Hi"}"#).expect("a message");
    /// assert_eq!(message.entries.len(), 1);
    /// let refused = api.message(r#"{"role":"tool","content":"Hi"}"#).map(|_| ());
    /// assert_eq!(refused.map_err(|why| why.to_string()), Err(r#"the role `"tool"`"#.to_owned()));
    /// ```
    ///
    /// # Errors
    ///
    /// [`NotUnderstood`], with the reason, if the message is not valid for this API, or if a part
    /// of it is unknown.
    pub fn message<'m>(&self, message: &'m str) -> Result<Message<'m>, NotUnderstood> {
        let document = parse(message)?;
        if !document.root.is_object() {
            return reject("no object");
        }
        let mut instead = Replacements::default();
        (self.check_message)(&document.root, &mut instead)?;
        if instead.0.is_empty() {
            let entries = self.entries(&document);
            return Ok(Message { source: Cow::Borrowed(message.as_bytes()), entries });
        }
        let text = instead.replace_in(message);
        let entries = self.entries(&parse(&text)?);
        Ok(Message { source: Cow::Owned(text.into_bytes()), entries })
    }

    fn entries(&self, document: &Document<'_>) -> Vec<(bool, Entry)> {
        let mut body = Body::new(document);
        (self.read_messages)(&mut body, std::slice::from_ref(&document.root));
        body.into_entries()
    }
}

fn parse(text: &str) -> Result<Document<'_>, NotUnderstood> {
    Document::parse(text.as_bytes())
        .or_else(|bad| reject(format_args!("no JSON: {} at byte {}", bad.what, bad.offset)))
}

/// Checks that the role is one of `known`, and returns it.
pub fn role(message: &Value<'_>, known: &[&'static str]) -> Result<&'static str, NotUnderstood> {
    let Some(role) = message.get("role") else { return reject("no `role`") };
    let word = role.text().unwrap_or_default();
    match known.iter().find(|known| **known == word) {
        Some(known) => Ok(known),
        None => reject(format_args!("the role {}", abbreviate(role))),
    }
}

/// Checks that no key of an object repeats, and that the object has no content under a key of
/// `SAYING` that is not in `has_only`.
pub fn has_only(value: &Value<'_>, has_only: &[&str]) -> CheckResult {
    let mut seen = HashSet::new();
    if let Some((key, _)) = value.members().iter().find(|(key, _)| !seen.insert(key)) {
        return reject(format_args!("`{}` twice", epitome_model::short(key, 40)));
    }
    let foreign = value.members().iter().find(|(key, member)| {
        SAYING.contains(&&**key) && !has_only.contains(&&**key) && !is_nothing(member)
    });
    match foreign {
        Some((key, _)) => reject(format_args!("`{key}`")),
        None => Ok(()),
    }
}

/// Checks that a member is a string.
pub fn text(value: &Value<'_>, key: &str) -> CheckResult {
    match value.get(key) {
        Some(text) if text.is_text() => Ok(()),
        Some(_) => reject(format_args!("a `{key}` that is not a string")),
        None => reject(format_args!("no `{key}`")),
    }
}

/// Checks that a member is an object, and returns it.
pub fn object<'v, 'd>(value: &'v Value<'d>, key: &str) -> Result<&'v Value<'d>, NotUnderstood> {
    match value.get(key) {
        Some(object) if object.is_object() => Ok(object),
        Some(_) => reject(format_args!("a `{key}` that is not an object")),
        None => reject(format_args!("no `{key}`")),
    }
}

/// Checks that a member is a string, or a list of objects that `each` accepts.
pub fn check_text(
    value: &Value<'_>,
    key: &str,
    each: impl FnMut(&Value<'_>) -> CheckResult,
) -> CheckResult {
    match value.get(key) {
        Some(content) if content.is_text() => Ok(()),
        Some(content) if content.is_list() => list(content, key, each),
        Some(content) => reject(format_args!("a `{key}` that is {}", abbreviate(content))),
        None => reject(format_args!("no `{key}`")),
    }
}

/// Checks that the elements of a list are objects that `each` accepts.
pub fn list(
    list: &Value<'_>,
    key: &str,
    mut each: impl FnMut(&Value<'_>) -> CheckResult,
) -> CheckResult {
    for (idx, element) in list.list().iter().enumerate() {
        let understood =
            if element.is_object() { each(element) } else { reject(abbreviate(element)) };
        understood.or_else(|NotUnderstood(why)| reject(format_args!("{why} in `{key}.{idx}`")))?;
    }
    Ok(())
}

/// An error that says that the `type` of a value is unknown or missing.
pub fn kind<T>(value: &Value<'_>) -> Result<T, NotUnderstood> {
    match value.get("type") {
        Some(kind) => reject(format_args!("the type {}", abbreviate(kind))),
        None => reject("no `type`"),
    }
}

/// Whether a value has no content: `null`, or empty.
pub fn is_nothing(value: &Value<'_>) -> bool {
    let raw = value.raw();
    value.is_null()
        || raw == b"\"\""
        || value.is_list() && value.list().is_empty()
        || value.is_object() && value.members().is_empty()
}

/// A value in a few characters, for the text of an error.
fn abbreviate(value: &Value<'_>) -> String {
    if value.is_object() {
        return "an object".into();
    }
    if value.is_list() {
        return "a list".into();
    }
    format!("`{}`", epitome_model::short(&String::from_utf8_lossy(value.raw()), 40))
}
