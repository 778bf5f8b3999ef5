//! pi's JSON: the members of an entry, as ranges of its line.

use std::ops::Range;

use epitome_json::{Cursor, Kind, Malformed};
use epitome_model::{CacheUse, Usage};

type Found = Option<Range<usize>>;

/// An entry, or the header.
#[derive(Debug, Default)]
pub struct Record {
    pub kind: Found,
    pub id: Found,
    pub parent: Found,
    pub timestamp: Found,
    pub version: Found,
    pub cwd: Found,
    pub name: Found,
    pub summary: Found,
    pub first_kept_id: Found,
    pub first_kept_index: Option<u64>,
    pub from: Found,
    pub target: Found,
    pub message: Option<Message>,
    /// `content` of a `custom_message`, or of the `replacement` of a `context_edit`.
    pub content: Found,
    pub blocks: Vec<Block>,
    /// Whether the `replacement` of a `context_edit` is empty: then the entry is not sent.
    pub omits: bool,
    pub details: Found,
}

/// A `message`.
#[derive(Debug, Default)]
pub struct Message {
    pub role: Found,
    pub model: Found,
    pub content: Found,
    pub blocks: Vec<Block>,
    pub tool_call: Found,
    pub tool_name: Found,
    pub is_error: bool,
    pub details: Found,
    pub command: Found,
    pub output: Found,
    pub sections: Found,
    pub usage: Option<Usage>,
}

/// An element of a `content`.
#[derive(Clone, Debug, Default)]
pub struct Block {
    pub whole: Range<usize>,
    pub kind: Found,
    pub text: Found,
    pub thinking: Found,
    pub signature: Found,
    pub id: Found,
    pub name: Found,
    pub arguments: Found,
    pub data: Found,
    pub media: Found,
}

/// Finds the members of an entry.
pub fn record(line: &[u8]) -> Result<Record, Malformed> {
    let mut record = Record::default();
    let mut cursor = Cursor::new(line);
    cursor.object(|value, key| {
        match key {
            b"type" => record.kind = value.string()?,
            b"id" => record.id = value.string()?,
            b"parentId" => record.parent = value.string()?,
            b"timestamp" => record.timestamp = value.string()?,
            b"version" => record.version = Some(value.skip()?),
            b"cwd" => record.cwd = value.string()?,
            b"name" => record.name = value.string()?,
            b"summary" => record.summary = value.string()?,
            b"firstKeptEntryId" => record.first_kept_id = value.string()?,
            b"firstKeptEntryIndex" => {
                let place = value.skip()?;
                record.first_kept_index = epitome_json::integer(line, &place);
            }
            b"fromId" => record.from = value.string()?,
            b"targetId" => record.target = value.string()?,
            b"details" => record.details = Some(value.skip()?),
            b"content" => record.content = Some(blocks(value, &mut record.blocks)?),
            b"replacement" if value.kind() != Kind::Object => {
                record.omits = line[value.skip()?] == *b"null";
            }
            b"replacement" => {
                value.object(|value, key| {
                    if key == b"content" {
                        record.content = Some(blocks(value, &mut record.blocks)?);
                    } else {
                        value.skip()?;
                    }
                    Ok(())
                })?;
            }
            b"message" if value.kind() == Kind::Object => {
                record.message = Some(message(value, line)?);
            }
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    cursor.end()?;
    Ok(record)
}

fn message(value: &mut Cursor<'_>, line: &[u8]) -> Result<Message, Malformed> {
    let mut message = Message::default();
    value.object(|value, key| {
        match key {
            b"role" => message.role = value.string()?,
            b"model" => message.model = value.string()?,
            b"content" => message.content = Some(blocks(value, &mut message.blocks)?),
            b"toolCallId" => message.tool_call = value.string()?,
            b"toolName" => message.tool_name = value.string()?,
            b"isError" => message.is_error = value.truth()?,
            b"details" => message.details = Some(value.skip()?),
            b"command" => message.command = value.string()?,
            b"output" => message.output = value.string()?,
            b"sections" => message.sections = Some(value.skip()?),
            b"usage" => message.usage = Some(usage(value, line)?),
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(message)
}

fn usage(value: &mut Cursor<'_>, line: &[u8]) -> Result<Usage, Malformed> {
    let (mut fresh, mut output, mut cache) = (0_u64, 0, CacheUse::default());
    let mut dollars = None;
    value.object(|value, key| {
        if key == b"cost" && value.kind() == Kind::Object {
            value.object(|value, key| {
                let place = value.skip()?;
                dollars = if key == b"total" { Some(place) } else { dollars.take() };
                Ok(())
            })?;
            return Ok(());
        }
        let place = value.skip()?;
        let amount = || epitome_json::integer(line, &place).unwrap_or(0);
        match key {
            b"input" => fresh = amount(),
            b"cacheRead" => cache.read = amount(),
            b"cacheWrite" => cache.written = amount(),
            b"output" => output = amount(),
            _ => {}
        }
        Ok(())
    })?;
    let input = fresh.saturating_add(cache.read).saturating_add(cache.written);
    let usage = Usage { input, output, cache: Some(cache), cost: None };
    let dollars = dollars.and_then(|place| std::str::from_utf8(&line[place]).ok());
    Ok(dollars.map_or(usage, |dollars| usage.with_cost(dollars)))
}

fn blocks(value: &mut Cursor<'_>, into: &mut Vec<Block>) -> Result<Range<usize>, Malformed> {
    value.array(|element| {
        into.push(block(element)?);
        Ok(())
    })
}

fn block(value: &mut Cursor<'_>) -> Result<Block, Malformed> {
    let mut block = Block::default();
    block.whole = value.object(|value, key| {
        match key {
            b"type" => block.kind = value.string()?,
            b"text" => block.text = value.string()?,
            b"thinking" => block.thinking = value.string()?,
            b"thinkingSignature" => block.signature = value.string()?,
            b"id" => block.id = value.string()?,
            b"name" => block.name = value.string()?,
            b"arguments" => block.arguments = Some(value.skip()?),
            b"data" => block.data = value.string()?,
            b"mimeType" => block.media = value.string()?,
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(block)
}
