//! Checks an item of this API: whether each part of it is understood.

use epitome_json::Value;

use crate::message::{self, CheckResult, Replacements, check_text, has_only, kind, reject, text};

/// Kinds of opaque parts that are sent unchanged, to this API only. A picture is opaque if its
/// bytes are not in the body, or if it has a cache marker.
pub const CARRIED: [&str; 2] = ["input_image", "input_file"];

/// Calls that the service answers itself, and lists of tools: sent unchanged, to this API only.
pub const SERVICE_CALLS: [&str; 6] = [
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
];

pub fn check_message(item: &Value<'_>, instead: &mut Replacements) -> CheckResult {
    match item.text_of("type").as_deref() {
        Some("message") => message(item, instead),
        None if item.get("type").is_none() => message(item, instead),
        Some("reasoning") => match item.get("summary") {
            Some(summary) if summary.is_list() => Ok(()),
            Some(_) | None => reject("no `summary`"),
        },
        Some("function_call") => call(item, "arguments"),
        Some("custom_tool_call") => call(item, "input"),
        Some("function_call_output" | "custom_tool_call_output") => {
            has_only(item, &["call_id", "output"])?;
            text(item, "call_id")?;
            let kinds = ["input_text", "output_text", "text", "input_image", "input_file"];
            check_text(item, "output", |part| self::part(part, &kinds, instead))
        }
        Some(own) if SERVICE_CALLS.contains(&own) => Ok(()),
        Some(_) | None => kind(item),
    }
}

fn message(item: &Value<'_>, instead: &mut Replacements) -> CheckResult {
    let role = message::role(item, &["user", "assistant", "system", "developer"])?;
    has_only(item, &["content"])?;
    let kinds: &[&str] = match role {
        "assistant" => &["output_text", "text", "refusal"],
        "user" => &["input_text", "text", "input_image", "input_file"],
        _ => &["input_text", "text"],
    };
    check_text(item, "content", |part| self::part(part, kinds, instead))
}

fn part(part: &Value<'_>, kinds: &[&str], instead: &mut Replacements) -> CheckResult {
    let known = part.text_of("type").filter(|it| kinds.contains(&&**it));
    match known.as_deref() {
        Some("input_image" | "input_file") => Ok(()),
        Some("refusal") => {
            has_only(part, &["refusal"])?;
            text(part, "refusal")?;
            let words = part.get("refusal").map_or(&b"\"\""[..], Value::raw);
            let words = String::from_utf8_lossy(words);
            instead.replace(part, format!(r#"{{"type":"output_text","text":{words}}}"#));
            Ok(())
        }
        Some(_) => has_only(part, &["text"]).and_then(|()| text(part, "text")),
        None => kind(part),
    }
}

fn call(item: &Value<'_>, key: &str) -> CheckResult {
    has_only(item, &["call_id", key])?;
    text(item, "call_id")?;
    text(item, "name")?;
    text(item, key)
}
