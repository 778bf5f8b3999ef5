//! What OpenAI's Responses API refuses.
//!
//! The rules are from the provider's reference (`api-reference/responses/create`) and its guides
//! (`guides/function-calling`, `guides/reasoning`, `guides/compaction`), all below
//! <https://platform.openai.com/docs>, and from refusals that users of the service published. These
//! checks parse a body on their own and do not use the module that makes bodies.

mod items;

use std::collections::HashMap;

use epitome_json::Value;
use epitome_model::Invariant;

use crate::Violations;

/// The kinds of calls, each with the kind of its result.
const PAIRS: [(&str, &str); 7] = [
    ("function_call", "function_call_output"),
    ("custom_tool_call", "custom_tool_call_output"),
    ("local_shell_call", "local_shell_call_output"),
    ("shell_call", "shell_call_output"),
    ("apply_patch_call", "apply_patch_call_output"),
    ("computer_call", "computer_call_output"),
    ("tool_search_call", "tool_search_output"),
];

/// The invariants of OpenAI's Responses API.
pub fn invariants(found: &mut Violations<'_>, root: &Value<'_>) {
    let input = root.get("input").filter(|input| input.is_text() || input.is_list());
    let continues = root.any(&["previous_response_id", "conversation"]).is_some();
    let Some(input) = input else {
        if root.any(&["prompt"]).is_none() && !continues {
            found.add(Invariant::Roles, root, "input", "there is no input");
        }
        return;
    };
    let items = input.list();
    if input.is_list() && items.is_empty() && !continues {
        found.add(Invariant::Roles, input, "input", "there is no input");
    }
    for (idx, item) in items.iter().enumerate() {
        items::item(found, item, &format!("input.{idx}"));
    }
    pairs(found, items, continues);
    let stored = root.get("store").is_none_or(|store| store.raw() != b"false");
    reasoning(found, items, stored);
    compactions(found, root, items);
}

fn kind<'d>(item: &Value<'d>) -> std::borrow::Cow<'d, str> {
    item.text_of("type").unwrap_or_else(|| "message".into())
}

/// Every call must be followed by one result of its kind. Every result must have its call in this
/// request, unless the request continues an earlier response.
fn pairs(found: &mut Violations<'_>, items: &[Value<'_>], continues: bool) {
    let mut calls: HashMap<String, (usize, &str, bool)> = HashMap::new();
    for (idx, item) in items.iter().enumerate() {
        let kind = kind(item);
        let place = format!("input.{idx}");
        let id = item.text_of("call_id").unwrap_or_default();
        if let Some((_, answer)) = PAIRS.iter().find(|(call, _)| *call == kind) {
            if calls.insert(id.to_string(), (idx, answer, false)).is_some() {
                found.add(Invariant::Pairing, item, &place, format_args!("the id {id} repeats"));
            }
        } else if PAIRS.iter().any(|(_, answer)| *answer == kind) {
            // A result of a local shell call has the call's id in `id`.
            let id = if id.is_empty() { item.text_of("id").unwrap_or_default() } else { id };
            match calls.get_mut(&*id) {
                Some((_, answer, _)) if *answer != kind => {
                    let what = format_args!("the call {id} is answered by `{answer}`");
                    found.add(Invariant::Pairing, item, &place, what);
                }
                Some((_, _, answered)) if *answered => {
                    let what = format_args!("the call {id} has two results");
                    found.add(Invariant::Pairing, item, &place, what);
                }
                Some((_, _, answered)) => *answered = true,
                None if continues => {}
                None => {
                    let what = format_args!("a result without its call {id} before it");
                    found.add(Invariant::Pairing, item, &place, what);
                }
            }
        }
    }
    for (id, (idx, _, _)) in calls.iter().filter(|(_, (_, _, answered))| !answered) {
        let place = format!("input.{idx}");
        let what = format_args!("the call {id} has no result");
        found.add(Invariant::Pairing, &items[*idx], &place, what);
    }
}

/// Reasoning must have a `summary`, and must be followed by the output that it led to. It must also
/// have its encrypted content; an id is enough if the service stores responses.
fn reasoning(found: &mut Violations<'_>, items: &[Value<'_>], stored: bool) {
    for (idx, item) in items.iter().enumerate() {
        if kind(item) != "reasoning" {
            continue;
        }
        let place = format!("input.{idx}");
        if !item.get("summary").is_some_and(Value::is_list) {
            found.add(Invariant::Reasoning, item, &place, "reasoning without its `summary`");
        }
        let sealed = item.any(&["encrypted_content"]).is_some();
        if !sealed && !stored {
            let what = "nothing is stored, and reasoning is without its `encrypted_content`";
            found.add(Invariant::Reasoning, item, &place, what);
        } else if !sealed && item.text_of("id").is_none() {
            let what = "reasoning has neither an `id` nor its `encrypted_content`";
            found.add(Invariant::Reasoning, item, &place, what);
        }
        let next = items[idx + 1..].iter().find(|next| kind(next) != "reasoning");
        if !next.is_some_and(items::is_output) {
            let what = "what the reasoning led to does not follow it";
            found.add(Invariant::Reasoning, item, &place, what);
        }
    }
}

/// A compaction must have its encrypted content, and a request for a compaction must be the last
/// item. A body must not have both `previous_response_id` and `conversation`.
fn compactions(found: &mut Violations<'_>, root: &Value<'_>, items: &[Value<'_>]) {
    for (idx, item) in items.iter().enumerate() {
        let place = format!("input.{idx}");
        let what = match &*kind(item) {
            "compaction" | "compaction_summary" if item.text_of("encrypted_content").is_none() => {
                "a compaction without its `encrypted_content`"
            }
            "compaction_trigger" if idx + 1 < items.len() => {
                "items follow a request for a compaction"
            }
            _ => continue,
        };
        found.add(Invariant::Opaque, item, &place, what);
    }
    let both = root.any(&["previous_response_id"]).zip(root.any(&["conversation"]));
    if let Some((previous, _)) = both {
        let what = "it does not go together with `conversation`";
        found.add(Invariant::Opaque, previous, "previous_response_id", what);
    }
}
