//! Claude Code's JSON: the members of a record, as ranges of its line.
//!
//! The word after `=>` says how the value of a key is read. The macro [`fields!`] lists these
//! words, and gives each struct a field `whole`, the position of the object in the line.

use epitome_model::{CacheUse, RecordedUsage};

use crate::fields::fields;

fields! {
    /// A record.
    pub struct Record {
        kind: b"type" => any,
        uuid: b"uuid" => text,
        parent: b"parentUuid" => text,
        timestamp: b"timestamp" => text,
        session: b"sessionId" => text,
        cwd: b"cwd" => text,
        version: b"version" => text,
        sidechain: b"isSidechain" => truth,
        meta: b"isMeta" => truth,
        /// Whether the message is the summary of a compaction.
        summary: b"isCompactSummary" => truth,
        /// A title of the session. In a record of the type `summary`, the key `summary` holds a
        /// title, too.
        title: b"summary" | b"customTitle" | b"aiTitle" => text,
        message: b"message" => object<Message>,
        tool_use_result: b"toolUseResult" => any,
        data: b"data" => any,
        /// The body of an `api-request-shape` or of an `api-request`.
        request: b"shape" | b"params" => any,
        rendered: b"rendered" => any,
        compaction: b"compactMetadata" => inside<Compaction>,
    }

    /// The `compactMetadata` of a record.
    pub struct Compaction {
        preserved: b"preservedMessages" => inside<Preserved>,
    }

    /// The messages that a compaction kept after its summary.
    pub struct Preserved {
        anchor: b"anchorUuid" => text,
        uuids: b"uuids" => texts,
    }

    /// The `message` of a record.
    pub struct Message {
        id: b"id" => text,
        model: b"model" => text,
        tokens: b"usage" => value<Tokens>,
        stop_reason: b"stop_reason" => any,
        content: b"content" => list<Block>,
    }

    /// The `usage` of a message.
    pub struct Tokens {
        input: b"input_tokens" => number,
        written: b"cache_creation_input_tokens" => number,
        read: b"cache_read_input_tokens" => number,
        output: b"output_tokens" => number,
    }

    /// An element of a `content`.
    pub struct Block {
        kind: b"type" => any,
        text: b"text" => text,
        thinking: b"thinking" => text,
        id: b"id" => text,
        name: b"name" => text,
        input: b"input" => any,
        tool_use_id: b"tool_use_id" => text,
        content: b"content" => list<Block>,
        is_error: b"is_error" => truth,
        source: b"source" => inside<Picture>,
    }

    /// The `source` of a picture.
    pub struct Picture {
        media: b"media_type" => text,
        data: b"data" => text,
    }
}

impl Message {
    /// The tokens of the response, as the record states them; `None` if it states none.
    pub fn usage(&self) -> Option<RecordedUsage> {
        let tokens = self.tokens.as_ref()?;
        let [read, written] = [tokens.read, tokens.written].map(Option::unwrap_or_default);
        let input = tokens.input.unwrap_or(0).saturating_add(read).saturating_add(written);
        let cache = Some(CacheUse { read, written });
        Some(RecordedUsage { input, output: tokens.output.unwrap_or(0), cache, cost: None })
    }
}
