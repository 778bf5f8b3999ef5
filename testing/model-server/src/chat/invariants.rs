//! Checks a request's history as OpenAI Chat Completions does.
//!
//! Written from the provider's reference (`/docs/api-reference/chat/create`) and guide on function
//! calling (`/docs/guides/function-calling`), both below <https://platform.openai.com>.

use crate::refusal::Refusal;
use serde_json::Value;
use std::collections::HashSet;

type Verdict = Result<(), Refusal>;

/// The keys of a message of each role. `reasoning_content` and similar keys are added by compatible
/// services, and agents send them back.
const KEYS: &[(&str, &[&str])] = &[
    ("system", &["content", "name"]),
    ("developer", &["content", "name"]),
    ("user", &["content", "name"]),
    (
        "assistant",
        &[
            "content",
            "name",
            "tool_calls",
            "refusal",
            "audio",
            "function_call",
            "reasoning_content",
            "reasoning",
            "reasoning_text",
            "reasoning_details",
        ],
    ),
    ("tool", &["content", "tool_call_id", "name"]),
];

/// Checks whether the service would accept this request's history.
///
/// # Errors
///
/// The first invariant that the request violates, as the error text of the service.
pub fn check(body: &Value) -> Verdict {
    let Some(messages) = body["messages"].as_array().filter(|messages| !messages.is_empty()) else {
        return Refusal::because(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an \
             empty array instead.",
        );
    };
    let mut seen = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        shape(index, message)?;
        if message["role"] == "tool" {
            answer(message, &mut open)?;
            continue;
        }
        all_answered(&open)?;
        open = calls(index, message, &mut seen)?;
    }
    all_answered(&open)
}

fn shape(index: usize, message: &Value) -> Verdict {
    let role = message["role"].as_str().unwrap_or_default();
    let Some((_, keys)) = KEYS.iter().find(|(known, _)| *known == role) else {
        return Refusal::because(format!(
            "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', \
             'function', 'tool', and 'developer'."
        ));
    };
    for key in message.as_object().into_iter().flat_map(|message| message.keys()) {
        if key != "role" && !keys.contains(&key.as_str()) {
            return Refusal::because(format!(
                "Unrecognized request argument supplied: messages[{index}].{key}"
            ));
        }
    }
    content_shape(index, message)
}

fn content_shape(index: usize, message: &Value) -> Verdict {
    let content = &message["content"];
    if content.is_null() && !message["tool_calls"].is_array() {
        return Refusal::because(format!(
            "Invalid value for 'messages[{index}].content': expected a string, got null."
        ));
    }
    if content.as_array().is_some_and(Vec::is_empty) {
        return Refusal::because(format!(
            "Invalid 'messages[{index}].content': empty array. Expected an array with minimum \
             length 1, but got an empty array instead."
        ));
    }
    if !content.is_null() && !content.is_string() && !content.is_array() {
        return Refusal::because(format!(
            "Invalid type for 'messages[{index}].content': expected one of a string or array of \
             objects."
        ));
    }
    content.as_array().into_iter().flatten().enumerate().try_for_each(|(at, part)| {
        if part["type"] == "image_url" {
            image_shape(&format!("messages[{index}]"), &message["role"], &part["image_url"])?;
        }
        let known = match part["type"].as_str() {
            Some("text") => ["type", "text", "cache_control"],
            Some("image_url") => ["type", "image_url", "cache_control"],
            _ => return Ok(()),
        };
        let mut keys = part.as_object().into_iter().flat_map(|part| part.keys());
        match keys.find(|key| !known.contains(&key.as_str())) {
            Some(key) => Refusal::because(format!(
                "Unrecognized request argument supplied: messages[{index}].content[{at}].{key}"
            )),
            None => Ok(()),
        }
    })
}

/// Checks that a picture has an address, and that a user sends it.
fn image_shape(place: &str, role: &Value, image: &Value) -> Verdict {
    if role != "user" {
        return Refusal::because(format!(
            "Invalid '{place}'. Image URLs are only allowed for messages with role 'user', but \
             this message with role '{}' contains an image URL.",
            role.as_str().unwrap_or_default()
        ));
    }
    match image["url"].as_str() {
        None | Some("") => {
            Refusal::because(format!("Invalid type for '{place}.content.image_url.url'."))
        }
        Some(_) => Ok(()),
    }
}

/// Returns the ids of an assistant message's calls. Refuses calls that are not well-formed, and ids
/// that an earlier call has.
fn calls(
    index: usize,
    message: &Value,
    seen: &mut HashSet<String>,
) -> Result<Vec<String>, Refusal> {
    let mut ids = Vec::new();
    let Some(calls) = message["tool_calls"].as_array() else { return Ok(ids) };
    if calls.is_empty() {
        return Err(Refusal(format!(
            "Invalid 'messages[{index}].tool_calls': empty array. Expected an array with minimum \
             length 1, but got an empty array instead."
        )));
    }
    for (at, call) in calls.iter().enumerate() {
        let place = format!("messages[{index}].tool_calls[{at}]");
        let id = call["id"].as_str().unwrap_or_default();
        if id.is_empty() {
            return Err(Refusal(format!(
                "Invalid '{place}.id': empty string. Expected a string with minimum length 1, but \
                 got an empty string instead."
            )));
        }
        if !call["function"]["arguments"].is_string() {
            return Err(Refusal(format!(
                "Invalid type for '{place}.function.arguments': expected a string."
            )));
        }
        if !seen.insert(id.to_owned()) {
            return Err(Refusal(format!("Duplicate value for '{place}.id': '{id}'.")));
        }
        ids.push(id.to_owned());
    }
    Ok(ids)
}

fn answer(message: &Value, open: &mut Vec<String>) -> Verdict {
    let id = message["tool_call_id"].as_str().unwrap_or_default();
    match open.iter().position(|call| call == id) {
        Some(at) => {
            open.remove(at);
            Ok(())
        }
        None => Refusal::because(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding \
             message with 'tool_calls'.",
        ),
    }
}

fn all_answered(open: &[String]) -> Verdict {
    if open.is_empty() {
        return Ok(());
    }
    Refusal::because(format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    ))
}

#[cfg(test)]
#[path = "invariants_tests.rs"]
mod tests;
