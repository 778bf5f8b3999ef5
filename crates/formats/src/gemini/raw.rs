//! Gemini CLI's JSON: the members of records and messages, as ranges of their line.

use std::ops::Range;

use epitome_json::{Cursor, Kind, MalformedJson};
use epitome_model::{CacheUse, RecordedUsage};

use crate::fields::{Found, List, fields};

fields! {
    /// A record of the log, or in older versions the object that is the whole session.
    pub struct Record {
        rewind_to: b"$rewindTo" => text,
        set: b"$set" => object<Set>,
        session: b"sessionId" => text,
        project: b"projectHash" => text,
        summary: b"summary" => text,
        messages: b"messages" => list<Message>,
    }
    else record_member {
        /// The members of a message. The record is a message if it has an id.
        message: Message,
        /// The last key of the record that begins with `$` and is not declared above: an unknown
        /// operation on the log.
        operation: Option<Box<str>>,
    }

    /// The members of `$set`.
    pub struct Set {
        summary: b"summary" => text,
        messages: b"messages" => list<Message>,
    }

    /// A message.
    pub struct Message {
        id: b"id" => text,
        kind: b"type" => text,
        timestamp: b"timestamp" => text,
        model: b"model" => text,
        content: b"content" => by<Option<Content>>(content),
        display: b"displayContent" => any,
        thoughts: b"thoughts" => any,
        tokens: b"tokens" => object<Tokens>,
        calls: b"toolCalls" => list<ToolCall>,
    }

    /// The `tokens` of a message.
    pub struct Tokens {
        input: b"input" => number,
        output: b"output" => number,
        thoughts: b"thoughts" => number,
        cached: b"cached" => number,
    }

    /// An element of `toolCalls`: a call with its result, and with what Gemini CLI displays of it.
    pub struct ToolCall {
        id: b"id" => text,
        name: b"name" => text,
        args: b"args" => any,
        result: b"result" => by<Option<Content>>(content),
        display: b"resultDisplay" => any,
        description: b"description" => text,
    }

    /// A part of a turn, as in Google's API.
    pub struct Part {
        text: b"text" => text,
        thought: b"thought" => by<bool>(is_true),
        signature: b"thoughtSignature" => text,
        call: b"functionCall" => object<FunctionCall>,
        response: b"functionResponse" => object<Response>,
        inline: b"inlineData" => inside<InlineData>,
    }
    else other_member {
        /// Whether the part is of a kind that is not read.
        other: bool,
    }

    /// The `inlineData` of a part.
    pub struct InlineData {
        data: b"data" => text,
        media: b"mimeType" => text,
    }

    /// The `functionCall` of a part.
    pub struct FunctionCall {
        id: b"id" => text,
        name: b"name" => text,
        args: b"args" => any,
    }

    /// The `functionResponse` of a part.
    pub struct Response {
        id: b"id" => text,
        name: b"name" => text,
        body: b"response" => value<Body>,
        /// Pictures and other parts next to the body.
        parts: b"parts" => by<List<Part>>(siblings),
    }

    /// The `response` of a `functionResponse`.
    pub struct Body {}
    else body_member {
        output: Found,
        error: Found,
        /// The number of members of the response.
        members: usize,
    }
}

/// The content of a message or of a result: a text, a part, or a list of either.
#[derive(Clone, Debug)]
pub struct Content {
    pub whole: Range<usize>,
    pub kind: Kind,
    pub parts: Vec<Part>,
}

impl Record {
    /// Whether the record describes the session, and is of no other kind: Gemini CLI tests for the
    /// other kinds first.
    pub fn is_header(&self) -> bool {
        let Record { message, rewind_to, set, session, project, .. } = self;
        let is_other = rewind_to.is_some() || message.id.is_some() || set.is_some();
        !is_other && session.is_some() && project.is_some()
    }
}

impl Tokens {
    /// The tokens of a request.
    pub fn usage(&self) -> RecordedUsage {
        let output = self.output.unwrap_or(0).saturating_add(self.thoughts.unwrap_or(0));
        // Gemini CLI does not report writes to the cache: it counts them as other input, which
        // costs the same.
        let cache = self.cached.map(|read| CacheUse { read, written: 0 });
        RecordedUsage { input: self.input.unwrap_or(0), output, cache, cost: None }
    }
}

fn record_member(
    record: &mut Record,
    key: &[u8],
    value: &mut Cursor<'_>,
) -> Result<(), MalformedJson> {
    if key.starts_with(b"$") {
        record.operation = Some(String::from_utf8_lossy(key).into());
        return value.skip().map(drop);
    }
    record.message.member(key, value)
}

fn content(value: &mut Cursor<'_>) -> Result<Option<Content>, MalformedJson> {
    let kind = value.kind();
    let mut parts = List::default();
    let whole = match kind {
        Kind::Object => {
            parts.items.push(Part::read(value)?);
            parts.items[0].whole.clone()
        }
        Kind::Array => {
            parts.read(value, part)?;
            parts.whole.unwrap_or_default()
        }
        Kind::String | Kind::Other => value.skip()?,
    };
    Ok(Some(Content { whole, kind, parts: parts.items }))
}

/// Reads an element of a content. A string is read as a part with this text.
fn part(value: &mut Cursor<'_>) -> Result<Part, MalformedJson> {
    let kind = value.kind();
    let mut part = Part::read(value)?;
    part.other |= matches!(kind, Kind::Array | Kind::Other);
    if kind == Kind::String {
        part.text = Some(part.whole.clone());
    }
    Ok(part)
}

fn other_member(part: &mut Part, _: &[u8], value: &mut Cursor<'_>) -> Result<(), MalformedJson> {
    part.other = true;
    value.skip().map(drop)
}

/// Reads the parts next to a result. Results that are nested in these parts are ignored.
fn siblings(value: &mut Cursor<'_>) -> Result<List<Part>, MalformedJson> {
    let mut parts = List::default();
    parts.read(value, |value| {
        let mut part = Part { other: value.kind() != Kind::Object, ..Part::default() };
        part.whole = value.object(|value, key| match key {
            b"inlineData" => part.inline.add(value),
            _ => other_member(&mut part, key, value),
        })?;
        Ok(part)
    })?;
    Ok(parts)
}

fn body_member(body: &mut Body, key: &[u8], value: &mut Cursor<'_>) -> Result<(), MalformedJson> {
    body.members += 1;
    match key {
        b"output" => body.output = value.string()?,
        b"error" => body.error = value.string()?,
        _ => return value.skip().map(drop),
    }
    Ok(())
}

fn is_true(value: &mut Cursor<'_>) -> Result<bool, MalformedJson> {
    Ok(!matches!(value.raw()?, b"false" | b"null" | b"0" | b"\"\""))
}
