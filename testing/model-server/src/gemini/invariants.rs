//! Checks a request's history as Google's Gemini API does.
//!
//! Written from the provider's reference (`/api/caching#Content`) and guides on function calling
//! and on thought signatures, all below <https://ai.google.dev>, and from answers of the real
//! service.

use crate::refusal::Refusal;
use crate::sign::{Signature, verify};
use serde_json::Value;
use std::collections::HashSet;

type Verdict = Result<(), Refusal>;

/// The keys of a part's content; each part has exactly one.
const DATA: [&str; 7] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
];
/// The other keys of a part.
const BESIDE: [&str; 3] = ["thought", "thoughtSignature", "videoMetadata"];
const CALL: [&str; 3] = ["id", "name", "args"];
const RESPONSE: [&str; 6] = ["id", "name", "response", "parts", "willContinue", "scheduling"];

/// Placeholders that clients send for a missing signature.
const SKIP: [&str; 2] =
    ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

/// Checks whether the service would accept this request's history.
///
/// # Errors
///
/// The first invariant that the request violates, as the error text of the service.
pub fn check(model: &str, body: &Value) -> Verdict {
    let contents = body["contents"].as_array().map(Vec::as_slice).unwrap_or_default();
    if contents.is_empty() {
        return Refusal::because("* GenerateContentRequest.contents: contents is not specified\n");
    }
    for (index, content) in contents.iter().enumerate() {
        shape(index, content)?;
    }
    for index in 0..contents.len() {
        pairs(contents, index)?;
    }
    if model.starts_with("gemini-3") { signatures(contents) } else { Ok(()) }
}

fn shape(index: usize, content: &Value) -> Verdict {
    let place = format!("contents[{index}]");
    only_keys(content, &["role", "parts"], &place)?;
    if !matches!(content["role"].as_str(), Some("user" | "model") | None) {
        return Refusal::because("Please use a valid role: user, model.");
    }
    let parts = parts(content);
    if parts.is_empty() {
        return Refusal::because(format!(
            "* GenerateContentRequest.{place}.parts: contents.parts must not be empty.\n"
        ));
    }
    for (at, part) in parts.iter().enumerate() {
        let place = format!("{place}.parts[{at}]");
        only_keys(part, &[&DATA[..], &BESIDE].concat(), &place)?;
        match DATA.iter().filter(|key| !part[**key].is_null()).count() {
            1 => {}
            0 => {
                return Refusal::because(format!(
                    "* GenerateContentRequest.{place}.data: required oneof field 'data' must have \
                     one initialized field\n"
                ));
            }
            _ => {
                return Refusal::because(format!(
                    "Invalid value at '{place}' (oneof), oneof field 'data' is already set."
                ));
            }
        }
        let picture = &part["inlineData"];
        only_keys(picture, &["mimeType", "data", "displayName"], &format!("{place}.inline_data"))?;
        if picture.is_object() && !["mimeType", "data"].iter().all(|key| picture[key].is_string()) {
            return Refusal::because("Unable to process input image. Please retry or report.");
        }
        only_keys(&part["functionCall"], &CALL, &format!("{place}.function_call"))?;
        only_keys(&part["functionResponse"], &RESPONSE, &format!("{place}.function_response"))?;
        let signature = part["thoughtSignature"].as_str().filter(|it| !SKIP.contains(it));
        let foreign = |text: &str| verify(text, "") == Signature::Foreign;
        if signature.is_some_and(foreign) {
            return Refusal::because("Thought signature is not valid.");
        }
    }
    Ok(())
}

fn only_keys(object: &Value, keys: &[&str], place: &str) -> Verdict {
    let mut found = object.as_object().into_iter().flat_map(|object| object.keys());
    match found.find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Refusal::because(format!(
            "Invalid JSON payload received. Unknown name \"{key}\" at '{place}': Cannot find field."
        )),
        None => Ok(()),
    }
}

/// Checks a turn: calls must follow a turn of the user or results, and the next turn must have as
/// many results; results must follow a turn with calls to the same tools.
fn pairs(contents: &[Value], index: usize) -> Verdict {
    let calls = calls(&contents[index]);
    let before = index.checked_sub(1).map(|before| &contents[before]);
    if !calls.is_empty() {
        if before.is_none_or(|before| before["role"] == "model") {
            return Refusal::because(
                "Please ensure that function call turn comes immediately after a user turn or \
                 after a function response turn.",
            );
        }
        let Some(after) = contents.get(index + 1) else { return out_of_place() };
        if results(after).len() != calls.len() {
            return Refusal::because(
                "Please ensure that the number of function response parts is equal to the number \
                 of function call parts of the function call turn.",
            );
        }
    }
    let mut answered = results(&contents[index]);
    if !answered.is_empty() {
        let mut asked = before.map(self::calls).unwrap_or_default();
        if asked.is_empty() {
            return out_of_place();
        }
        asked.sort_unstable();
        answered.sort_unstable();
        if asked != answered {
            return Refusal::because(
                "Please ensure that the function response names match the function call names.",
            );
        }
    }
    Ok(())
}

fn out_of_place() -> Verdict {
    Refusal::because(
        "Please ensure that function response turn comes immediately after a function call turn.",
    )
}

/// Checks what models of the third generation require: in each turn of the model after the last
/// text of the user, the first call has a signature.
fn signatures(contents: &[Value]) -> Verdict {
    let asks = |content: &Value| {
        content["role"] != "model"
            && results(content).is_empty()
            && parts(content).iter().any(|part| part["text"].is_string())
    };
    let current = contents.iter().rposition(asks).unwrap_or(0);
    for (index, content) in contents.iter().enumerate().skip(current) {
        let first = parts(content).iter().find(|part| part["functionCall"].is_object());
        if let Some(part) = first.filter(|part| part["thoughtSignature"].is_null()) {
            return Refusal::because(format!(
                "Function call is missing a thought_signature in functionCall parts. This is \
                 required for tools to work correctly. Additional data, function call `{}`, \
                 position {index}.",
                part["functionCall"]["name"].as_str().unwrap_or_default()
            ));
        }
    }
    Ok(())
}

fn parts(content: &Value) -> &[Value] {
    content["parts"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The names of the tools that a turn calls, once for each call.
fn calls(content: &Value) -> Vec<&str> {
    let calls = parts(content).iter().map(|part| &part["functionCall"]);
    calls.filter(|call| call.is_object()).map(name).collect()
}

/// The names of the tools that a turn has results of, once for each result.
///
/// Gemini CLI 0.61.0 sends each result twice when it resumes a session. Whether the service refuses
/// this is unknown. Here results with an id that was already seen are ignored, so that such a
/// session can be tested.
fn results(content: &Value) -> Vec<&str> {
    let mut seen = HashSet::new();
    let results = parts(content).iter().map(|part| &part["functionResponse"]);
    results
        .filter(|result| result.is_object())
        .filter(|result| result["id"].as_str().is_none_or(|id| seen.insert(id)))
        .map(name)
        .collect()
}

fn name(tool: &Value) -> &str {
    tool["name"].as_str().unwrap_or_default()
}

#[cfg(test)]
#[path = "invariants_tests.rs"]
mod tests;
