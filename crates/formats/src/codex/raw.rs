//! Codex's JSON: the members of a record, as ranges of its line.

use std::ops::Range;

use epitome_json::{Cursor, Kind, Malformed};
use epitome_model::{CacheUse, Usage};

type Found = Option<Range<usize>>;

/// A record. Its payload is parsed once its kind is known.
#[derive(Debug, Default)]
pub struct Record {
    pub timestamp: Found,
    pub ordinal: Found,
    pub kind: Found,
    pub payload: Found,
}

/// The session's data in a `session_meta`.
#[derive(Debug, Default)]
pub struct Meta {
    pub id: Found,
    pub cwd: Found,
    pub version: Found,
}

/// An item of the Responses API.
#[derive(Debug, Default)]
pub struct Item {
    pub whole: Range<usize>,
    pub kind: Found,
    pub role: Found,
    pub call: Found,
    pub name: Found,
    pub arguments: Found,
    pub input: Found,
    pub action: Found,
    pub output: Found,
    pub tools: Found,
    pub parts: Vec<Part>,
    pub has_content: bool,
    pub has_summary: bool,
    pub summary: Found,
    /// The kind of each part of a message: `user.text`, `environments.environment_context`.
    pub part_kinds: Vec<Range<usize>>,
}

/// An element of a `content` or of an `output`.
#[derive(Debug, Default)]
pub struct Part {
    pub whole: Range<usize>,
    pub kind: Found,
    pub text: Found,
    pub image: Found,
}

/// A `compacted`.
#[derive(Debug, Default)]
pub struct Compacted {
    pub message: Found,
    pub history: Option<Vec<Item>>,
}

