//! What OpenAI's Chat Completions API refuses.
//!
//! The rules are from the provider's reference (`api-reference/chat/create`) and its guide to
//! function calling (`guides/function-calling`), below <https://platform.openai.com/docs>, and from
//! refusals that users of the service published. These checks parse a body on their own and do not
//! use the module that makes bodies.

use std::collections::HashMap;

use epitome_json::Value;
use epitome_model::Invariant;

use crate::{Violations, is_name};

/// Maximum length of a call id in characters.
const ID: usize = 40;
/// Maximum length of a tool name in characters.
const NAME: usize = 64;

/// The keys of a message, by its role. Reasoning members of other vendors are accepted unchecked.
const KEYS: &[(&str, &[&str])] = &[
    ("system", &["role", "content", "name"]),
    ("developer", &["role", "content", "name"]),
    ("user", &["role", "content", "name"]),
    (
        "assistant",
        &[
            "role",
            "content",
            "name",
            "refusal",
            "audio",
            "annotations",
            "tool_calls",
            "function_call",
            "reasoning",
            "reasoning_content",
            "reasoning_details",
        ],
    ),
    ("tool", &["role", "content", "tool_call_id", "name"]),
    ("function", &["role", "content", "name"]),
];

/// The kinds of parts that a message may have, by its role.
const PARTS: &[(&str, &[&str])] = &[
    ("system", &["text"]),
    ("developer", &["text"]),
    ("user", &["text", "image_url", "input_audio", "file"]),
    ("assistant", &["text", "refusal"]),
    ("tool", &["text", "image_url"]),
    ("function", &["text"]),
];

/// The invariants of OpenAI's Chat Completions API.
pub fn invariants(found: &mut Violations<'_>, root: &Value<'_>) {
    let messages = root.list_of("messages");
    if messages.is_empty() {
        found.add(Invariant::Roles, root, "messages", "there is no message");
    }
    for (idx, it) in messages.iter().enumerate() {
        message(found, it, &format!("messages.{idx}"));
    }
    pairs(found, messages);
    let system = messages.iter().position(|message| message.is("role", "system"));
    let developer = messages.iter().position(|message| message.is("role", "developer"));
    if let (Some(_), Some(idx)) = (system, developer) {
        let what = "a developer message in a conversation with a system message";
        found.add(Invariant::Roles, &messages[idx], &format!("messages.{idx}"), what);
    }
}

fn message(found: &mut Violations<'_>, message: &Value<'_>, place: &str) {
    let role = message.text_of("role").unwrap_or_default();
    let Some((_, keys)) = KEYS.iter().find(|(known, _)| *known == role) else {
        found.add(Invariant::Roles, message, place, format_args!("unknown role `{role}`"));
        return;
    };
    found.check_keys(message, place, keys);
    let calls = message.get("tool_calls").filter(|calls| !calls.is_null());
    if let Some(calls) = calls.filter(|calls| calls.list().is_empty()) {
        found.add(Invariant::Empty, calls, place, "`tool_calls` without a call");
    }
    for (n, it) in message.list_of("tool_calls").iter().enumerate() {
        call(found, it, &format!("{place}.tool_calls.{n}"));
    }
    let called = calls.is_some() || message.any(&["function_call", "refusal", "audio"]).is_some();
    content(found, message, place, &role, role == "assistant" && called);
    if role == "tool" {
        found.text(message, place, "tool_call_id");
    }
}

fn content(
    found: &mut Violations<'_>,
    message: &Value<'_>,
    place: &str,
    role: &str,
    may_be_missing: bool,
) {
    let Some(content) = message.get("content").filter(|content| !content.is_null()) else {
        if !may_be_missing {
            found.add(Invariant::Empty, message, place, "a message that says nothing");
        }
        return;
    };
    if content.is_list() && content.list().is_empty() {
        found.add(Invariant::Empty, content, place, "a message that says nothing");
    } else if !content.is_text() && !content.is_list() {
        found.add(Invariant::Shape, content, place, "the content is neither text nor parts");
    }
    let kinds = PARTS.iter().find(|(known, _)| *known == role).map_or(&[][..], |(_, kinds)| kinds);
    for (n, part) in content.list().iter().enumerate() {
        let place = format!("{place}.content.{n}");
        let kind = part.text_of("type").unwrap_or_default();
        if !kinds.contains(&&*kind) {
            let kind = epitome_model::short(&kind, 40);
            let what = format_args!("`{role}` says no part `{kind}`");
            found.add(Invariant::Shape, part, &place, what);
        } else if kind == "text" {
            found.text(part, &place, "text");
        } else if kind == "image_url"
            && part.get("image_url").is_none_or(|it| it.text_of("url").is_none())
        {
            found.add(Invariant::Shape, part, &place, "a picture without its address");
        }
    }
}

fn call(found: &mut Violations<'_>, call: &Value<'_>, place: &str) {
    let id = call.text_of("id").unwrap_or_default();
    if id.is_empty() || id.chars().count() > ID {
        let what = format_args!("the id of a call has 1 to {ID} characters");
        found.add(Invariant::Shape, call, place, what);
    }
    found.check_keys(call, place, &["id", "type", "function", "custom", "index", "extra_content"]);
    let (function, key) = match (call.get("function"), call.get("custom")) {
        (Some(function), _) => (function, "arguments"),
        (None, Some(custom)) => (custom, "input"),
        (None, None) => {
            found.add(Invariant::Shape, call, place, "a call of nothing");
            return;
        }
    };
    if !is_name(&function.text_of("name").unwrap_or_default(), NAME) {
        let what = format_args!("the name of a tool has 1 to {NAME} of a-z, A-Z, 0-9, _ and -");
        found.add(Invariant::Shape, function, place, what);
    }
    found.text(function, place, key);
}

/// The calls of the last response: in `calls` those without a result so far, by id, each with its
/// path in the body; in `answered` the ids of those with a result.
struct Open<'d> {
    calls: HashMap<String, (String, &'d Value<'d>)>,
    answered: Vec<String>,
}

/// Each call must have exactly one result, and the results must directly follow the message with
/// the calls.
fn pairs(found: &mut Violations<'_>, messages: &[Value<'_>]) {
    let mut open = Open { calls: HashMap::new(), answered: Vec::new() };
    for (idx, message) in messages.iter().enumerate() {
        let place = format!("messages.{idx}");
        if message.is("role", "tool") {
            let id = message.text_of("tool_call_id").unwrap_or_default().into_owned();
            if open.calls.remove(&id).is_some() {
                open.answered.push(id);
            } else if open.answered.contains(&id) {
                let what = format_args!("the call {id} has two results");
                found.add(Invariant::Pairing, message, &place, what);
            } else {
                let what = format_args!("a result without its call {id} right before");
                found.add(Invariant::Pairing, message, &place, what);
            }
            continue;
        }
        close(found, &mut open);
        for (n, call) in message.list_of("tool_calls").iter().enumerate() {
            let id = call.text_of("id").unwrap_or_default().into_owned();
            let place = format!("{place}.tool_calls.{n}");
            if open.calls.insert(id.clone(), (place.clone(), call)).is_some() {
                found.add(Invariant::Pairing, call, &place, format_args!("the id {id} repeats"));
            }
        }
    }
    close(found, &mut open);
}

fn close(found: &mut Violations<'_>, open: &mut Open<'_>) {
    open.answered.clear();
    for (id, (place, call)) in open.calls.drain() {
        let what = format_args!("the call {id} has no result before the next message");
        found.add(Invariant::Pairing, call, &place, what);
    }
}
