//! What Gemini's `generateContent` refuses.
//!
//! The rules are from the provider's pages below <https://ai.google.dev>: `api/generate-content`,
//! `api/caching`, `gemini-api/docs/function-calling`, `gemini-api/docs/thought-signatures`, and
//! from refusals that users of the service published. These checks parse a body on their own and do
//! not use the module that makes bodies.

use epitome_json::Value;
use epitome_model::Invariant;

use crate::Violations;

/// The keys of a part's data, each in both spellings. A part has data under exactly one of these
/// keys, or under none if it has a `toolResponse`.
const DATA: [[&str; 2]; 8] = [
    ["text", "text"],
    ["inlineData", "inline_data"],
    ["fileData", "file_data"],
    ["functionCall", "function_call"],
    ["functionResponse", "function_response"],
    ["executableCode", "executable_code"],
    ["codeExecutionResult", "code_execution_result"],
    ["toolCall", "tool_call"],
];
/// Keys that a part may have in addition to its data.
const BESIDE: [&str; 10] = [
    "thought",
    "thoughtSignature",
    "thought_signature",
    "videoMetadata",
    "video_metadata",
    "mediaResolution",
    "media_resolution",
    "partMetadata",
    "part_metadata",
    "toolResponse",
];
const SIGNATURES: [&str; 2] = ["thoughtSignature", "thought_signature"];

/// The invariants of Gemini's `generateContent`.
pub fn invariants(found: &mut Violations<'_>, root: &Value<'_>) {
    let contents = root.list_of("contents");
    if contents.is_empty() {
        found.add(Invariant::Roles, root, "contents", "there is no content");
    }
    for (idx, it) in contents.iter().enumerate() {
        content(found, it, &format!("contents.{idx}"));
    }
    if let Some(first) = contents.first().filter(|first| first.is("role", "model")) {
        found.add(Invariant::Roles, first, "contents.0", "the first content is not of the user");
    }
    pairs(found, contents);
    signatures(found, contents);
    cached(found, root);
}

fn calls<'v, 'd>(content: &'v Value<'d>) -> impl Iterator<Item = (usize, &'v Value<'d>)> {
    members_of_parts(content, ["functionCall", "function_call"])
}

fn responses<'v, 'd>(content: &'v Value<'d>) -> impl Iterator<Item = (usize, &'v Value<'d>)> {
    members_of_parts(content, ["functionResponse", "function_response"])
}

