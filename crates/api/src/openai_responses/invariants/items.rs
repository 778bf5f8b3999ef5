//! Checks one item.

use epitome_json::Value;
use epitome_model::Invariant;

use crate::{Violations, is_name};

/// Maximum length of a call id in characters.
const ID: usize = 64;
/// Maximum length of a tool name in characters.
const NAME: usize = 128;

/// The keys of an item, by its kind. The keys of other kinds are not checked.
const KEYS: &[(&str, &[&str])] = &[
    ("message", &["type", "role", "content", "id", "status", "phase"]),
    ("reasoning", &["type", "id", "summary", "content", "encrypted_content", "status"]),
    (
        "function_call",
        &["type", "id", "call_id", "name", "arguments", "status", "namespace", "caller"],
    ),
    ("function_call_output", &["type", "id", "call_id", "output", "status", "caller"]),
    (
        "custom_tool_call",
        &["type", "id", "call_id", "name", "input", "status", "namespace", "caller"],
    ),
    ("custom_tool_call_output", &["type", "id", "call_id", "output", "status", "caller"]),
    ("item_reference", &["type", "id"]),
    ("compaction_trigger", &["type"]),
];

/// Kinds of items that a model produces, except `message` and `reasoning`. An `item_reference` is
/// sent in place of such an item.
const OUTPUTS: [&str; 16] = [
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
    "tool_search_call",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "compaction",
    "item_reference",
];

/// The kinds of items that a request may contain in addition to [`OUTPUTS`].
const INPUTS: [&str; 12] = [
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
    "shell_call_output",
    "apply_patch_call_output",
    "computer_call_output",
    "tool_search_output",
    "mcp_approval_response",
    "message",
    "reasoning",
    "compaction_summary",
    "compaction_trigger",
];

/// Whether the item is a model's output other than reasoning.
pub fn is_output(item: &Value<'_>) -> bool {
    match item.text_of("type") {
        Some(kind) if kind != "message" => OUTPUTS.contains(&&*kind),
        Some(_) | None => item.is("role", "assistant"),
    }
}

/// Checks the kind of an item, its keys, and its required members.
pub fn item(found: &mut Violations<'_>, item: &Value<'_>, place: &str) {
    let kind = item.text_of("type").unwrap_or_else(|| "message".into());
    if !OUTPUTS.contains(&&*kind) && !INPUTS.contains(&&*kind) {
        let kind = epitome_model::short(&kind, 40);
        found.add(Invariant::Shape, item, place, format_args!("no item is of the kind `{kind}`"));
        return;
    }
    if let Some((_, keys)) = KEYS.iter().find(|(known, _)| *known == kind) {
        found.check_keys(item, place, keys);
    }
    match &*kind {
        "message" => message(found, item, place),
        "function_call" | "custom_tool_call" => {
            call_id(found, item, place);
            if !is_name(&item.text_of("name").unwrap_or_default(), NAME) {
                let what =
                    format_args!("the name of a tool has 1 to {NAME} of a-z, A-Z, 0-9, _ and -");
                found.add(Invariant::Shape, item, place, what);
            }
            let key = if kind == "function_call" { "arguments" } else { "input" };
            found.text(item, place, key);
        }
        "function_call_output" | "custom_tool_call_output" => {
            call_id(found, item, place);
            output(found, item, place);
        }
        _ => {}
    }
}

fn call_id(found: &mut Violations<'_>, item: &Value<'_>, place: &str) {
    let id = item.text_of("call_id").unwrap_or_default();
    if id.is_empty() || id.chars().count() > ID {
        let what = format_args!("the id of a call has 1 to {ID} characters");
        found.add(Invariant::Shape, item, place, what);
    }
}

fn message(found: &mut Violations<'_>, item: &Value<'_>, place: &str) {
    let role = item.text_of("role").unwrap_or_default();
    let kinds: &[&str] = match &*role {
        "user" | "system" | "developer" => {
            &["input_text", "input_image", "input_file", "input_audio"]
        }
        "assistant" => &["output_text", "refusal"],
        _ => {
            found.add(Invariant::Roles, item, place, format_args!("unknown role `{role}`"));
            return;
        }
    };
    let Some(content) = item.get("content").filter(|it| it.is_text() || it.is_list()) else {
        found.add(Invariant::Empty, item, place, "a message that says nothing");
        return;
    };
    parts(found, content, place, &role, kinds);
}

fn output(found: &mut Violations<'_>, item: &Value<'_>, place: &str) {
    match item.get("output").filter(|it| it.is_text() || it.is_list()) {
        Some(output) => {
            parts(found, output, place, "tool", &["input_text", "input_image", "input_file"]);
        }
        None => found.add(Invariant::Empty, item, place, "a result without its `output`"),
    }
}

fn parts(found: &mut Violations<'_>, content: &Value<'_>, place: &str, role: &str, kinds: &[&str]) {
    for (n, part) in content.list().iter().enumerate() {
        let place = format!("{place}.content.{n}");
        let kind = part.text_of("type").unwrap_or_default();
        if !kinds.contains(&&*kind) {
            let kind = epitome_model::short(&kind, 40);
            let what = format_args!("`{role}` says no part `{kind}`");
            found.add(Invariant::Shape, part, &place, what);
        } else if kind.ends_with("_text") {
            found.text(part, &place, "text");
        }
    }
}
