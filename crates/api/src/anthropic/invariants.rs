//! What Anthropic's Messages API refuses.
//!
//! The rules are from the provider's pages below <https://docs.claude.com/en>: `api/messages`,
//! `docs/agents-and-tools/tool-use/implement-tool-use`, `docs/build-with-claude/extended-thinking`,
//! `docs/build-with-claude/prompt-caching`, `docs/build-with-claude/compaction`, and from refusals
//! that users of the service published. These checks parse a body on their own and do not use the
//! module that makes bodies.

mod blocks;

use std::collections::{HashMap, HashSet};

use epitome_json::Value;
use epitome_model::Invariant;

use crate::Violations;

/// Maximum size of a request in bytes.
const LARGEST: usize = 32_000_000;
/// Maximum number of cache markers.
const MARKERS: usize = 4;

/// The invariants of Anthropic's Messages API.
pub fn invariants(found: &mut Violations<'_>, root: &Value<'_>) {
    if found.body_len() > LARGEST {
        let what = format!("{} bytes, more than {LARGEST}", found.body_len());
        found.add(Invariant::Limits, root, "body", what);
    }
    let messages = root.list_of("messages");
    if messages.is_empty() {
        found.add(Invariant::Roles, root, "messages", "there is no message");
    }
    for (idx, message) in messages.iter().enumerate() {
        let last = idx + 1 == messages.len();
        blocks::message(found, message, &format!("messages.{idx}"), last);
    }
    let turns = turns(messages);
    first(found, &turns);
    calls(found, &turns);
    for (idx, turn) in turns.iter().enumerate() {
        match turn.role {
            Role::Assistant => calls_have_results(found, turn, turns.get(idx + 1)),
            Role::User => {
                results_have_calls(found, turn, idx.checked_sub(1).map(|idx| &turns[idx]))
            }
        }
    }
    if root.get("thinking").is_some_and(|thinking| thinking.is("type", "enabled")) {
        open_loop(found, &turns);
    }
    compactions(found, root, messages);
    markers(found, root, messages);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
}

/// Consecutive messages of one role. The service joins them before it looks for the result of each
/// call.
struct Turn<'d> {
    role: Role,
    /// The blocks of the messages, each with its path in the body. If the content of a message is a
    /// string, that string is its only block.
    blocks: Vec<(String, &'d Value<'d>)>,
}

impl<'d> Turn<'d> {
    fn of_kind(&self, kind: &str) -> impl Iterator<Item = (&str, &'d Value<'d>)> {
        let blocks = self.blocks.iter().filter(move |(_, block)| block.is("type", kind));
        blocks.map(|(place, block)| (place.as_str(), *block))
    }
}

fn turns<'d>(messages: &'d [Value<'d>]) -> Vec<Turn<'d>> {
    let mut turns: Vec<Turn<'d>> = Vec::new();
    for (idx, message) in messages.iter().enumerate() {
        let role = match message.text_of("role").as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            // A system message within the conversation does not end a turn.
            Some(_) | None => continue,
        };
        let content = message.get("content");
        let blocks = match content {
            Some(text) if text.is_text() => vec![(format!("messages.{idx}.content"), text)],
            Some(_) | None => {
                let blocks = message.list_of("content").iter().enumerate();
                blocks.map(|(n, block)| (format!("messages.{idx}.content.{n}"), block)).collect()
            }
        };
        match turns.last_mut().filter(|turn| turn.role == role) {
            Some(turn) => turn.blocks.extend(blocks),
            None => turns.push(Turn { role, blocks }),
        }
    }
    turns
}

/// The first message must be the user's, unless it begins with a compaction that the service made.
fn first(found: &mut Violations<'_>, turns: &[Turn<'_>]) {
    let Some(turn) = turns.first() else { return };
    let compacted = turn.blocks.first().is_some_and(|(_, block)| block.is("type", "compaction"));
    if turn.role == Role::Assistant
        && !compacted
        && let Some((place, block)) = turn.blocks.first()
    {
        found.add(Invariant::Roles, block, place, "the first message is not of the user");
    }
}

