//! Checks a message of this API: whether each part of it is understood.

use epitome_json::Value;

use crate::message::{
    self, CheckResult, Replacements, check_text, has_only, is_nothing, kind, list, object, reject,
    text,
};

/// Kinds of opaque parts that are sent unchanged, to this API only. A picture is opaque if its
/// bytes are not in the body, or if it has a cache marker.
pub const CARRIED: [&str; 3] = ["image_url", "input_audio", "file"];

pub fn check_message(message: &Value<'_>, instead: &mut Replacements) -> CheckResult {
    let role = message::role(message, &["system", "developer", "user", "assistant", "tool"])?;
    if message.get("type").is_some_and(|it| !it.is_null()) {
        return kind(message);
    }
    match role {
        "assistant" => response(message, instead),
        "tool" => {
            has_only(message, &["content", "tool_call_id"])?;
            text(message, "tool_call_id")?;
            check_text(message, "content", |part| self::part(part, &["text", "image_url"], instead))
        }
        "user" => {
            has_only(message, &["content"])?;
            let kinds = ["text", "image_url", "input_audio", "file"];
            check_text(message, "content", |part| self::part(part, &kinds, instead))
        }
        _ => {
            has_only(message, &["content"])?;
            check_text(message, "content", |part| self::part(part, &["text"], instead))
        }
    }
}

fn response(message: &Value<'_>, instead: &mut Replacements) -> CheckResult {
    const OWN: [&str; 6] =
        ["content", "refusal", "tool_calls", "reasoning", "reasoning_content", "reasoning_details"];
    has_only(message, &OWN)?;
    let content = message.get("content").filter(|content| !content.is_null());
    if content.is_some() {
        check_text(message, "content", |part| self::part(part, &["text", "refusal"], instead))?;
    }
    if let Some(calls) = message.get("tool_calls").filter(|calls| !calls.is_null()) {
        if !calls.is_list() {
            return reject("a `tool_calls` that is not a list");
        }
        list(calls, "tool_calls", call)?;
    }
    let Some(refusal) = message.get("refusal").filter(|it| !is_nothing(it)) else { return Ok(()) };
    if !refusal.is_text() || content.is_some_and(|content| !is_nothing(content)) {
        return reject("a `refusal` next to a `content`");
    }
    let words = String::from_utf8_lossy(refusal.raw()).into_owned();
    match message.get("content") {
        Some(content) => instead.replace(content, words),
        None => instead.member(message, "content", &words),
    }
    Ok(())
}

fn part(part: &Value<'_>, kinds: &[&str], instead: &mut Replacements) -> CheckResult {
    let known = part.text_of("type").filter(|it| kinds.contains(&&**it));
    match known.as_deref() {
        Some("text") => has_only(part, &["text"]).and_then(|()| text(part, "text")),
        Some("refusal") => {
            has_only(part, &["refusal"])?;
            text(part, "refusal")?;
            let words = part.get("refusal").map_or(&b"\"\""[..], Value::raw);
            let words = String::from_utf8_lossy(words);
            instead.replace(part, format!(r#"{{"type":"text","text":{words}}}"#));
            Ok(())
        }
        Some("image_url") => text(object(part, "image_url")?, "url"),
        Some(other) => object(part, other).map(|_| ()),
        None => kind(part),
    }
}

fn call(call: &Value<'_>) -> CheckResult {
    text(call, "id")?;
    let (function, key) = match call.text_of("type").as_deref() {
        Some("custom") => (object(call, "custom")?, "input"),
        Some("function") | None => (object(call, "function")?, "arguments"),
        Some(_) => return kind(call),
    };
    text(function, "name")?;
    match function.get(key) {
        // Some services send the arguments as an object instead of a string.
        Some(arguments) if arguments.is_object() => Ok(()),
        Some(_) | None => text(function, key),
    }
}
