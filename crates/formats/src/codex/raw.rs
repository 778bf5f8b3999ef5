//! Codex's JSON: the members of a record, as ranges of its line.

use std::ops::Range;

use epitome_json::{Cursor, MalformedJson};
use epitome_model::{CacheUse, RecordedUsage};

use crate::fields::{Found, List, fields};

fields! {
    /// A record. Its payload is parsed later, because its members depend on the kind of the record.
    pub struct Record {
        timestamp: b"timestamp" => text,
        ordinal: b"ordinal" => any,
        kind: b"type" => text,
        payload: b"payload" => any,
    }

    /// The session's data in a `session_meta`, and references to other rollouts.
    pub struct Meta {
        id: b"id" => text,
        session: b"session_id" => text,
        cwd: b"cwd" => text,
        version: b"cli_version" => text,
        parent: b"parent_thread_id" => text,
        source: b"source" => inside<Origin>,
        base: b"history_base" => inside<Base>,
    }

    /// The `source` in a `session_meta`. In the rollout of a sub-agent it is `{"subagent":
    /// {"thread_spawn": {…}}}` or `{"subagent": "review"}`, in other rollouts a string such as
    /// `"cli"`.
    pub struct Origin {
        sub_agent: b"subagent" => value<SubAgent>,
    }

    /// The `subagent` of a `source`.
    pub struct SubAgent {
        spawned: b"thread_spawn" => inside<Spawned>,
    }

    /// The `thread_spawn` of a `subagent`.
    pub struct Spawned {
        parent: b"parent_thread_id" => text,
    }

    /// The `history_base` in a `session_meta`.
    pub struct Base {
        rollout: b"thread_id" => text,
        bytes: b"end_byte_offset" => number,
    }

    /// The payload of a `turn_context`.
    pub struct Turn {
        model: b"model" => text,
    }

    /// The payload of a `world_state`.
    pub struct World {
        is_full: b"full" => truth,
    }

    /// The payload of a `token_usage_record`.
    pub struct UsageRecord {
        usage: b"usage" => inside<Tokens>,
    }

    /// The tokens of a request. `input` includes what was read from a cache.
    pub struct Tokens {
        input: b"input_tokens" => number,
        cached: b"cached_input_tokens" => number,
        output: b"output_tokens" => number,
    }

    /// The payload of a `compacted`.
    pub struct Compacted {
        message: b"message" => text,
        history: b"replacement_history" => list<Item>,
    }

    /// An item of the Responses API.
    pub struct Item {
        kind: b"type" => text,
        role: b"role" => text,
        call: b"call_id" => text,
        name: b"name" => text,
        arguments: b"arguments" => any,
        input: b"input" => text,
        action: b"action" => any,
        tools: b"tools" => any,
        output: b"output" => list<Part>,
        content: b"content" => list<Part>,
        summary: b"summary" => list<Part>,
        passthrough: b"internal_chat_message_metadata_passthrough" => inside<Passthrough>,
    }

    /// What Codex records about an item in addition to the item itself.
    pub struct Passthrough {
        /// The kind of each part of a message: `user.text`, `environments.environment_context`.
        part_kinds: b"content_item_kinds" => texts,
    }

    /// An element of a `content` or of an `output`.
    pub struct Part {
        kind: b"type" => text,
        text: b"text" => text,
        image: b"image_url" => text,
    }

    /// The payload of an `event_msg`.
    pub struct Event {
        kind: b"type" => text,
        rolled_back: b"num_turns" => number,
        info: b"info" => inside<Info>,
    }
    else event_member {
        /// The members of the event, or of the item in it.
        what: EventItem,
    }

    /// The `info` of a `token_count`.
    pub struct Info {
        last: b"last_token_usage" => value<Tokens>,
    }

    /// Members of an event, or of its `item`.
    pub struct EventItem {
        id: b"id" | b"call_id" => text,
        status: b"status" => text,
        exit_code: b"exit_code" => any,
        success: b"success" => any,
        changes: b"changes" => any,
    }
    else item_member {
        structured: Found,
        /// The texts that repeat the output of a command or the result of an MCP server's tool,
        /// each with its key.
        printed: Vec<(&'static str, Range<usize>)>,
    }
}

impl Item {
    /// The parts of the item's content or of its output.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.content.items.iter().chain(&self.output.items)
    }
}

impl Tokens {
    /// The input and output tokens; `None` unless both are stated.
    pub fn usage(&self) -> Option<RecordedUsage> {
        // Codex does not report writes to the cache: it counts them as other input.
        let cache = self.cached.map(|read| CacheUse { read, written: 0 });
        let (input, output) = self.input.zip(self.output)?;
        Some(RecordedUsage { input, output, cache, cost: None })
    }
}

impl Event {
    /// The tokens of the last request; `None` if the event states none, or only zeros.
    pub fn usage(&self) -> Option<RecordedUsage> {
        let usage = self.info.last.as_ref()?.usage();
        // If both counts are zero, the record states the size of the context after a compaction.
        usage.filter(|usage| usage.input > 0 || usage.output > 0)
    }
}

fn event_member(
    event: &mut Event,
    key: &[u8],
    value: &mut Cursor<'_>,
) -> Result<(), MalformedJson> {
    match key {
        b"item" => event.what.add(value),
        _ => event.what.member(key, value),
    }
}

fn item_member(
    item: &mut EventItem,
    key: &[u8],
    value: &mut Cursor<'_>,
) -> Result<(), MalformedJson> {
    /// Members that repeat the output of a command.
    const PRINTED: [&str; 4] = ["aggregated_output", "formatted_output", "stderr", "stdout"];
    if key == b"result" {
        // The value is `{"Ok": {"content": […]}}`; newer versions leave out the `Ok`.
        value.object(|value, key| match key {
            b"Ok" => value.object(|value, key| returned(item, key, value)).map(drop),
            _ => returned(item, key, value),
        })?;
        return Ok(());
    }
    let name = PRINTED.iter().find(|name| name.as_bytes() == key);
    let place = value.string()?;
    item.printed.extend(name.and_then(|name| Some((*name, place?))));
    Ok(())
}

/// Reads the result of a tool of an MCP server.
fn returned(item: &mut EventItem, key: &[u8], value: &mut Cursor<'_>) -> Result<(), MalformedJson> {
    match key {
        b"content" => {
            let mut content = List::default();
            content.read(value, Part::read)?;
            let texts = content.items.into_iter().filter_map(|part| part.text);
            item.printed.extend(texts.map(|text| ("result", text)));
        }
        b"structuredContent" => item.structured = Some(value.skip()?),
        _ => return value.skip().map(drop),
    }
    Ok(())
}