/// No id of a `tool_use` may repeat, and no text may follow a `tool_use` in the messages of one
/// role. Also checks the calls of tools that the service runs: see [`service_calls`].
fn calls(found: &mut Violations<'_>, turns: &[Turn<'_>]) {
    let mut seen = HashSet::new();
    for turn in turns {
        let mut called = false;
        for (place, block) in &turn.blocks {
            if block.is("type", "tool_use") {
                called = true;
                let id = block.text_of("id").unwrap_or_default();
                if !seen.insert(id.clone()) {
                    let what = format_args!("the id {id} repeats");
                    found.add(Invariant::Pairing, block, place, what);
                }
            } else if called && block.is("type", "text") {
                found.add(Invariant::Position, block, place, "a text comes after a call");
            }
        }
        service_calls(found, turn);
    }
}

/// Checks the calls of tools that the service itself runs. Their results must be in the same turn;
/// at most one of the calls may have none. In a turn of the assistant, a result must come after its
/// call.
fn service_calls(found: &mut Violations<'_>, turn: &Turn<'_>) {
    let mut open: HashMap<String, (&str, &Value<'_>)> = HashMap::new();
    for (place, block) in &turn.blocks {
        let kind = block.text_of("type").unwrap_or_default();
        if matches!(&*kind, "server_tool_use" | "mcp_tool_use") {
            let id = block.text_of("id").unwrap_or_default().into_owned();
            open.insert(id, (place, block));
        } else if turn.role == Role::Assistant && kind.ends_with("_tool_result") {
            let id = block.text_of("tool_use_id").unwrap_or_default();
            if open.remove(&*id).is_none() {
                let what = format_args!("a result without its call {id}");
                found.add(Invariant::Pairing, block, place, what);
            }
        }
    }
    // One call without a result is valid: the service may have paused the turn.
    if open.len() > 1 {
        for (id, (place, block)) in open {
            let what = format_args!("the call {id} has no result");
            found.add(Invariant::Pairing, block, place, what);
        }
    }
}

/// Every call of a turn must have its result at the beginning of the next turn.
fn calls_have_results(found: &mut Violations<'_>, turn: &Turn<'_>, next: Option<&Turn<'_>>) {
    let blocks = next.map_or(&[][..], |next| &next.blocks);
    let results = blocks.iter().filter(|(_, block)| is_result(block));
    let leading = blocks.iter().take_while(|(_, block)| is_result(block));
    let leading: HashSet<String> = leading.filter_map(|(_, block)| result_id(block)).collect();
    let all: HashSet<String> = results.filter_map(|(_, block)| result_id(block)).collect();
    for (place, call) in turn.of_kind("tool_use") {
        let id = call.text_of("id").unwrap_or_default();
        if !all.contains(&*id) {
            let what = format_args!("the call {id} has no result in the next message");
            found.add(Invariant::Pairing, call, place, what);
        } else if !leading.contains(&*id) {
            let what = format_args!("the result of the call {id} comes after text");
            found.add(Invariant::Position, call, place, what);
        }
    }
}

fn is_result(block: &Value<'_>) -> bool {
    block.is("type", "tool_result")
}

fn result_id(block: &Value<'_>) -> Option<String> {
    block.text_of("tool_use_id").map(String::from)
}

/// Every result of a turn must have its call in the turn before, and must be the only result of
/// that call.
fn results_have_calls(found: &mut Violations<'_>, turn: &Turn<'_>, before: Option<&Turn<'_>>) {
    let calls = before.into_iter().flat_map(|before| before.of_kind("tool_use"));
    let asked: HashSet<String> =
        calls.filter_map(|(_, call)| call.text_of("id").map(String::from)).collect();
    let mut seen = HashSet::new();
    for (place, result) in turn.of_kind("tool_result") {
        let id = result.text_of("tool_use_id").unwrap_or_default().into_owned();
        if !asked.contains(&id) {
            let what = format_args!("a result without its call {id} in the message before");
            found.add(Invariant::Pairing, result, place, what);
        } else if !seen.insert(id.clone()) {
            let what = format_args!("the call {id} has two results");
            found.add(Invariant::Pairing, result, place, what);
        }
    }
}

/// For a request with reasoning enabled. If the last turn has tool results, the model has not
/// finished its answer. This answer begins after the last user turn without tool results, or with
/// the first turn if there is no such turn. It must begin with reasoning.
fn open_loop(found: &mut Violations<'_>, turns: &[Turn<'_>]) {
    if !turns.last().is_some_and(|turn| turn.role == Role::User && has_results(turn)) {
        return;
    }
    let prompt = turns.iter().rposition(|turn| turn.role == Role::User && !has_results(turn));
    let start = prompt.map_or(0, |prompt| prompt + 1);
    let Some((place, block)) = turns.get(start).and_then(|turn| turn.blocks.first()) else {
        return;
    };
    if !blocks::is_thinking(block) {
        let what = "thinking is enabled, and the turn that called tools does not begin with it";
        found.add(Invariant::Reasoning, block, place, what);
    }
}

