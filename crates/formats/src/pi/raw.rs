//! pi's JSON: the members of an entry, as ranges of its line.

use epitome_model::{CacheUse, RecordedUsage};

use crate::fields::{List, fields};

fields! {
    /// An entry, or the header.
    pub struct Record {
        kind: b"type" => text,
        id: b"id" => text,
        parent: b"parentId" => text,
        timestamp: b"timestamp" => text,
        version: b"version" => any,
        cwd: b"cwd" => text,
        name: b"name" => text,
        summary: b"summary" => text,
        first_kept_id: b"firstKeptEntryId" => text,
        first_kept_index: b"firstKeptEntryIndex" => number,
        target: b"targetId" => text,
        message: b"message" => object<Message>,
        /// Only in a `custom_message`.
        content: b"content" => list<Block>,
        /// Only in a `context_edit`; `null` if the entry that it names is not sent any more.
        replacement: b"replacement" => value<Replacement>,
    }

    /// The new content that a `context_edit` gives an entry.
    pub struct Replacement {
        content: b"content" => list<Block>,
    }

    /// The `message` of an entry.
    pub struct Message {
        role: b"role" => text,
        model: b"model" => text,
        content: b"content" => list<Block>,
        tool_call: b"toolCallId" => text,
        tool_name: b"toolName" => text,
        is_error: b"isError" => truth,
        details: b"details" => any,
        command: b"command" => text,
        output: b"output" => text,
        sections: b"sections" => any,
        tokens: b"usage" => value<Tokens>,
    }

    /// The `usage` of a message.
    pub struct Tokens {
        fresh: b"input" => number,
        read: b"cacheRead" => number,
        written: b"cacheWrite" => number,
        output: b"output" => number,
        cost: b"cost" => inside<Cost>,
    }

    /// The `cost` of a `usage`, in dollars.
    pub struct Cost {
        total: b"total" => any,
    }

    /// An element of a `content`.
    pub struct Block {
        kind: b"type" => text,
        text: b"text" => text,
        thinking: b"thinking" => text,
        signature: b"thinkingSignature" => text,
        id: b"id" => text,
        name: b"name" => text,
        arguments: b"arguments" => any,
        data: b"data" => text,
        media: b"mimeType" => text,
    }
}

impl Record {
    /// The content of a `custom_message`, or of the `replacement` of a `context_edit`.
    pub fn content(&self) -> &List<Block> {
        match &self.replacement {
            Some(replacement) if replacement.content.whole.is_some() => &replacement.content,
            Some(_) | None => &self.content,
        }
    }
}

impl Tokens {
    /// The tokens and cost of a request. The positions in `self` are relative to `line`.
    pub fn usage(&self, line: &[u8]) -> RecordedUsage {
        let [fresh, read, written] =
            [self.fresh, self.read, self.written].map(Option::unwrap_or_default);
        let input = fresh.saturating_add(read).saturating_add(written);
        let cache = Some(CacheUse { read, written });
        let usage = RecordedUsage { input, output: self.output.unwrap_or(0), cache, cost: None };
        let dollars = self.cost.total.clone();
        match dollars.and_then(|place| std::str::from_utf8(&line[place]).ok()) {
            Some(dollars) => usage.with_cost(dollars),
            None => usage,
        }
    }
}
