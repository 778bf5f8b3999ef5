//! Gemini CLI's JSON: the members of records and messages, as ranges of their line.

use std::ops::Range;

use epitome_json::{Cursor, Kind, Malformed};
use epitome_model::{CacheUse, Usage};

type Found = Option<Range<usize>>;

/// A record of the log, or the one object of older versions.
#[derive(Debug, Default)]
pub struct Record {
    /// The members of a message, which a record with an id is.
    pub message: Message,
    pub rewind_to: Found,
    pub set: Option<Set>,
    /// The name of another operation on the log.
    pub operation: Option<Box<str>>,
    pub session: Found,
    pub project: Found,
    pub summary: Found,
    pub messages: Option<Messages>,
}

impl Record {
    /// Whether it describes the session. Gemini CLI tests for other kinds of records first.
    pub fn is_header(&self) -> bool {
        let Record { message, rewind_to, set, session, project, .. } = self;
        let is_other = rewind_to.is_some() || message.id.is_some() || set.is_some();
        !is_other && session.is_some() && project.is_some()
    }
}

/// The members of `$set`.
#[derive(Debug, Default)]
pub struct Set {
    pub summary: Found,
    pub messages: Option<Messages>,
}

/// A list of messages.
#[derive(Debug)]
pub struct Messages {
    pub list: Vec<Message>,
}

/// A message.
#[derive(Debug, Default)]
pub struct Message {
    pub whole: Range<usize>,
    pub id: Found,
    pub kind: Found,
    pub timestamp: Found,
    pub model: Found,
    pub content: Option<Content>,
    pub display: Found,
    pub thoughts: Found,
    pub tokens: Option<Usage>,
    pub calls: Option<Calls>,
}

/// `toolCalls`.
#[derive(Debug)]
pub struct Calls {
    pub whole: Range<usize>,
    pub list: Vec<ToolCall>,
}

/// The content of a message or of a result: a text, a part, or a list of either.
#[derive(Debug)]
pub struct Content {
    pub whole: Range<usize>,
    pub kind: Kind,
    pub parts: Vec<Part>,
}

/// A part of a turn, as in Google's API.
#[derive(Debug, Default)]
pub struct Part {
    pub whole: Range<usize>,
    pub text: Found,
    pub thought: bool,
    pub signature: Found,
    pub call: Option<FunctionCall>,
    pub response: Option<Response>,
    pub data: Found,
    pub media: Found,
    /// Whether it is of another kind.
    pub other: bool,
}

/// `functionCall`.
#[derive(Debug, Default)]
pub struct FunctionCall {
    pub id: Found,
    pub name: Found,
    pub args: Found,
}

/// `functionResponse`.
#[derive(Debug, Default)]
pub struct Response {
    pub id: Found,
    pub name: Found,
    pub body: Found,
    pub output: Found,
    pub error: Found,
    /// Whether the body contains more than one text.
    pub more: bool,
    /// Pictures and the like, next to the body.
    pub parts: Vec<Part>,
    /// A value there that is not a list of parts.
    pub other: Found,
}

/// What Gemini CLI stores of a call in addition to what it sends.
#[derive(Debug, Default)]
pub struct ToolCall {
    pub id: Found,
    pub name: Found,
    pub args: Found,
    pub result: Option<Content>,
    pub display: Found,
    pub description: Found,
}

/// Finds the members of a record.
pub fn record(line: &[u8]) -> Result<Record, Malformed> {
    let mut record = Record::default();
    let mut cursor = Cursor::new(line);
    record.message.whole = cursor.object(|value, key| {
        match key {
            b"$rewindTo" => record.rewind_to = value.string()?,
            b"$set" if value.kind() == Kind::Object => record.set = Some(set(value, line)?),
            [b'$', ..] => {
                let is_known = key == b"$set";
                record.operation = (!is_known).then(|| String::from_utf8_lossy(key).into());
                value.skip()?;
            }
            b"sessionId" => record.session = value.string()?,
            b"projectHash" => record.project = value.string()?,
            b"summary" => record.summary = value.string()?,
            b"messages" => record.messages = messages(value, line)?,
            _ => member(&mut record.message, value, key, line)?,
        }
        Ok(())
    })?;
    cursor.end()?;
    Ok(record)
}