fn has_results(turn: &Turn<'_>) -> bool {
    turn.of_kind("tool_result").next().is_some()
}

/// A compaction that the service made must be the first block of its message. A request must not
/// have both `compaction` and `context_management`.
fn compactions(found: &mut Violations<'_>, root: &Value<'_>, messages: &[Value<'_>]) {
    for (idx, message) in messages.iter().enumerate() {
        for (n, block) in message.list_of("content").iter().enumerate() {
            let place = format!("messages.{idx}.content.{n}");
            if block.is("type", "compaction") && n > 0 {
                found.add(Invariant::Opaque, block, &place, "a compaction is not the first block");
            }
        }
    }
    if let (Some(asked), Some(_)) = (root.get("compaction"), root.get("context_management")) {
        let what = "it does not go together with `context_management`";
        found.add(Invariant::Opaque, asked, "compaction", what);
    }
}

/// There may be at most [`MARKERS`] cache markers, and markers with a lifetime of an hour must come
/// before markers with a lifetime of five minutes.
fn markers(found: &mut Violations<'_>, root: &Value<'_>, messages: &[Value<'_>]) {
    let mut marked: Vec<(String, &Value<'_>)> = Vec::new();
    let own = root.get("cache_control").filter(|marker| !marker.is_null());
    collect(&mut marked, "tools", root.list_of("tools"));
    collect(&mut marked, "system", root.list_of("system"));
    for (idx, message) in messages.iter().enumerate() {
        let blocks = message.list_of("content");
        collect(&mut marked, &format!("messages.{idx}.content"), blocks);
    }
    let n = marked.len() + usize::from(own.is_some());
    if n > MARKERS
        && let Some((place, marker)) = marked.get(MARKERS).or(marked.last())
    {
        let what = format_args!("{n} cache markers, at most {MARKERS}");
        found.add(Invariant::Cache, marker, place, what);
    }
    let mut short = false;
    for (place, marker) in &marked {
        let long = marker.is("ttl", "1h");
        if long && short {
            let what = "a marker of an hour comes after one of five minutes";
            found.add(Invariant::Cache, marker, place, what);
        }
        short |= !long;
    }
}

fn collect<'d>(marked: &mut Vec<(String, &'d Value<'d>)>, place: &str, list: &'d [Value<'d>]) {
    for (n, value) in list.iter().enumerate() {
        let place = format!("{place}.{n}");
        collect(marked, &format!("{place}.content"), value.list_of("content"));
        if let Some(marker) = value.get("cache_control").filter(|marker| !marker.is_null()) {
            marked.push((place, marker));
        }
    }
}
