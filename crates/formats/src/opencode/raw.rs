//! OpenCode's JSON: the members of its records, as ranges of the bytes that contain them.

use std::ops::Range;

use epitome_json::{Cursor, Kind, Malformed, integer};
use epitome_model::{CacheUse, Usage};

type Found = Option<Range<usize>>;

/// A line: what identifies a row, and its JSON.
#[derive(Debug, Default)]
pub struct Row {
    pub table: Found,
    pub id: Found,
    pub message_id: Found,
    /// The id of the session, or of the session of an event.
    pub session: Found,
    pub directory: Found,
    pub title: Found,
    pub version: Found,
    /// `time_created`.
    pub time: Found,
    pub data: Found,
}

/// A row of `message`, or the `info` of an exported one.
#[derive(Debug, Default)]
pub struct Message {
    /// In an export only: a row has it in a column.
    pub id: Found,
    pub role: Found,
    pub parent: Found,
    pub created: Found,
    pub model: Found,
    /// `true` for an assistant's summary; for a user message an object with the changed files.
    pub summary: Found,
    pub finish: Found,
    pub error: Found,
    pub error_name: Found,
    pub usage: Option<Usage>,
    pub cost: Found,
}

/// A row of `part`, or an element of the `parts` of an exported message.
#[derive(Debug, Default)]
pub struct Part {
    pub whole: Range<usize>,
    pub id: Found,
    pub kind: Found,
    pub text: Found,
    pub is_synthetic: bool,
    pub is_ignored: bool,
    pub metadata: Found,
    pub is_openai: bool,
    pub tool: Found,
    pub call: Found,
    pub state: Option<State>,
    pub mime: Found,
    pub url: Found,
    pub tail: Found,
}

/// The `state` of a `tool` part.
#[derive(Debug, Default)]
pub struct State {
    pub status: Found,
    pub input: Found,
    pub output: Found,
    pub error: Found,
    pub title: Found,
    pub metadata: Found,
    /// The members of `metadata`, by their keys.
    pub facts: Vec<(Box<[u8]>, Range<usize>)>,
    pub is_interrupted: bool,
    /// `metadata.output`.
    pub shown: Found,
    pub time: Found,
    /// `time.compacted`.
    pub compacted: Found,
    pub is_compacted: bool,
    pub attachments: Found,
    pub files: Vec<File>,
}

/// An element of `attachments`.
#[derive(Clone, Debug, Default)]
pub struct File {
    pub whole: Range<usize>,
    pub mime: Found,
    pub url: Found,
}

/// The point to which a session was reverted.
#[derive(Debug, Default)]
pub struct Revert {
    pub message: Found,
    pub part: Found,
}