fn set(value: &mut Cursor<'_>, line: &[u8]) -> Result<Set, Malformed> {
    let mut set = Set::default();
    value.object(|value, key| {
        match key {
            b"summary" => set.summary = value.string()?,
            b"messages" => set.messages = messages(value, line)?,
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(set)
}

fn messages(value: &mut Cursor<'_>, line: &[u8]) -> Result<Option<Messages>, Malformed> {
    if value.kind() != Kind::Array {
        value.skip()?;
        return Ok(None);
    }
    let mut list = Vec::new();
    value.array(|element| {
        let mut message = Message::default();
        message.whole = element.object(|value, key| member(&mut message, value, key, line))?;
        list.push(message);
        Ok(())
    })?;
    Ok(Some(Messages { list }))
}

fn member(
    message: &mut Message,
    value: &mut Cursor<'_>,
    key: &[u8],
    line: &[u8],
) -> Result<(), Malformed> {
    match key {
        b"id" => message.id = value.string()?,
        b"type" => message.kind = value.string()?,
        b"timestamp" => message.timestamp = value.string()?,
        b"model" => message.model = value.string()?,
        b"content" => message.content = Some(content(value, line)?),
        b"displayContent" => message.display = Some(value.skip()?),
        b"thoughts" => message.thoughts = Some(value.skip()?),
        b"tokens" => message.tokens = tokens(value, line)?,
        b"toolCalls" => message.calls = calls(value, line)?,
        _ => {
            value.skip()?;
        }
    }
    Ok(())
}

fn tokens(value: &mut Cursor<'_>, line: &[u8]) -> Result<Option<Usage>, Malformed> {
    let is_object = value.kind() == Kind::Object;
    let (mut input, mut output, mut cached) = (0, 0, None);
    value.object(|value, key| {
        let place = value.skip()?;
        let amount = || epitome_json::integer(line, &place).unwrap_or(0);
        match key {
            b"input" => input = amount(),
            b"output" | b"thoughts" => output += amount(),
            b"cached" => cached = epitome_json::integer(line, &place),
            _ => {}
        }
        Ok(())
    })?;
    // Cache writes cost the same as other input.
    let cache = cached.map(|read| CacheUse { read, written: 0 });
    Ok(is_object.then_some(Usage { input, output, cache, cost: None }))
}

fn calls(value: &mut Cursor<'_>, line: &[u8]) -> Result<Option<Calls>, Malformed> {
    let is_array = value.kind() == Kind::Array;
    let mut list = Vec::new();
    let whole = value.array(|element| {
        list.push(tool_call(element, line)?);
        Ok(())
    })?;
    Ok(is_array.then_some(Calls { whole, list }))
}

fn tool_call(value: &mut Cursor<'_>, line: &[u8]) -> Result<ToolCall, Malformed> {
    let mut call = ToolCall::default();
    value.object(|value, key| {
        match key {
            b"id" => call.id = value.string()?,
            b"name" => call.name = value.string()?,
            b"args" => call.args = Some(value.skip()?),
            b"result" => call.result = Some(content(value, line)?),
            b"resultDisplay" => call.display = Some(value.skip()?),
            b"description" => call.description = value.string()?,
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(call)
}

fn content(value: &mut Cursor<'_>, line: &[u8]) -> Result<Content, Malformed> {
    let kind = value.kind();
    let mut parts = Vec::new();
    let whole = match kind {
        Kind::Array => value.array(|element| {
            parts.push(part(element, line)?);
            Ok(())
        })?,
        Kind::Object => {
            let part = part(value, line)?;
            let whole = part.whole.clone();
            parts.push(part);
            whole
        }
        Kind::String | Kind::Other => value.skip()?,
    };
    Ok(Content { whole, kind, parts })
}

/// A part; a string among parts is a part of text.
fn part(value: &mut Cursor<'_>, line: &[u8]) -> Result<Part, Malformed> {
    let mut part = Part::default();
    match value.kind() {
        Kind::Object => {}
        Kind::String => {
            part.whole = value.skip()?;
            part.text = Some(part.whole.clone());
            return Ok(part);
        }
        Kind::Array | Kind::Other => {
            part.whole = value.skip()?;
            part.other = true;
            return Ok(part);
        }
    }
    part.whole = value.object(|value, key| {
        match key {
            b"text" => part.text = value.string()?,
            b"thought" => {
                let place = value.skip()?;
                part.thought = !matches!(&line[place], b"false" | b"null" | b"0" | b"\"\"");
            }
            b"thoughtSignature" => part.signature = value.string()?,
            b"functionCall" if value.kind() == Kind::Object => {
                part.call = Some(function_call(value)?);
            }
            b"functionResponse" if value.kind() == Kind::Object => {
                part.response = Some(response(value)?);
            }
            b"inlineData" => inline_data(&mut part, value)?,
            _ => {
                part.other = true;
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(part)
}

fn inline_data(part: &mut Part, value: &mut Cursor<'_>) -> Result<(), Malformed> {
    value.object(|value, key| {
        match key {
            b"data" => part.data = value.string()?,
            b"mimeType" => part.media = value.string()?,
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// A part next to a result: one that contains no results, however deep a file nests them.
fn sibling_part(value: &mut Cursor<'_>) -> Result<Part, Malformed> {
    let mut part = Part::default();
    if value.kind() != Kind::Object {
        part.whole = value.skip()?;
        part.other = true;
        return Ok(part);
    }
    part.whole = value.object(|value, key| {
        match key {
            b"inlineData" => inline_data(&mut part, value)?,
            _ => {
                part.other = true;
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(part)
}

fn function_call(value: &mut Cursor<'_>) -> Result<FunctionCall, Malformed> {
    let mut call = FunctionCall::default();
    value.object(|value, key| {
        match key {
            b"id" => call.id = value.string()?,
            b"name" => call.name = value.string()?,
            b"args" => call.args = Some(value.skip()?),
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(call)
}

fn response(value: &mut Cursor<'_>) -> Result<Response, Malformed> {
    let mut response = Response::default();
    value.object(|value, key| {
        match key {
            b"id" => response.id = value.string()?,
            b"name" => response.name = value.string()?,
            b"parts" if value.kind() == Kind::Array => {
                (response.parts, response.other) = (Vec::new(), None);
                value.array(|element| {
                    response.parts.push(sibling_part(element)?);
                    Ok(())
                })?;
            }
            b"parts" => response.other = Some(value.skip()?),
            b"response" => {
                (response.output, response.error) = (None, None);
                let mut members = 0;
                response.body = Some(value.object(|value, key| {
                    members += 1;
                    match key {
                        b"output" => response.output = value.string()?,
                        b"error" => response.error = value.string()?,
                        _ => {
                            value.skip()?;
                        }
                    }
                    Ok(())
                })?);
                response.more = members != 1;
            }
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(response)
}
