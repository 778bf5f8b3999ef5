//! Checks a request's history as Anthropic Messages does.
//!
//! Written from the provider's pages: messages (`/en/api/messages`), tool use
//! (`/en/docs/agents-and-tools/tool-use/implement-tool-use`), extended thinking
//! (`/en/docs/build-with-claude/extended-thinking`) and prompt caching, all below
//! <https://docs.claude.com>. Where the pages are not clear, this check is the stricter one:
//! thinking with a changed text is refused in every message, not only in the latest.

use crate::refusal::Refusal;
use crate::sign::{Signature, verify};
use serde_json::Value;
use std::collections::HashSet;

type Verdict = Result<(), Refusal>;

/// The keys of a block in addition to `type` and `cache_control`. Block types in [`UNCHECKED`] are
/// accepted unchecked.
const KEYS: &[(&str, &[&str])] = &[
    ("text", &["text", "citations"]),
    ("image", &["source"]),
    ("thinking", &["thinking", "signature"]),
    ("redacted_thinking", &["data"]),
    ("tool_use", &["id", "name", "input", "caller"]),
    ("tool_result", &["tool_use_id", "content", "is_error"]),
];

const UNCHECKED: &[&str] = &[
    "document",
    "search_result",
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "container_upload",
    "tool_reference",
];

/// The types of pictures.
const PICTURES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

/// The maximum number of blocks with `cache_control`, in the system prompt, the tools and the
/// messages together.
const CACHE_MARKS: usize = 4;

/// Checks whether the service would accept this request's history.
///
/// # Errors
///
/// The first invariant that the request violates, as the error text of the service.
pub fn check(body: &Value) -> Verdict {
    let Some(messages) = body["messages"].as_array().filter(|messages| !messages.is_empty()) else {
        return Refusal::because("messages: at least one message is required");
    };
    for (index, message) in messages.iter().enumerate() {
        message_shape(index, message, index + 1 == messages.len())?;
    }
    cache_marks(body)?;
    let turns = turns(messages);
    unique_calls(&turns)?;
    opening(&turns)?;
    for (index, turn) in turns.iter().enumerate() {
        match turn.role {
            Role::Assistant => calls_are_answered(turn, turns.get(index + 1))?,
            Role::User => {
                let before = index.checked_sub(1).map(|before| &turns[before]);
                results_were_asked_for(turn, before)?;
            }
        }
    }
    thinking(&turns)?;
    if body["thinking"]["type"] == "enabled" {
        open_loop_starts_with_thinking(&turns)?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
}

/// Consecutive messages of one role, which the service joins before it checks pairs.
struct Turn<'a> {
    role: Role,
    /// Each block, with its place in the request, which errors name.
    blocks: Vec<(String, &'a Value)>,
    first_message: usize,
}

impl<'a> Turn<'a> {
    fn of_kind(&self, kind: &str) -> impl Iterator<Item = (&str, &'a Value)> {
        self.blocks
            .iter()
            .filter(move |(_, block)| block["type"] == kind)
            .map(|(place, block)| (place.as_str(), *block))
    }
}

fn turns(messages: &[Value]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let role = match message["role"].as_str() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            // A system message within the conversation does not end a turn.
            _ => continue,
        };
        let placed = blocks(message)
            .enumerate()
            .map(|(at, block)| (format!("messages.{index}.content.{at}"), block));
        match turns.last_mut() {
            Some(turn) if turn.role == role => turn.blocks.extend(placed),
            _ => turns.push(Turn { role, blocks: placed.collect(), first_message: index }),
        }
    }
    turns
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    message["content"].as_array().into_iter().flatten()
}

fn message_shape(index: usize, message: &Value, last: bool) -> Verdict {
    let role = message["role"].as_str().unwrap_or_default();
    if !matches!(role, "user" | "assistant" | "system") {
        return Refusal::because(format!(
            "messages.{index}.role: Input should be 'user' or 'assistant'"
        ));
    }
    for key in message.as_object().into_iter().flat_map(|message| message.keys()) {
        if !matches!(key.as_str(), "role" | "content") {
            return Refusal::because(format!(
                "messages.{index}.{key}: Extra inputs are not permitted"
            ));
        }
    }
    let content = &message["content"];
    if !content.is_string() && !content.is_array() {
        return Refusal::because(format!("messages.{index}.content: Input should be a valid list"));
    }
    let empty = content.as_str() == Some("") || content.as_array().is_some_and(Vec::is_empty);
    if empty && !(last && role == "assistant") {
        return Refusal::because(format!(
            "messages.{index}: all messages must have non-empty content except for the optional \
             final assistant message"
        ));
    }
    if message["content"].as_str().is_some_and(|text| !text.is_empty() && text.trim().is_empty()) {
        return Refusal::because("messages: text content blocks must contain non-whitespace text");
    }
    for (at, block) in blocks(message).enumerate() {
        block_shape(&format!("messages.{index}.content.{at}"), role, block)?;
    }
    Ok(())
}

