//! What Copilot CLI spells: the members of an event, as ranges of its line.
//!
//! Names are those of `session-events.schema.json`, from which the public repository
//! `github/copilot-sdk` generates its types.

use std::ops::Range;

use crate::json::{Cursor, Kind, Malformed};

type Found = Option<Range<usize>>;

/// An event.
#[derive(Debug, Default)]
pub struct Event {
    pub kind: Found,
    pub id: Found,
    pub parent: Found,
    pub timestamp: Found,
    /// The sub-agent that it is of, if it is of one.
    pub agent: Found,
    pub data: Option<Data>,
}

/// What an event carries. Each kind of event has some of these.
#[derive(Debug, Default)]
pub struct Data {
    pub session: Found,
    pub version: Found,
    pub cwd: Found,
    pub title: Found,
    pub content: Found,
    /// What is sent in the place of `content`.
    pub transformed: Found,
    pub model: Found,
    pub message: Found,
    pub reasoning: Found,
    /// The reasoning as the provider signed or sealed it.
    pub sealed: Found,
    pub requests: Vec<Request>,
    pub call: Found,
    pub parent_call: Found,
    pub failed: bool,
    pub result: Found,
    pub error: Found,
    pub summary: Found,
    /// Bulky members that nobody sends, by name.
    pub copies: Vec<(&'static str, Range<usize>)>,
}

/// An element of `toolRequests`.
#[derive(Debug, Default)]
pub struct Request {
    pub id: Found,
    pub name: Found,
    pub arguments: Found,
}

/// Finds the members of an event.
pub fn event(line: &[u8]) -> Result<Event, Malformed> {
    let mut event = Event::default();
    let mut cursor = Cursor::new(line);
    cursor.object(|value, key| {
        match key {
            b"type" => event.kind = value.string()?,
            b"id" => event.id = value.string()?,
            b"parentId" => event.parent = value.string()?,
            b"timestamp" => event.timestamp = value.string()?,
            b"agentId" => event.agent = value.string()?,
            b"data" if value.kind() == Kind::Object => event.data = Some(data(value, line)?),
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    cursor.end()?;
    Ok(event)
}

fn data(value: &mut Cursor<'_>, line: &[u8]) -> Result<Data, Malformed> {
    let mut data = Data::default();
    value.object(|value, key| {
        match key {
            b"sessionId" => data.session = value.string()?,
            b"copilotVersion" => data.version = value.string()?,
            b"context" => {
                value.object(|value, key| {
                    let place = value.string()?;
                    if key == b"cwd" {
                        data.cwd = place;
                    }
                    Ok(())
                })?;
            }
            b"title" => data.title = value.string()?,
            b"content" => data.content = value.string()?,
            b"transformedContent" => data.transformed = value.string()?,
            b"model" => data.model = value.string()?,
            b"messageId" => data.message = value.string()?,
            b"reasoningText" => data.reasoning = value.string()?,
            b"reasoningOpaque" => data.sealed = value.string()?.or(data.sealed.take()),
            b"encryptedContent" => data.sealed = data.sealed.take().or(value.string()?),
            b"toolRequests" => requests(value, &mut data.requests)?,
            b"toolCallId" => data.call = value.string()?,
            b"parentToolCallId" => data.parent_call = value.string()?,
            b"success" => {
                let place = value.skip()?;
                data.failed = &line[place] == b"false";
            }
            b"result" => result(value, &mut data)?,
            b"error" => error(value, &mut data)?,
            b"summaryContent" => data.summary = value.string()?,
            b"arguments" => data.copies.push(("arguments", value.skip()?)),
            b"input" => data.copies.push(("input", value.skip()?)),
            b"output" => data.copies.push(("output", value.skip()?)),
            b"toolTelemetry" => data.copies.push(("toolTelemetry", value.skip()?)),
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(data)
}

fn requests(value: &mut Cursor<'_>, into: &mut Vec<Request>) -> Result<(), Malformed> {
    value.array(|element| {
        let mut request = Request::default();
        element.object(|value, key| {
            match key {
                b"toolCallId" => request.id = value.string()?,
                b"name" => request.name = value.string()?,
                b"arguments" => request.arguments = Some(value.skip()?),
                _ => {
                    value.skip()?;
                }
            }
            Ok(())
        })?;
        into.push(request);
        Ok(())
    })?;
    Ok(())
}

fn result(value: &mut Cursor<'_>, data: &mut Data) -> Result<(), Malformed> {
    value.object(|value, key| {
        match key {
            b"content" => data.result = value.string()?,
            b"detailedContent" => data.copies.push(("detailedContent", value.skip()?)),
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(())
}

fn error(value: &mut Cursor<'_>, data: &mut Data) -> Result<(), Malformed> {
    if value.kind() == Kind::String {
        data.error = value.string()?;
        return Ok(());
    }
    value.object(|value, key| {
        let place = value.string()?;
        if key == b"message" {
            data.error = place;
        }
        Ok(())
    })?;
    Ok(())
}
