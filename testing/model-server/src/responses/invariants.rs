//! Checks a request's history as OpenAI Responses does.
//!
//! Written from the provider's reference (`/docs/api-reference/responses/create`) and guides on
//! function calling and reasoning (`/docs/guides/function-calling`, `/docs/guides/reasoning`), all
//! below <https://platform.openai.com>.

use crate::refusal::Refusal;
use crate::sign::{Signature, verify};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

type Verdict = Result<(), Refusal>;

/// What this server writes after the first `_` in the id of an item that follows reasoning.
pub(super) const REASONED: &str = "r_";

/// Kinds of calls, their names in refusals, and the kinds of their results.
const CALLS: &[(&str, &str, &str)] = &[
    ("function_call", "function call", "function_call_output"),
    ("custom_tool_call", "custom tool call", "custom_tool_call_output"),
    ("local_shell_call", "local shell call", "local_shell_call_output"),
    ("tool_search_call", "tool search call", "tool_search_output"),
];

/// Keys that agents, or epitome, store in items and must not send.
const PRIVATE: &[&str] = &["ordinal", "timestamp", "payload", "metadata", "_compressed", "epitome"];

/// Checks whether the service would accept this request's history.
///
/// # Errors
///
/// The first invariant that the request violates, as the error text of the service.
pub fn check(body: &Value) -> Verdict {
    let Some(items) = body["input"].as_array() else {
        return if body["input"].is_string() {
            Ok(())
        } else {
            Refusal::because("Missing required parameter: 'input'.")
        };
    };
    let mut ids = HashSet::new();
    for (at, item) in items.iter().enumerate() {
        if let Some(id) = item["id"].as_str().filter(|id| !ids.insert(*id)) {
            return Refusal::because(format!(
                "Duplicate item found with id {id}. Remove duplicate items from your input and \
                 try again."
            ));
        }
        shape(at, item)?;
    }
    pairs(items)?;
    reasoning(items)
}

fn shape(at: usize, item: &Value) -> Verdict {
    let place = format!("input[{at}]");
    let keys = item.as_object().into_iter().flat_map(|item| item.keys());
    for key in keys {
        if PRIVATE.contains(&key.as_str()) {
            return Refusal::because(format!("Unknown parameter: '{place}.{key}'."));
        }
    }
    match item["type"].as_str() {
        None if item["role"].is_string() => message(item),
        Some("message") => message(item),
        Some("function_call") => text(item, &place, "arguments"),
        Some("custom_tool_call") => text(item, &place, "input"),
        Some("function_call_output" | "custom_tool_call_output") => {
            if item["output"].is_null() {
                return Refusal::because(format!("Missing required parameter: '{place}.output'."));
            }
            parts(&item["output"], &["input_text", "input_image", "input_file"])
        }
        Some("reasoning") => sealed(item, &place),
        Some(
            "local_shell_call"
            | "local_shell_call_output"
            | "tool_search_call"
            | "tool_search_output"
            | "web_search_call"
            | "image_generation_call"
            | "additional_tools"
            | "agent_message"
            | "compaction"
            | "compaction_summary"
            | "compaction_trigger"
            | "context_compaction",
        ) => Ok(()),
        kind => Refusal::because(format!(
            "Invalid value: '{}'. ({place}.type)",
            kind.unwrap_or_default()
        )),
    }
}

fn text(item: &Value, place: &str, key: &str) -> Verdict {
    if item[key].is_string() {
        Ok(())
    } else {
        Refusal::because(format!(
            "Invalid type for '{place}.{key}': expected a string, but got something else instead."
        ))
    }
}

fn message(item: &Value) -> Verdict {
    let known: &[&str] = match item["role"].as_str() {
        Some("assistant") => &["output_text", "refusal"],
        Some("user" | "developer" | "system") => &["input_text", "input_image", "input_file"],
        role => {
            return Refusal::because(format!("Invalid value: '{}'.", role.unwrap_or_default()));
        }
    };
    parts(&item["content"], known)
}