fn block_shape(place: &str, role: &str, block: &Value) -> Verdict {
    let kind = block["type"].as_str().unwrap_or_default();
    let belongs = match kind {
        "tool_result" | "image" => "user",
        "tool_use" | "thinking" | "redacted_thinking" => "assistant",
        _ => role,
    };
    if role != belongs {
        return Refusal::because(format!(
            "{place}: `{kind}` blocks can only be in `{belongs}` messages"
        ));
    }
    known_keys(place, kind, block)?;
    match kind {
        "text" => text_shape(block),
        "tool_use" => tool_use_shape(place, block),
        "tool_result" => tool_result_shape(place, block),
        "thinking" => required(place, kind, block, &["thinking", "signature"]),
        "redacted_thinking" => required(place, kind, block, &["data"]),
        "image" => image_shape(place, block),
        _ => Ok(()),
    }
}

fn known_keys(place: &str, kind: &str, block: &Value) -> Verdict {
    let Some((_, keys)) = KEYS.iter().find(|(known, _)| *known == kind) else {
        if UNCHECKED.contains(&kind) {
            return Ok(());
        }
        return Refusal::because(format!(
            "{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
        ));
    };
    for key in block.as_object().into_iter().flat_map(|block| block.keys()) {
        if !keys.contains(&key.as_str()) && !matches!(key.as_str(), "type" | "cache_control") {
            return Refusal::because(format!(
                "{place}.{kind}.{key}: Extra inputs are not permitted"
            ));
        }
    }
    Ok(())
}

fn required(place: &str, kind: &str, block: &Value, keys: &[&str]) -> Verdict {
    match keys.iter().find(|key| block[**key].is_null()) {
        Some(key) => Refusal::because(format!("{place}.{kind}.{key}: Field required")),
        None => Ok(()),
    }
}

fn text_shape(block: &Value) -> Verdict {
    match block["text"].as_str() {
        None | Some("") => Refusal::because("messages: text content blocks must be non-empty"),
        Some(text) if text.trim().is_empty() => {
            Refusal::because("messages: text content blocks must contain non-whitespace text")
        }
        Some(_) => Ok(()),
    }
}

fn tool_use_shape(place: &str, block: &Value) -> Verdict {
    for key in ["id", "name"] {
        let value = block[key].as_str().unwrap_or_default();
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if value.is_empty() || !value.chars().all(fits) {
            return Refusal::because(format!(
                "{place}.tool_use.{key}: String should match pattern '^[a-zA-Z0-9_-]+$'"
            ));
        }
    }
    if !block["input"].is_object() {
        return Refusal::because(format!(
            "{place}.tool_use.input: Input should be a valid dictionary"
        ));
    }
    Ok(())
}

/// Checks a result: an empty or missing content is allowed, an empty text block inside the content
/// is not.
fn tool_result_shape(place: &str, block: &Value) -> Verdict {
    let content = &block["content"];
    if !content.is_null() && !content.is_string() && !content.is_array() {
        return Refusal::because(format!(
            "{place}.tool_result.content: Input should be a valid list"
        ));
    }
    for (at, part) in content.as_array().into_iter().flatten().enumerate() {
        let place = format!("{place}.tool_result.content.{at}");
        let kind = part["type"].as_str().unwrap_or_default();
        known_keys(&place, kind, part)?;
        match kind {
            "text" => text_shape(part)?,
            "image" => image_shape(&place, part)?,
            _ => {}
        }
    }
    Ok(())
}

/// Checks where a picture comes from: base64 of a known type, an address, or a file.
fn image_shape(place: &str, block: &Value) -> Verdict {
    required(place, "image", block, &["source"])?;
    let source = &block["source"];
    let place = format!("{place}.image");
    match source["type"].as_str().unwrap_or_default() {
        "base64" => {
            required(&place, "source.base64", source, &["media_type", "data"])?;
            let media = source["media_type"].as_str().unwrap_or_default();
            if !PICTURES.contains(&media) {
                return Refusal::because(format!(
                    "{place}.source.base64.media_type: Input should be 'image/jpeg', 'image/png', \
                     'image/gif' or 'image/webp'"
                ));
            }
            match source["data"].as_str() {
                None | Some("") => {
                    Refusal::because(format!("{place}.source.base64: image cannot be empty"))
                }
                Some(_) => Ok(()),
            }
        }
        "url" => required(&place, "source.url", source, &["url"]),
        "file" => required(&place, "source.file", source, &["file_id"]),
        kind => Refusal::because(format!(
            "{place}.source: Input tag '{kind}' found using 'type' does not match any of the \
             expected tags"
        )),
    }
}