/// Finds the members of a line.
pub fn row(line: &[u8]) -> Result<Row, Malformed> {
    let mut row = Row::default();
    let mut cursor = Cursor::new(line);
    cursor.object(|value, key| {
        match key {
            b"table" => row.table = value.string()?,
            b"id" => row.id = value.string()?,
            b"message_id" => row.message_id = value.string()?,
            b"session" => row.session = value.string()?,
            b"directory" => row.directory = value.string()?,
            b"title" => row.title = value.string()?,
            b"version" => row.version = value.string()?,
            b"time_created" => row.time = Some(value.skip()?),
            b"data" => row.data = Some(value.skip()?),
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    cursor.end()?;
    Ok(row)
}

/// Finds the facts about an exported session.
pub fn info(value: &mut Cursor<'_>) -> Result<Row, Malformed> {
    let mut row = Row::default();
    value.object(|value, key| {
        match key {
            b"id" => row.id = value.string()?,
            b"directory" => row.directory = value.string()?,
            b"title" => row.title = value.string()?,
            b"version" => row.version = value.string()?,
            b"revert" => row.data = Some(value.skip()?),
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(row)
}

/// Finds the parent of a session.
pub fn parent(value: &mut Cursor<'_>) -> Result<Found, Malformed> {
    let mut parent = None;
    value.object(|value, key| {
        let is_parent = key == b"parentID";
        let place = value.string()?;
        if is_parent {
            parent = place;
        }
        Ok(())
    })?;
    Ok(parent)
}

/// An exported message: its position, and those of its parts.
#[derive(Debug, Default)]
pub struct Exported {
    pub info: Found,
    pub parts: Vec<Range<usize>>,
}

/// The position of an export's session info, and its messages.
pub fn export(bytes: &[u8]) -> Result<(Found, Vec<Exported>), Malformed> {
    let (mut info, mut messages) = (None, Vec::new());
    let mut cursor = Cursor::new(bytes);
    cursor.object(|value, key| {
        match key {
            b"info" => info = Some(value.skip()?),
            b"messages" => {
                value.array(|element| {
                    messages.push(exported(element)?);
                    Ok(())
                })?;
            }
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    cursor.end()?;
    Ok((info, messages))
}

fn exported(value: &mut Cursor<'_>) -> Result<Exported, Malformed> {
    let mut message = Exported::default();
    value.object(|value, key| {
        match key {
            b"info" => message.info = Some(value.skip()?),
            b"parts" => {
                value.array(|element| {
                    message.parts.push(element.skip()?);
                    Ok(())
                })?;
            }
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(message)
}

/// Whether bytes begin like an export: with the `info` of a session, which has an id.
pub fn is_export(head: &[u8]) -> bool {
    let mut known = false;
    // The head may end anywhere: what was found so far counts.
    let _ = Cursor::new(head).object(|value, key| {
        if key == b"info" {
            value.object(|value, key| {
                let is_id = key == b"id";
                let place = value.skip()?;
                known |= is_id && head[place].starts_with(b"\"ses");
                Ok(())
            })?;
            return Ok(());
        }
        value.skip().map(drop)
    });
    known
}

/// The JSON of a record: the content of a row, or the record itself in an export.
pub fn data_of(record: &[u8]) -> Range<usize> {
    match row(record) {
        Ok(Row { table: Some(_), data: Some(data), .. }) => data,
        Ok(_) | Err(_) => 0..record.len(),
    }
}

/// Finds the members of a message.
pub fn message(value: &mut Cursor<'_>, bytes: &[u8]) -> Result<Message, Malformed> {
    let mut message = Message::default();
    value.object(|value, key| {
        match key {
            b"id" => message.id = value.string()?,
            b"role" => message.role = value.string()?,
            b"parentID" => message.parent = value.string()?,
            b"modelID" => message.model = value.string()?,
            b"summary" => message.summary = Some(value.skip()?),
            b"finish" => message.finish = value.string()?,
            b"error" => message.error = Some(error(value, &mut message.error_name)?),
            b"tokens" => message.usage = Some(usage(value, bytes)?),
            b"cost" => message.cost = Some(value.skip()?),
            b"time" => {
                value.object(|value, key| {
                    let place = value.skip()?;
                    if key == b"created" {
                        message.created = Some(place);
                    }
                    Ok(())
                })?;
            }
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(message)
}

/// The directory, agent and model of a message.
#[derive(Debug, Default)]
pub struct Circumstances {
    pub agent: Found,
    /// For a user message: an object.
    pub model: Found,
    /// For an assistant message.
    pub model_id: Found,
    pub provider_id: Found,
    pub path: Found,
}

/// Finds the circumstances of a message.
pub fn circumstances(value: &mut Cursor<'_>) -> Result<Circumstances, Malformed> {
    let mut found = Circumstances::default();
    value.object(|value, key| {
        let kind = value.kind();
        let place = value.skip()?;
        match (key, kind) {
            (b"agent", Kind::String) => found.agent = Some(place),
            (b"model", Kind::Object) => found.model = Some(place),
            (b"modelID", Kind::String) => found.model_id = Some(place),
            (b"providerID", Kind::String) => found.provider_id = Some(place),
            (b"path", Kind::Object) => found.path = Some(place),
            _ => {}
        }
        Ok(())
    })?;
    Ok(found)
}

/// Finds the members of a part.
pub fn part(value: &mut Cursor<'_>, bytes: &[u8]) -> Result<Part, Malformed> {
    let mut part = Part::default();
    part.whole = value.object(|value, key| {
        match key {
            b"id" => part.id = value.string()?,
            b"type" => part.kind = value.string()?,
            b"text" => part.text = value.string()?,
            b"synthetic" => part.is_synthetic = value.truth()?,
            b"ignored" => part.is_ignored = value.truth()?,
            b"metadata" => {
                part.metadata = Some(value.object(|value, key| {
                    part.is_openai |= key == b"openai" || key == b"azure";
                    value.skip().map(drop)
                })?);
            }
            b"tool" => part.tool = value.string()?,
            b"callID" => part.call = value.string()?,
            b"state" if value.kind() == Kind::Object => part.state = Some(state(value, bytes)?),
            b"mime" => part.mime = value.string()?,
            b"url" => part.url = value.string()?,
            b"tail_start_id" => part.tail = value.string()?,
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(part)
}

fn state(value: &mut Cursor<'_>, bytes: &[u8]) -> Result<State, Malformed> {
    let mut state = State::default();
    value.object(|value, key| {
        match key {
            b"status" => state.status = value.string()?,
            b"input" => state.input = object(value)?,
            b"output" => state.output = value.string()?,
            b"error" => state.error = value.string()?,
            b"title" => state.title = value.string()?,
            b"metadata" if value.kind() == Kind::Object => {
                state.metadata = Some(facts(value, &mut state)?);
            }
            b"time" if value.kind() == Kind::Object => {
                // If the member occurs twice, the last one counts.
                (state.is_compacted, state.compacted) = (false, None);
                state.time = Some(value.object(|value, key| {
                    let place = value.skip()?;
                    if key == b"compacted" {
                        // Any truthy value counts, as in JavaScript.
                        let said = &bytes[place.clone()];
                        state.is_compacted = !matches!(said, b"0" | b"null" | b"false");
                        state.compacted = Some(place);
                    }
                    Ok(())
                })?);
            }
            b"attachments" => {
                state.attachments = Some(value.array(|element| {
                    state.files.push(file(element)?);
                    Ok(())
                })?);
            }
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(state)
}

fn facts(value: &mut Cursor<'_>, state: &mut State) -> Result<Range<usize>, Malformed> {
    value.object(|value, key| {
        match key {
            b"interrupted" => state.is_interrupted = value.clone().truth()?,
            b"output" => state.shown = value.clone().string()?,
            _ => {}
        }
        state.facts.push((key.into(), value.skip()?));
        Ok(())
    })
}

fn file(value: &mut Cursor<'_>) -> Result<File, Malformed> {
    let mut file = File::default();
    file.whole = value.object(|value, key| {
        match key {
            b"mime" => file.mime = value.string()?,
            b"url" => file.url = value.string()?,
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(file)
}

fn object(value: &mut Cursor<'_>) -> Result<Found, Malformed> {
    let is_object = value.kind() == Kind::Object;
    let place = value.skip()?;
    Ok(is_object.then_some(place))
}

fn error(value: &mut Cursor<'_>, name: &mut Found) -> Result<Range<usize>, Malformed> {
    value.object(|value, key| {
        let is_name = key == b"name";
        let place = value.string()?;
        if is_name {
            *name = place;
        }
        Ok(())
    })
}

fn usage(value: &mut Cursor<'_>, bytes: &[u8]) -> Result<Usage, Malformed> {
    let (mut input, mut output, mut cache) = (0_u64, 0_u64, None);
    value.object(|value, key| {
        match key {
            b"input" => input = input.saturating_add(amount(value, bytes)?),
            b"output" => output = amount(value, bytes)?,
            b"cache" => {
                let told: &mut CacheUse = cache.get_or_insert_default();
                value.object(|value, key| {
                    let tokens = amount(value, bytes)?;
                    input = input.saturating_add(tokens);
                    match key {
                        b"read" => told.read = tokens,
                        b"write" => told.written = tokens,
                        _ => {}
                    }
                    Ok(())
                })?;
            }
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(Usage { input, output, cache, cost: None })
}

fn amount(value: &mut Cursor<'_>, bytes: &[u8]) -> Result<u64, Malformed> {
    let place = value.skip()?;
    Ok(integer(bytes, &place).unwrap_or(0))
}

/// Finds the point to which a session was reverted.
pub fn revert(value: &mut Cursor<'_>) -> Result<Revert, Malformed> {
    let mut revert = Revert::default();
    value.object(|value, key| {
        match key {
            b"messageID" => revert.message = value.string()?,
            b"partID" => revert.part = value.string()?,
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(revert)
}
