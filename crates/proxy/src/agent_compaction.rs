//! Whether the agent has compacted a conversation by itself.
//!
//! An agent that does so begins a new conversation with a summary of the old one. The summary is
//! recognised by the words that the agent puts before it, or by the type of item that the API has
//! for it.

use std::borrow::Cow;

use epitome_api::Api;
use epitome_model::{Block, Entry, Role, Source, Text};
use memchr::memmem;
use serde::Deserialize;

use crate::body::Messages;

/// The words with which agents begin the message that contains their summary, or the message that
/// asks for it. They were found in the programs: Claude Code 2.1.331, Codex 0.169.0, Gemini CLI and
/// Qwen Code, OpenCode 1.18.33, pi 1.5.2.
const BEGINNINGS: [&str; 5] = [
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem",
    "<state_snapshot>",
    "What did we do so far?",
    "The conversation history before this point was compacted into the following summary",
];

/// The beginning, as JSON, of the types of the items with which the Responses API compacts a
/// conversation.
const COMPACTION_ITEM: &[u8] = br#""compaction"#;

/// Whether a message from the index `first` on contains a summary with which the agent or the
/// service compacted a conversation.
///
/// The results of tools are not searched: an agent may have read a stored session of another agent,
/// in which there is such a summary.
pub(crate) fn has_own_compaction(
    api: &Api,
    body: &[u8],
    messages: &Messages,
    first: usize,
) -> bool {
    let Some(message) = messages.all.get(first) else { return false };
    let new = &body[message.span.start..messages.list.end - 1];
    // Almost no request has a summary, and this search is quicker than to parse the messages.
    let may_have = |words: &[u8]| memmem::find(new, words).is_some();
    let beginnings = BEGINNINGS.iter().map(|words| words.as_bytes());
    if !beginnings.chain([COMPACTION_ITEM]).any(may_have) {
        return false;
    }
    let head = format!(r#"{{"{}":["#, api.list);
    let tail = [head.as_bytes(), new, b"]}"].concat();
    let transcript = (api.format.read)(&tail, &mut ());
    transcript.entries().any(|(_, entry)| is_own_compaction(entry, &tail))
}

fn is_own_compaction(entry: &Entry, source: &dyn Source) -> bool {
    let begins = |text: &Text| {
        let text = text.read(source);
        BEGINNINGS.iter().any(|words| text.trim_start().starts_with(words))
    };
    entry.blocks.iter().any(|block| match block {
        Block::Summary(_) => true,
        Block::Text(text) => entry.role == Role::User && begins(text),
        Block::Opaque(span) => is_compaction_item(&source.at(*span)),
        _ => false,
    })
}

fn is_compaction_item(item: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Item<'i> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'i, str>,
    }
    let item = serde_json::from_slice::<Item<'_>>(item);
    // An item of the type `compaction_trigger` only asks for a compaction.
    item.is_ok_and(|item| ["compaction", "compaction_summary"].contains(&&*item.kind))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(api: &str, list: &Value, first: usize, expect: bool) {
        let api = epitome_api::find_api(api).expect("an API");
        let body = json!({ "model": "m", api.list: list }).to_string();
        let messages = Messages::find(body.as_bytes(), api.list).expect("messages");
        let found = has_own_compaction(api, body.as_bytes(), &messages, first);
        assert_eq!(found, expect, "{body}");
    }

    #[test]
    fn a_summary_of_the_agent_is_known_by_its_first_words() {
        let words = "This session is being continued from a previous conversation that ran out";
        let summary = json!({"role": "user", "content": words});
        let hi = json!({"role": "user", "content": "Hi"});
        let hello = json!({"role": "assistant", "content": "Hello"});
        check("anthropic", &json!([summary]), 0, true);
        check("anthropic", &json!([hi, hello, summary]), 2, true);
        // The summary is before the index `first`.
        check("anthropic", &json!([summary, hello, hi]), 1, false);
        check("anthropic", &json!([hi, hello, hi]), 0, false);
        let quoted = json!({"role": "user", "content": format!("What does this mean? {words}")});
        check("anthropic", &json!([quoted]), 0, false);
        let text = json!({"type": "text", "text": "<state_snapshot>"});
        let call = json!({"type": "tool_use", "id": "c", "name": "Read", "input": {}});
        let called = json!({"role": "assistant", "content": [call]});
        let result = json!({"type": "tool_result", "tool_use_id": "c", "content": [text]});
        let answer = json!({"role": "user", "content": [result]});
        check("anthropic", &json!([hi, called, answer]), 0, false);
        let parts = json!({"role": "user", "parts": [{"text": "<state_snapshot>\nAll of it."}]});
        check("gemini-api", &json!([parts]), 0, true);
        check("openai-chat", &json!([hi, {"role": "user", "content": BEGINNINGS[4]}]), 1, true);
    }

    #[test]
    fn an_item_of_the_service_is_a_compaction() {
        let hi = json!({"role": "user", "content": "Hi"});
        let item = json!({"type": "compaction", "encrypted_content": "QQ=="});
        check("openai-responses", &json!([hi, item]), 0, true);
        check("openai-responses", &json!([hi, item, hi]), 2, false);
        check("openai-responses", &json!([hi, {"type": "compaction_trigger"}]), 0, false);
        let words = json!({"role": "user", "content": r#"What is "compaction"?"#});
        check("openai-responses", &json!([words]), 0, false);
    }
}