fn cache_marks(body: &Value) -> Verdict {
    let of = |list: &Value| -> usize {
        let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().filter(|entry| !entry["cache_control"].is_null()).count()
    };
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = of(&body["system"])
        + of(&body["tools"])
        + messages.iter().map(|message| of(&message["content"])).sum::<usize>();
    if found > CACHE_MARKS {
        return Refusal::because(format!(
            "A maximum of {CACHE_MARKS} blocks with cache_control may be provided. Found {found}."
        ));
    }
    Ok(())
}

fn unique_calls(turns: &[Turn<'_>]) -> Verdict {
    let mut seen = HashSet::new();
    for (_, call) in turns.iter().flat_map(|turn| turn.of_kind("tool_use")) {
        if !seen.insert(call["id"].as_str()) {
            return Refusal::because("messages: `tool_use` ids must be unique");
        }
    }
    Ok(())
}

fn opening(turns: &[Turn<'_>]) -> Verdict {
    match turns.first() {
        Some(turn) if turn.role == Role::User => Ok(()),
        _ => Refusal::because("messages: first message must use the \"user\" role"),
    }
}

/// Checks that the next turn begins with the results of this turn's calls. Results that come after
/// another block of the next turn are ignored.
fn calls_are_answered(turn: &Turn<'_>, next: Option<&Turn<'_>>) -> Verdict {
    let results: HashSet<&str> = next
        .into_iter()
        .flat_map(|next| next.blocks.iter().take_while(|(_, block)| block["type"] == "tool_result"))
        .filter_map(|(_, block)| block["tool_use_id"].as_str())
        .collect();
    let open: Vec<&str> = turn
        .of_kind("tool_use")
        .filter_map(|(_, call)| call["id"].as_str())
        .filter(|id| !results.contains(id))
        .collect();
    if open.is_empty() {
        return Ok(());
    }
    Refusal::because(format!(
        "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: \
         {}. Each `tool_use` block must have a corresponding `tool_result` block in the next \
         message.",
        turn.first_message,
        open.join(", ")
    ))
}

fn results_were_asked_for(turn: &Turn<'_>, before: Option<&Turn<'_>>) -> Verdict {
    let asked: HashSet<&str> = before
        .into_iter()
        .flat_map(|before| before.of_kind("tool_use"))
        .filter_map(|(_, call)| call["id"].as_str())
        .collect();
    let mut seen = HashSet::new();
    for (place, result) in turn.of_kind("tool_result") {
        let id = result["tool_use_id"].as_str().unwrap_or_default();
        if !asked.contains(id) {
            return Refusal::because(format!(
                "{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                 `tool_result` block must have a corresponding `tool_use` block in the previous \
                 message."
            ));
        }
        if !seen.insert(id) {
            return Refusal::because(format!(
                "{place}: each tool_use must have a single result. Found multiple `tool_result` \
                 blocks with id: {id}"
            ));
        }
    }
    Ok(())
}

fn thinking(turns: &[Turn<'_>]) -> Verdict {
    let latest = turns.iter().rposition(|turn| turn.role == Role::Assistant);
    for (index, turn) in turns.iter().enumerate() {
        for (place, block) in turn.of_kind("thinking") {
            let text = block["thinking"].as_str().unwrap_or_default();
            let signature = block["signature"].as_str().unwrap_or_default();
            match verify(signature, text) {
                Signature::Valid => {}
                Signature::Altered if latest == Some(index) => {
                    return Refusal::because(format!(
                        "{place}: `thinking` or `redacted_thinking` blocks in the latest assistant \
                         message cannot be modified. These blocks must remain as they were in the \
                         original response."
                    ));
                }
                Signature::Altered | Signature::Foreign => {
                    return Refusal::because(format!(
                        "{place}: Invalid `signature` in `thinking` block"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// If the history ends with results, the model is in the middle of tool use: then what it said
/// first after the last prompt must be thinking.
fn open_loop_starts_with_thinking(turns: &[Turn<'_>]) -> Verdict {
    let answers = |turn: &Turn<'_>| turn.of_kind("tool_result").next().is_some();
    if !turns.last().is_some_and(|turn| turn.role == Role::User && answers(turn)) {
        return Ok(());
    }
    let loop_start = turns
        .iter()
        .rposition(|turn| turn.role == Role::User && !answers(turn))
        .map_or(0, |prompt| prompt + 1);
    let Some((place, block)) = turns.get(loop_start).and_then(|turn| turn.blocks.first()) else {
        return Ok(());
    };
    let kind = block["type"].as_str().unwrap_or_default();
    if matches!(kind, "thinking" | "redacted_thinking") {
        return Ok(());
    }
    Refusal::because(format!(
        "{place}.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. When \
         `thinking` is enabled, a final `assistant` message must start with a thinking block \
         (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
    ))
}

#[cfg(test)]
#[path = "invariants_tests.rs"]
mod tests;
