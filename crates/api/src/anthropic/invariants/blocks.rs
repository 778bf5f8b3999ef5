//! Checks one message and its blocks.

use epitome_json::Value;
use epitome_model::Invariant;

use crate::{Violations, is_name};

/// The keys that a block of each type may have, in addition to `type` and `cache_control`.
const KEYS: &[(&str, &[&str])] = &[
    ("text", &["text", "citations"]),
    ("image", &["source"]),
    ("document", &["source", "title", "context", "citations"]),
    ("search_result", &["source", "title", "content", "citations"]),
    ("thinking", &["thinking", "signature"]),
    ("redacted_thinking", &["data"]),
    ("tool_use", &["id", "name", "input", "caller"]),
    ("tool_result", &["tool_use_id", "content", "is_error"]),
    ("compaction", &["content", "signature", "encrypted_content"]),
    ("server_tool_use", &["id", "name", "input", "caller"]),
    ("mcp_tool_use", &["id", "name", "input", "server_name"]),
    ("mcp_tool_result", &["tool_use_id", "content", "is_error"]),
    ("container_upload", &["file_id"]),
    ("tool_reference", &["tool_name"]),
];

/// Checks a message: its role, its keys, and each of its blocks. Its content must not be blank;
/// only the last message may be empty, if it is the assistant's.
pub fn message(found: &mut Violations<'_>, message: &Value<'_>, place: &str, last: bool) {
    let role = message.text_of("role").unwrap_or_default();
    if !matches!(&*role, "user" | "assistant" | "system") {
        found.add(Invariant::Roles, message, place, format_args!("unknown role `{role}`"));
    }
    found.check_keys(message, place, &["role", "content"]);
    let Some(content) = message.get("content").filter(|it| it.is_text() || it.is_list()) else {
        found.add(Invariant::Shape, message, place, "the content is neither text nor blocks");
        return;
    };
    let decoded = content.text();
    let nothing = content.is_list() && content.list().is_empty() || decoded.as_deref() == Some("");
    if nothing && !(last && role == "assistant") {
        found.add(Invariant::Empty, message, place, "a message that says nothing");
    } else if decoded.is_some_and(|text| !text.is_empty() && text.trim().is_empty()) {
        found.add(Invariant::Empty, message, place, "a text of only white space");
    }
    for (n, part) in content.list().iter().enumerate() {
        block(found, part, &format!("{place}.content.{n}"), &role);
    }
}

/// Whether a block is reasoning.
pub fn is_thinking(block: &Value<'_>) -> bool {
    block.is("type", "thinking") || block.is("type", "redacted_thinking")
}

fn block(found: &mut Violations<'_>, block: &Value<'_>, place: &str, role: &str) {
    let kind = block.text_of("type").unwrap_or_default();
    let belongs = match &*kind {
        "tool_result" => "user",
        "tool_use" | "thinking" | "redacted_thinking" | "compaction" | "server_tool_use" => {
            "assistant"
        }
        _ => role,
    };
    if role != belongs {
        let what = format_args!("only `{belongs}` may have a `{kind}`");
        found.add(Invariant::Roles, block, place, what);
    }
    check_known_kind(found, block, place, &kind);
    match &*kind {
        "text" => text(found, block, place),
        "tool_use" => call(found, block, place),
        "tool_result" => result(found, block, place),
        "thinking" => reasoning(found, block, place, &["thinking", "signature"]),
        "redacted_thinking" => reasoning(found, block, place, &["data"]),
        "compaction" if block.is("content", "") => {
            found.add(Invariant::Opaque, block, place, "a compaction with an empty text");
        }
        "image" if !block.get("source").is_some_and(Value::is_object) => {
            found.add(Invariant::Shape, block, place, "a picture without its source");
        }
        _ => {}
    }
}