/// Checks the kinds of parts, and that a picture has an address or is a file.
fn parts(content: &Value, known: &[&str]) -> Verdict {
    for part in content.as_array().into_iter().flatten() {
        let kind = part["type"].as_str().unwrap_or_default();
        if !known.contains(&kind) {
            return Refusal::because(format!(
                "Invalid value: '{kind}'. Supported values are: {}.",
                known.join(", ")
            ));
        }
        let is_there = |key: &str| part[key].as_str().is_some_and(|text| !text.is_empty());
        if kind == "input_image" && !is_there("image_url") && !is_there("file_id") {
            return Refusal::because("Missing required parameter: 'image_url'.");
        }
    }
    Ok(())
}

/// Refuses reasoning without a summary, and reasoning whose encrypted content is not this server's
/// or belongs to another summary. Reasoning without encrypted content is accepted.
fn sealed(item: &Value, place: &str) -> Verdict {
    let Some(summary) = item["summary"].as_array() else {
        return Refusal::because(format!("Missing required parameter: '{place}.summary'."));
    };
    let summary_text: String =
        summary.iter().map(|part| part["text"].as_str().unwrap_or_default()).collect();
    match item["encrypted_content"].as_str().map(|seal| verify(seal, &summary_text)) {
        None | Some(Signature::Valid) => Ok(()),
        Some(Signature::Altered | Signature::Foreign) => Refusal::because(format!(
            "The encrypted content for item {} could not be verified. Reason: Encrypted content \
             could not be decrypted or parsed.",
            item["id"].as_str().unwrap_or_default()
        )),
    }
}

/// Checks that every call has a result of the fitting kind after it, and that every result has a
/// call before it.
fn pairs(items: &[Value]) -> Verdict {
    let mut open: HashMap<&str, &str> = HashMap::new();
    let mut order: Vec<&str> = Vec::new();
    for item in items {
        let kind = item["type"].as_str().unwrap_or_default();
        let id = item["call_id"].as_str().unwrap_or_default();
        if CALLS.iter().any(|(call, ..)| *call == kind) {
            open.insert(id, kind);
            order.push(id);
        }
        let Some((call, name, _)) = CALLS.iter().find(|(.., output)| *output == kind) else {
            continue;
        };
        if open.remove(id) != Some(*call) {
            return Refusal::because(format!(
                "No tool call found for {name} output with call_id {id}."
            ));
        }
    }
    match order.into_iter().find_map(|id| Some((id, open.get(id)?))) {
        Some((id, kind)) => {
            let name = CALLS.iter().find(|(call, ..)| call == kind).map_or("", |(_, name, _)| name);
            Refusal::because(format!("No tool output found for {name} {id}."))
        }
        None => Ok(()),
    }
}

/// Checks that after reasoning there is an item of the model, and that each item which this server
/// sent after reasoning ([`REASONED`]) still has reasoning before it; the latter only since the
/// last message of the user.
fn reasoning(items: &[Value]) -> Verdict {
    let is_user = |item: &Value| item["role"] == "user";
    let turn = items.iter().rposition(is_user).unwrap_or(0);
    let mut reasoned: Option<&Value> = None;
    let mut waiting: Option<&Value> = None;
    for (at, item) in items.iter().enumerate() {
        let id = item["id"].as_str().unwrap_or_default();
        let by_model = item["role"] == "assistant"
            || item["type"].as_str().is_some_and(|kind| kind.ends_with("_call"));
        if item["type"] == "reasoning" {
            (reasoned, waiting) = (Some(item), Some(item));
        } else if by_model {
            waiting = None;
            let wants = id.split_once('_').is_some_and(|(_, rest)| rest.starts_with(REASONED));
            if at > turn && wants && reasoned.is_none() {
                return Refusal::because(format!(
                    "Item '{id}' of type '{}' was provided without its required 'reasoning' item.",
                    item["type"].as_str().unwrap_or("message")
                ));
            }
        } else {
            if let Some(alone) = waiting {
                return Refusal::because(format!(
                    "Item '{}' of type 'reasoning' was provided without its required following \
                     item.",
                    alone["id"].as_str().unwrap_or_default()
                ));
            }
            reasoned = None;
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "invariants_tests.rs"]
mod tests;