/// An `event_msg`, with its item if it has one.
#[derive(Debug, Default)]
pub struct Event {
    pub kind: Found,
    pub item: Found,
    pub id: Found,
    pub status: Found,
    pub exit_code: Found,
    pub success: Found,
    pub rolled_back: Option<u64>,
    /// Texts that repeat the output of a command, by name.
    pub printed: Vec<(&'static str, Range<usize>)>,
    pub changes: Found,
    pub structured: Found,
    pub usage: Option<Usage>,
    pub last_usage: Found,
}

/// Members that repeat the output of a command.
const PRINTED: [&str; 4] = ["aggregated_output", "formatted_output", "stderr", "stdout"];

/// Finds the members of a record.
pub fn record(line: &[u8]) -> Result<Record, Malformed> {
    let mut record = Record::default();
    let mut cursor = Cursor::new(line);
    cursor.object(|value, key| {
        match key {
            b"timestamp" => record.timestamp = value.string()?,
            b"ordinal" => record.ordinal = Some(value.skip()?),
            b"type" => record.kind = value.string()?,
            b"payload" => record.payload = Some(value.skip()?),
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    cursor.end()?;
    Ok(record)
}

/// Finds the members of a `session_meta`.
pub fn meta(line: &[u8], payload: &Range<usize>) -> Result<Meta, Malformed> {
    let mut meta = Meta::default();
    Cursor::at(line, payload).object(|value, key| {
        match key {
            b"id" => meta.id = value.string()?,
            b"cwd" => meta.cwd = value.string()?,
            b"cli_version" => meta.version = value.string()?,
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(meta)
}

/// The references to other rollouts in a `session_meta`.
#[derive(Debug, Default)]
pub struct Origin {
    pub id: Found,
    pub session: Found,
    pub is_sub_agent: bool,
    pub parent: Found,
    pub base: Found,
    pub base_bytes: Option<u64>,
}

/// Finds the references to other rollouts in a `session_meta`.
pub fn origin(line: &[u8], payload: &Range<usize>) -> Result<Origin, Malformed> {
    let mut origin = Origin::default();
    Cursor::at(line, payload).object(|value, key| {
        match key {
            b"id" => origin.id = value.string()?,
            b"session_id" => origin.session = value.string()?,
            b"parent_thread_id" => origin.parent = value.string()?,
            // `{"subagent": {"thread_spawn": {…}}}`, or `{"subagent": "review"}`.
            b"source" => {
                value.object(|value, key| {
                    match key {
                        b"subagent" => {
                            origin.is_sub_agent = true;
                            spawned(value, &mut origin)?;
                        }
                        _ => {
                            value.skip()?;
                        }
                    }
                    Ok(())
                })?;
            }
            b"history_base" => base(value, line, &mut origin)?,
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(origin)
}

fn spawned(value: &mut Cursor<'_>, origin: &mut Origin) -> Result<(), Malformed> {
    value.object(|value, key| match key {
        b"thread_spawn" => {
            value.object(|value, key| {
                match key {
                    b"parent_thread_id" => origin.parent = value.string()?.or(origin.parent.take()),
                    _ => {
                        value.skip()?;
                    }
                }
                Ok(())
            })?;
            Ok(())
        }
        _ => {
            value.skip()?;
            Ok(())
        }
    })?;
    Ok(())
}

fn base(value: &mut Cursor<'_>, line: &[u8], origin: &mut Origin) -> Result<(), Malformed> {
    value.object(|value, key| {
        match key {
            b"thread_id" => origin.base = value.string()?,
            b"end_byte_offset" => {
                let place = value.skip()?;
                origin.base_bytes = epitome_json::integer(line, &place);
            }
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// The `model` of a `turn_context`.
pub fn model(line: &[u8], payload: &Range<usize>) -> Result<Found, Malformed> {
    let mut model = None;
    Cursor::at(line, payload).object(|value, key| {
        match key {
            b"model" => model = value.string()?,
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(model)
}

/// Whether a `world_state` is full, not a change.
pub fn is_full(line: &[u8], payload: &Range<usize>) -> bool {
    let mut full = false;
    let whole = Cursor::at(line, payload).object(|value, key| {
        match key {
            b"full" => full = value.truth()?,
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    });
    whole.is_ok() && full
}

/// The `usage` of a `token_usage_record`.
pub fn usage(line: &[u8], payload: &Range<usize>) -> Result<Option<Usage>, Malformed> {
    let mut found = None;
    Cursor::at(line, payload).object(|value, key| {
        match key {
            b"usage" => found = tokens(value, line)?,
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// Finds the members of a `compacted`.
pub fn compacted(line: &[u8], payload: &Range<usize>) -> Result<Compacted, Malformed> {
    let mut compacted = Compacted::default();
    Cursor::at(line, payload).object(|value, key| {
        match key {
            b"message" => compacted.message = value.string()?,
            b"replacement_history" if value.kind() == Kind::Array => {
                let mut items = Vec::new();
                value.array(|element| {
                    items.push(item_at(element)?);
                    Ok(())
                })?;
                compacted.history = Some(items);
            }
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(compacted)
}

/// Finds the members of an item.
pub fn item(line: &[u8], payload: &Range<usize>) -> Result<Item, Malformed> {
    item_at(&mut Cursor::at(line, payload))
}

fn item_at(value: &mut Cursor<'_>) -> Result<Item, Malformed> {
    let mut item = Item::default();
    item.whole = value.object(|value, key| {
        match key {
            b"type" => item.kind = value.string()?,
            b"role" => item.role = value.string()?,
            b"call_id" => item.call = value.string()?,
            b"name" => item.name = value.string()?,
            b"arguments" => item.arguments = Some(value.skip()?),
            b"input" => item.input = value.string()?,
            b"action" => item.action = Some(value.skip()?),
            b"tools" => item.tools = Some(value.skip()?),
            b"output" => item.output = Some(parts(value, &mut item.parts)?),
            b"content" => {
                item.has_content = value.kind() == Kind::Array;
                parts(value, &mut item.parts)?;
            }
            b"summary" => {
                item.has_summary = value.kind() == Kind::Array;
                item.summary = first_text(value)?;
            }
            b"internal_chat_message_metadata_passthrough" => {
                kinds(value, &mut item.part_kinds)?;
            }
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(item)
}

fn parts(value: &mut Cursor<'_>, into: &mut Vec<Part>) -> Result<Range<usize>, Malformed> {
    value.array(|element| {
        let mut part = Part::default();
        part.whole = element.object(|value, key| {
            match key {
                b"type" => part.kind = value.string()?,
                b"text" => part.text = value.string()?,
                b"image_url" => part.image = value.string()?,
                _ => {
                    value.skip()?;
                }
            }
            Ok(())
        })?;
        into.push(part);
        Ok(())
    })
}

fn first_text(value: &mut Cursor<'_>) -> Result<Found, Malformed> {
    let mut all = Vec::new();
    parts(value, &mut all)?;
    Ok(all.into_iter().find_map(|part| part.text))
}

fn kinds(value: &mut Cursor<'_>, into: &mut Vec<Range<usize>>) -> Result<(), Malformed> {
    value.object(|value, key| {
        if key == b"content_item_kinds" {
            value.array(|element| {
                into.extend(element.string()?);
                Ok(())
            })?;
        } else {
            value.skip()?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Finds the members of an `event_msg`.
pub fn event(line: &[u8], payload: &Range<usize>) -> Result<Event, Malformed> {
    let mut event = Event::default();
    Cursor::at(line, payload).object(|value, key| {
        match key {
            b"type" => event.kind = value.string()?,
            b"item" => {
                value.object(|value, key| match key {
                    b"type" => {
                        event.item = value.string()?;
                        Ok(())
                    }
                    _ => event_members(value, key, &mut event),
                })?;
            }
            b"num_turns" => {
                let place = value.skip()?;
                event.rolled_back = epitome_json::integer(line, &place);
            }
            b"info" => info(value, line, &mut event)?,
            _ => event_members(value, key, &mut event)?,
        }
        Ok(())
    })?;
    Ok(event)
}

/// Finds the members of an event or of its item.
fn event_members(value: &mut Cursor<'_>, key: &[u8], event: &mut Event) -> Result<(), Malformed> {
    match key {
        b"id" | b"call_id" => event.id = value.string()?,
        b"status" => event.status = value.string()?,
        b"exit_code" => event.exit_code = Some(value.skip()?),
        b"success" => event.success = Some(value.skip()?),
        b"changes" => event.changes = Some(value.skip()?),
        // `{"Ok": {"content": […]}}`, and without the `Ok` in newer versions.
        b"result" => {
            value.object(|value, key| match key {
                b"Ok" => {
                    value.object(|value, key| result(value, key, event))?;
                    Ok(())
                }
                _ => result(value, key, event),
            })?;
        }
        _ => {
            let name = PRINTED.iter().find(|name| name.as_bytes() == key);
            let place = value.string()?;
            event.printed.extend(name.and_then(|name| Some((*name, place?))));
        }
    }
    Ok(())
}

/// The result of a tool of an MCP server.
fn result(value: &mut Cursor<'_>, key: &[u8], event: &mut Event) -> Result<(), Malformed> {
    match key {
        b"content" => {
            let mut all = Vec::new();
            parts(value, &mut all)?;
            let texts = all.into_iter().filter_map(|part| Some(("result", part.text?)));
            event.printed.extend(texts);
        }
        b"structuredContent" => event.structured = Some(value.skip()?),
        _ => {
            value.skip()?;
        }
    }
    Ok(())
}

fn info(value: &mut Cursor<'_>, line: &[u8], event: &mut Event) -> Result<(), Malformed> {
    value.object(|value, key| {
        match key {
            b"last_token_usage" => {
                let place = value.clone().skip()?;
                // Without either it is the size of the context after a compaction.
                event.usage = tokens(value, line)?.filter(|it| it.input > 0 || it.output > 0);
                event.last_usage = Some(place);
            }
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// Input (including what was read from a cache) and output.
fn tokens(value: &mut Cursor<'_>, line: &[u8]) -> Result<Option<Usage>, Malformed> {
    let (mut input, mut output, mut cached) = (None, None, None);
    value.object(|value, key| {
        let place = value.skip()?;
        match key {
            b"input_tokens" => input = epitome_json::integer(line, &place),
            b"cached_input_tokens" => cached = epitome_json::integer(line, &place),
            b"output_tokens" => output = epitome_json::integer(line, &place),
            _ => {}
        }
        Ok(())
    })?;
    // Cache writes are not reported: they count as other input here.
    let cache = cached.map(|read| CacheUse { read, written: 0 });
    Ok(input.zip(output).map(|(input, output)| Usage { input, output, cache, cost: None }))
}