fn check_known_kind(found: &mut Violations<'_>, block: &Value<'_>, place: &str, kind: &str) {
    let own = KEYS.iter().find(|(known, _)| *known == kind).map(|(_, keys)| *keys);
    match own {
        Some(own) => found.check_keys(block, place, &[&["type", "cache_control"], own].concat()),
        // Tools that the service runs have many kinds of results, which are sent back unchanged.
        None if kind.ends_with("_tool_result") => {}
        None => {
            let kind = epitome_model::short(kind, 40);
            let what = format_args!("no block is of the kind `{kind}`");
            found.add(Invariant::Shape, block, place, what);
        }
    }
}

fn text(found: &mut Violations<'_>, block: &Value<'_>, place: &str) {
    match block.text_of("text") {
        None => found.add(Invariant::Shape, block, place, "a text without words"),
        Some(words) if words.trim().is_empty() => {
            found.add(Invariant::Empty, block, place, "a text of only white space");
        }
        Some(_) => {}
    }
}

fn call(found: &mut Violations<'_>, block: &Value<'_>, place: &str) {
    for key in ["id", "name"] {
        if !is_name(&block.text_of(key).unwrap_or_default(), 200) {
            let what = format_args!("`{key}` has other characters than a-z, A-Z, 0-9, _ and -");
            found.add(Invariant::Shape, block, place, what);
        }
    }
    if !block.get("input").is_some_and(Value::is_object) {
        found.add(Invariant::Shape, block, place, "`input` is not an object");
    }
}

/// Checks a tool result. It may have no content or empty content, but no blank text block.
fn result(found: &mut Violations<'_>, block: &Value<'_>, place: &str) {
    let Some(content) = block.get("content").filter(|content| !content.is_null()) else { return };
    if !content.is_text() && !content.is_list() {
        found.add(Invariant::Shape, block, place, "`content` is neither text nor blocks");
    }
    for (n, part) in content.list().iter().enumerate() {
        let place = format!("{place}.content.{n}");
        let kind = part.text_of("type").unwrap_or_default();
        check_known_kind(found, part, &place, &kind);
        if kind == "text" {
            text(found, part, &place);
        }
    }
}

fn reasoning(found: &mut Violations<'_>, block: &Value<'_>, place: &str, keys: &[&str]) {
    for key in keys {
        if !block.get(key).is_some_and(Value::is_text) {
            let what = format_args!("reasoning without its `{key}`");
            found.add(Invariant::Reasoning, block, place, what);
        }
    }
    if block.get("cache_control").is_some_and(|marker| !marker.is_null()) {
        found.add(Invariant::Cache, block, place, "reasoning carries no cache marker");
    }
}

#[cfg(test)]
mod tests {
    use epitome_model::{Invariants, Transcript, Violation};

    use super::*;
    use crate::violation::BodyInvariants;

    fn violations(content: &str) -> Vec<Violation> {
        let body = format!(r#"{{"messages":[{{"role":"user","content":[{content}]}}]}}"#);
        let invariants = BodyInvariants(super::super::invariants);
        invariants.check(&Transcript::default(), &body.as_bytes())
    }

    #[test]
    fn a_picture_has_a_source() {
        let what = "messages.0.content.0: a picture without its source";
        let expect = [Violation { invariant: Invariant::Shape, line: 1, what: what.into() }];
        assert_eq!(violations(r#"{"type":"image","source":{}}"#), []);
        for picture in [r#"{"type":"image"}"#, r#"{"type":"image","source":"a"}"#] {
            assert_eq!(violations(picture), expect, "{picture}");
        }
    }

    #[test]
    fn the_parts_of_a_result_are_of_known_kinds() {
        let part = r#"{"type":"txt","text":"a"}"#;
        let result = format!(r#"{{"type":"tool_result","tool_use_id":"t1","content":[{part}]}}"#);
        let what = "messages.0.content.0.content.0: no block is of the kind `txt`";
        let expect = Violation { invariant: Invariant::Shape, line: 1, what: what.into() };
        let found = violations(&result).into_iter();
        let found: Vec<_> = found.filter(|it| it.invariant == Invariant::Shape).collect();
        assert_eq!(found, [expect]);
    }
}
