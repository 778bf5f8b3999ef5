//! Claude Code's JSON: the members of a record, as ranges of its line.

use std::ops::Range;

use epitome_json::{Cursor, Kind, Malformed};
use epitome_model::{CacheUse, Usage};

type Found = Option<Range<usize>>;

/// A record.
#[derive(Debug, Default)]
pub struct Record {
    pub kind: Found,
    pub subtype: Found,
    pub uuid: Found,
    pub parent: Found,
    pub timestamp: Found,
    pub session: Found,
    pub cwd: Found,
    pub version: Found,
    pub sidechain: bool,
    pub meta: bool,
    pub summary: bool,
    pub title: Found,
    pub message: Option<Message>,
    pub tool_use_result: Found,
    pub data: Found,
    pub api_copy: Found,
    pub rendered: Found,
    /// Members that record the place and time, by name, with their values.
    pub circumstances: Vec<(&'static str, Range<usize>)>,
    pub preserved: Vec<Range<usize>>,
    pub anchor: Found,
}

/// A `message`.
#[derive(Debug, Default)]
pub struct Message {
    pub id: Found,
    pub model: Found,
    pub usage: Option<Usage>,
    /// Whether the response was still being written: then its usage is that of its beginning.
    pub unfinished: bool,
    pub content: Found,
    pub blocks: Vec<Block>,
}

/// An element of a `content`.
#[derive(Clone, Debug, Default)]
pub struct Block {
    pub whole: Range<usize>,
    pub kind: Found,
    pub text: Found,
    pub thinking: Found,
    pub id: Found,
    pub name: Found,
    pub input: Found,
    pub tool_use_id: Found,
    pub content: Found,
    pub parts: Vec<Block>,
    pub is_error: bool,
    pub media: Found,
    pub data: Found,
}

/// Members of a record for place and time, in addition to `cwd` and `version`.
const CIRCUMSTANCES: [&str; 5] = ["gitBranch", "slug", "userType", "toolUseID", "parentToolUseID"];

/// Finds the members of a record.
pub fn record(line: &[u8]) -> Result<Record, Malformed> {
    let mut record = Record::default();
    let mut cursor = Cursor::new(line);
    cursor.object(|value, key| {
        match key {
            b"type" => record.kind = Some(value.skip()?),
            b"subtype" => record.subtype = Some(value.skip()?),
            b"uuid" => record.uuid = value.string()?,
            b"parentUuid" => record.parent = value.string()?,
            b"timestamp" => record.timestamp = value.string()?,
            b"sessionId" => record.session = value.string()?,
            b"cwd" => {
                record.cwd = value.string()?;
                record.circumstances.extend(record.cwd.clone().map(|place| ("cwd", place)));
            }
            b"version" => {
                record.version = value.string()?;
                record.circumstances.extend(record.version.clone().map(|place| ("version", place)));
            }
            b"isSidechain" => record.sidechain = value.truth()?,
            b"isMeta" => record.meta = value.truth()?,
            b"isCompactSummary" => record.summary = value.truth()?,
            b"summary" | b"customTitle" | b"aiTitle" => record.title = value.string()?,
            b"message" if value.kind() == Kind::Object => {
                let start = value.offset();
                record.message = Some(message(value, line)?);
                record.api_copy.get_or_insert(start..value.offset());
            }
            b"toolUseResult" => record.tool_use_result = Some(value.skip()?),
            b"data" => record.data = Some(value.skip()?),
            b"shape" | b"params" => record.api_copy = Some(value.skip()?),
            b"rendered" => record.rendered = Some(value.skip()?),
            b"compactMetadata" => compact_metadata(value, &mut record)?,
            _ => {
                let place = value.skip()?;
                let known = CIRCUMSTANCES.iter().find(|name| name.as_bytes() == key);
                record.circumstances.extend(known.map(|name| (*name, place)));
            }
        }
        Ok(())
    })?;
    cursor.end()?;
    Ok(record)
}

fn compact_metadata(value: &mut Cursor<'_>, record: &mut Record) -> Result<(), Malformed> {
    value.object(|value, key| {
        if key != b"preservedMessages" {
            value.skip()?;
            return Ok(());
        }
        value.object(|value, key| {
            match key {
                b"anchorUuid" => record.anchor = value.string()?,
                b"uuids" => {
                    value.array(|uuid| {
                        record.preserved.extend(uuid.string()?);
                        Ok(())
                    })?;
                }
                _ => {
                    value.skip()?;
                }
            }
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

fn message(value: &mut Cursor<'_>, line: &[u8]) -> Result<Message, Malformed> {
    let mut message = Message::default();
    value.object(|value, key| {
        match key {
            b"id" => message.id = value.string()?,
            b"model" => message.model = value.string()?,
            b"usage" => message.usage = Some(usage(value, line)?),
            b"stop_reason" => {
                let place = value.skip()?;
                message.unfinished = line[place] == *b"null";
            }
            b"content" => {
                let whole = blocks(value, line, &mut message.blocks)?;
                message.content = Some(whole);
            }
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(message)
}

fn usage(value: &mut Cursor<'_>, line: &[u8]) -> Result<Usage, Malformed> {
    let (mut usage, mut cache) = (Usage::default(), CacheUse::default());
    value.object(|value, key| {
        let place = value.skip()?;
        let amount = || epitome_json::integer(line, &place).unwrap_or(0);
        match key {
            b"input_tokens" => usage.input = amount(),
            b"cache_creation_input_tokens" => cache.written = amount(),
            b"cache_read_input_tokens" => cache.read = amount(),
            b"output_tokens" => usage.output = amount(),
            _ => {}
        }
        Ok(())
    })?;
    usage.input = usage.input.saturating_add(cache.read).saturating_add(cache.written);
    usage.cache = Some(cache);
    Ok(usage)
}

fn blocks(
    value: &mut Cursor<'_>,
    line: &[u8],
    into: &mut Vec<Block>,
) -> Result<Range<usize>, Malformed> {
    value.array(|element| {
        into.push(block(element, line)?);
        Ok(())
    })
}

fn block(value: &mut Cursor<'_>, line: &[u8]) -> Result<Block, Malformed> {
    let mut block = Block::default();
    block.whole = value.object(|value, key| {
        match key {
            b"type" => block.kind = Some(value.skip()?),
            b"text" => block.text = value.string()?,
            b"thinking" => block.thinking = value.string()?,
            b"id" => block.id = value.string()?,
            b"name" => block.name = value.string()?,
            b"input" => block.input = Some(value.skip()?),
            b"tool_use_id" => block.tool_use_id = value.string()?,
            b"content" => block.content = Some(blocks(value, line, &mut block.parts)?),
            b"is_error" => block.is_error = value.truth()?,
            b"source" => {
                value.object(|value, key| {
                    match key {
                        b"media_type" => block.media = value.string()?,
                        b"data" => block.data = value.string()?,
                        _ => {
                            value.skip()?;
                        }
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
    Ok(block)
}
