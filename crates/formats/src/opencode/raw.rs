//! OpenCode's JSON: the members of its records, as ranges of the bytes that contain them.

use std::ops::Range;

use epitome_json::{Cursor, Kind, MalformedJson};
use epitome_model::{CacheUse, RecordedUsage};

use crate::fields::{Found, List, fields};

fields! {
    /// A line: the values that identify a row, and the JSON of the row.
    pub struct Row {
        table: b"table" => text,
        id: b"id" => text,
        message_id: b"message_id" => text,
        /// Only in a row of `event`: the id of the session.
        session: b"session" => text,
        directory: b"directory" => text,
        title: b"title" => text,
        version: b"version" => text,
        time: b"time_created" => number,
        data: b"data" => any,
        /// Only in an exported session.
        revert: b"revert" => any,
        /// Only in the session file of a release before 1.2.
        parent: b"parentID" => text,
    }

    /// An exported session.
    pub struct Export {
        info: b"info" => any,
        messages: b"messages" => list<Exported>,
    }

    /// An exported message: the position of its `info`, and those of its parts.
    pub struct Exported {
        info: b"info" => any,
        parts: b"parts" => by<List<Range<usize>>>(ranges),
    }

    /// A row of `message`, or the `info` of an exported message.
    pub struct Message {
        /// Only in an export: a row has its id in a column.
        id: b"id" => text,
        role: b"role" => text,
        parent: b"parentID" => text,
        model: b"modelID" => text,
        /// `true` for an assistant's summary; for a user message an object with the changed files.
        summary: b"summary" => any,
        finish: b"finish" => text,
        error: b"error" => value<Error>,
        tokens: b"tokens" => value<Tokens>,
        cost: b"cost" => any,
        time: b"time" => inside<Time>,
    }

    /// The `error` of a message.
    pub struct Error {
        name: b"name" => text,
    }

    /// The `tokens` of a message.
    pub struct Tokens {
        input: b"input" => number,
        output: b"output" => number,
        cache: b"cache" => value<Cache>,
    }

    /// The `cache` in the `tokens` of a message.
    pub struct Cache {
        read: b"read" => number,
        written: b"write" => number,
    }

    /// The `time` of a message, or of the state of a part.
    pub struct Time {
        created: b"created" => any,
        compacted: b"compacted" => any,
    }

    /// A row of `part`, or an element of the `parts` of an exported message.
    pub struct Part {
        id: b"id" => text,
        kind: b"type" => text,
        text: b"text" => text,
        is_synthetic: b"synthetic" => truth,
        is_ignored: b"ignored" => truth,
        metadata: b"metadata" => value<Metadata>,
        tool: b"tool" => text,
        call: b"callID" => text,
        state: b"state" => object<State>,
        mime: b"mime" => text,
        url: b"url" => text,
        tail: b"tail_start_id" => text,
    }

    /// The `metadata` of a part: values that a provider requires to be sent back.
    pub struct Metadata {
        openai: b"openai" | b"azure" => any,
    }

    /// The `state` of a `tool` part.
    pub struct State {
        status: b"status" => text,
        input: b"input" => by<Found>(object),
        output: b"output" => text,
        error: b"error" => text,
        title: b"title" => text,
        metadata: b"metadata" => object<Facts>,
        time: b"time" => object<Time>,
        attachments: b"attachments" => list<File>,
    }

    /// The `metadata` of a call.
    pub struct Facts {}
    else fact {
        is_interrupted: bool,
        /// The value of the member `output`.
        shown: Found,
        /// All members, each with its key.
        all: Vec<(Box<[u8]>, Range<usize>)>,
    }

    /// An element of `attachments`.
    pub struct File {
        mime: b"mime" => text,
        url: b"url" => text,
    }

    /// The directory, agent and model of a message.
    pub struct Circumstances {
        agent: b"agent" => text,
        /// In a user message: an object.
        model: b"model" => by<Found>(object),
        /// In an assistant message.
        model_id: b"modelID" => text,
        provider_id: b"providerID" => text,
        path: b"path" => by<Found>(object),
    }

    /// A logged version of a message or part.
    pub struct Event {
        part: b"part" => object<Part>,
        info: b"info" => object<Message>,
    }

    /// The point to which a session was reverted.
    pub struct Revert {
        message: b"messageID" => text,
        part: b"partID" => text,
    }
}

impl Message {
    /// The tokens and cost that a message states; `None` if it states no tokens. The positions in
    /// the message are relative to `bytes`.
    pub fn usage(&self, bytes: &[u8]) -> Option<RecordedUsage> {
        let tokens = self.tokens.as_ref()?;
        let cache = tokens.cache.as_ref().map(|cache| CacheUse {
            read: cache.read.unwrap_or(0),
            written: cache.written.unwrap_or(0),
        });
        let CacheUse { read, written } = cache.unwrap_or_default();
        let input = tokens.input.unwrap_or(0).saturating_add(read).saturating_add(written);
        let usage = RecordedUsage { input, output: tokens.output.unwrap_or(0), cache, cost: None };
        Some(match &self.cost {
            Some(cost) => usage.with_cost(&String::from_utf8_lossy(&bytes[cost.clone()])),
            None => usage,
        })
    }
}

impl State {
    /// Whether OpenCode pruned the output: `time.compacted` is there, and is not 0, `null` or
    /// `false`.
    pub fn is_compacted(&self, bytes: &[u8]) -> bool {
        let compacted = self.time.as_ref().and_then(|time| time.compacted.clone());
        compacted.is_some_and(|place| !matches!(&bytes[place], b"0" | b"null" | b"false"))
    }
}

/// Whether bytes begin an export: an object whose `info` has the id of a session, which begins with
/// `ses`.
pub fn is_export(head: &[u8]) -> bool {
    let mut known = false;
    // The head may end anywhere, so an error is ignored: the keys before the error are used.
    let _ = Cursor::new(head).object(|value, key| {
        if key == b"info" {
            value.object(|value, key| {
                known |= value.raw()?.starts_with(b"\"ses") && key == b"id";
                Ok(())
            })?;
            return Ok(());
        }
        value.skip().map(drop)
    });
    known
}

/// The range of the JSON in a record: the content of a row, or in an export the record itself.
pub fn data_of(record: &[u8]) -> Range<usize> {
    match Row::parse(record) {
        Ok(Row { table: Some(_), data: Some(data), .. }) => data,
        Ok(_) | Err(_) => 0..record.len(),
    }
}

/// The part in a record; `None` if the record contains no valid part.
pub fn part_of(record: &[u8]) -> Option<Part> {
    Part::at(record, &data_of(record)).ok()
}

fn fact(facts: &mut Facts, key: &[u8], value: &mut Cursor<'_>) -> Result<(), MalformedJson> {
    match key {
        b"interrupted" => facts.is_interrupted = value.clone().truth()?,
        b"output" => facts.shown = value.clone().string()?,
        _ => {}
    }
    facts.all.push((key.into(), value.skip()?));
    Ok(())
}

fn object(value: &mut Cursor<'_>) -> Result<Found, MalformedJson> {
    let is_object = value.kind() == Kind::Object;
    let place = value.skip()?;
    Ok(is_object.then_some(place))
}

fn ranges(value: &mut Cursor<'_>) -> Result<List<Range<usize>>, MalformedJson> {
    let mut ranges = List::default();
    ranges.read(value, |element| element.skip())?;
    Ok(ranges)
}