fn members_of_parts<'v, 'd>(
    content: &'v Value<'d>,
    keys: [&'static str; 2],
) -> impl Iterator<Item = (usize, &'v Value<'d>)> {
    let parts = content.list_of("parts").iter().enumerate();
    parts.filter_map(move |(n, part)| Some((n, part.any(&keys)?)))
}

fn content(found: &mut Violations<'_>, content: &Value<'_>, place: &str) {
    found.check_keys(content, place, &["role", "parts"]);
    let role = content.text_of("role").unwrap_or_else(|| "user".into());
    if !matches!(&*role, "user" | "model" | "function") {
        found.add(Invariant::Roles, content, place, format_args!("unknown role `{role}`"));
    }
    let parts = content.list_of("parts");
    if parts.is_empty() {
        found.add(Invariant::Empty, content, place, "a content without parts");
    }
    for (n, it) in parts.iter().enumerate() {
        part(found, it, &format!("{place}.parts.{n}"), &role);
    }
}

fn part(found: &mut Violations<'_>, part: &Value<'_>, place: &str, role: &str) {
    let known = [&BESIDE[..], &DATA.concat()].concat();
    found.check_keys(part, place, &known);
    let data: Vec<&[&str; 2]> = DATA.iter().filter(|keys| part.any(&keys[..]).is_some()).collect();
    match data.as_slice() {
        [] if part.get("toolResponse").is_none() => {
            found.add(Invariant::Empty, part, place, "a part of nothing");
        }
        [] | [_] => {}
        [..] => found.add(Invariant::Shape, part, place, "a part is one thing and not several"),
    }
    if part.any(&["text"]).is_some_and(|text| !text.is_text()) {
        found.add(Invariant::Shape, part, place, "`text` is not a string");
    }
    if let Some(call) = part.any(&DATA[3]) {
        if role != "model" {
            found.add(Invariant::Roles, call, place, "only `model` may make a call");
        }
        found.text(call, place, "name");
        if call.any(&["args"]).is_some_and(|args| !args.is_object()) {
            found.add(Invariant::Shape, call, place, "`args` is not an object");
        }
    }
    if let Some(response) = part.any(&DATA[4]) {
        if role == "model" {
            found.add(Invariant::Roles, response, place, "`model` may not give a result");
        }
        found.text(response, place, "name");
        if !response.get("response").is_some_and(Value::is_object) {
            found.add(Invariant::Shape, response, place, "`response` is not an object");
        }
    }
}

/// A content with calls must not follow a content of the model. The next content must have as many
/// results as there are calls, of the same functions.
fn pairs(found: &mut Violations<'_>, contents: &[Value<'_>]) {
    for (idx, content) in contents.iter().enumerate() {
        let place = format!("contents.{idx}");
        let made: Vec<(usize, &Value<'_>)> = calls(content).collect();
        if let Some((n, call)) = made.first() {
            let before = idx.checked_sub(1).map(|before| &contents[before]);
            if before.is_some_and(|before| before.is("role", "model")) {
                let what = "calls follow another turn of the model";
                found.add(Invariant::Position, call, &format!("{place}.parts.{n}"), what);
            }
        }
        let next = contents.get(idx + 1);
        let answers: Vec<&Value<'_>> =
            next.into_iter().flat_map(responses).map(|(_, response)| response).collect();
        if made.len() != answers.len() {
            let at = answers.first().copied().filter(|_| made.is_empty()).unwrap_or(content);
            let what = format_args!("{} calls, and {} results behind", made.len(), answers.len());
            found.add(Invariant::Pairing, at, &place, what);
        } else {
            matching(found, &place, &made, &answers);
        }
    }
    if let Some((n, response)) = contents.first().and_then(|first| responses(first).next()) {
        let place = format!("contents.0.parts.{n}");
        found.add(Invariant::Pairing, response, &place, "a result without its call before it");
    }
}

/// Each call must have a result of the same function, in any order; if a call and its result both
/// have an id, the ids must match.
fn matching(
    found: &mut Violations<'_>,
    place: &str,
    made: &[(usize, &Value<'_>)],
    answers: &[&Value<'_>],
) {
    let mut open: Vec<&Value<'_>> = answers.to_vec();
    for (n, call) in made {
        let id = call.text_of("id");
        let name = call.text_of("name").unwrap_or_default();
        let answer = open.iter().position(|answer| {
            let same_id = match (&id, answer.text_of("id")) {
                (Some(id), Some(other)) => *id == other,
                (Some(_) | None, _) => true,
            };
            same_id && answer.is("name", &name)
        });
        match answer {
            Some(idx) => {
                open.remove(idx);
            }
            None => {
                let what = format_args!("the call of `{name}` has no result");
                found.add(Invariant::Pairing, call, &format!("{place}.parts.{n}"), what);
            }
        }
    }
}

/// Of the contents after the last user content without results, those with calls are compared: if
/// the first call of one has a thought signature, the first call of each must have one.
fn signatures(found: &mut Violations<'_>, contents: &[Value<'_>]) {
    let prompt = contents
        .iter()
        .rposition(|content| !content.is("role", "model") && responses(content).next().is_none());
    let from = prompt.map_or(0, |prompt| prompt + 1);
    let steps = contents.iter().enumerate().skip(from);
    let steps: Vec<(usize, usize, &Value<'_>)> = steps
        .filter_map(|(idx, content)| {
            let (n, _) = calls(content).next()?;
            Some((idx, n, &content.list_of("parts")[n]))
        })
        .collect();
    if !steps.iter().any(|(_, _, part)| is_signed(part)) {
        return;
    }
    for (idx, n, part) in steps.iter().filter(|(_, _, part)| !is_signed(part)) {
        let what = "the first call of a step is without its signature, and others have one";
        found.add(Invariant::Reasoning, part, &format!("contents.{idx}.parts.{n}"), what);
    }
}

fn is_signed(part: &Value<'_>) -> bool {
    part.any(&SIGNATURES).is_some()
}

/// Cached content has its own instructions and tools: a request that uses it must not have others.
fn cached(found: &mut Violations<'_>, root: &Value<'_>) {
    if root.any(&["cachedContent", "cached_content"]).is_none() {
        return;
    }
    for key in ["systemInstruction", "system_instruction", "tools", "toolConfig", "tool_config"] {
        if let Some(other) = root.any(&[key]) {
            let what = "it does not go together with cached content";
            found.add(Invariant::Cache, other, key, what);
        }
    }
}
