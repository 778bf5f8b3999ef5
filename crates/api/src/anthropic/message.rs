//! Checks a message of this API: whether each part of it is understood.

use epitome_json::Value;

use crate::message::{
    self, CheckResult, Replacements, check_text, has_only, kind, object, reject, text,
};

pub fn check_message(message: &Value<'_>, _: &mut Replacements) -> CheckResult {
    // The role `system` is refused: the system prompt is not an element of the list of messages.
    let role = message::role(message, &["user", "assistant"])?;
    if message.text_of("type").is_some_and(|it| it != "message") {
        return kind(message);
    }
    has_only(message, &["content"])?;
    check_text(message, "content", |block| self::block(block, role))
}

fn block(block: &Value<'_>, role: &str) -> CheckResult {
    let kind = block.text_of("type").unwrap_or_default();
    let speaker = match &*kind {
        "tool_result" => "user",
        "thinking" | "redacted_thinking" | "tool_use" | "server_tool_use" | "mcp_tool_use"
        | "compaction" => "assistant",
        "text" | "image" | "document" | "search_result" | "container_upload" | "tool_reference" => {
            role
        }
        // Tools that the service runs have many kinds of results, which are sent back unchanged.
        other if other.ends_with("_tool_result") => "assistant",
        _ => return message::kind(block),
    };
    if role != speaker {
        return reject(format_args!("a `{kind}` of the role `{role}`"));
    }
    match &*kind {
        "text" => has_only(block, &["text"]).and_then(|()| text(block, "text")),
        "thinking" => text(block, "thinking"),
        "redacted_thinking" => text(block, "data"),
        "image" => object(block, "source").map(|_| ()),
        "tool_use" => {
            has_only(block, &["input"])?;
            text(block, "id")?;
            text(block, "name")?;
            object(block, "input").map(|_| ())
        }
        "tool_result" => {
            has_only(block, &["tool_use_id", "content"])?;
            text(block, "tool_use_id")?;
            match block.get("content") {
                Some(content) if !content.is_null() => check_text(block, "content", part),
                Some(_) | None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Checks a part of a tool result.
fn part(part: &Value<'_>) -> CheckResult {
    match part.text_of("type").as_deref() {
        Some("text") => has_only(part, &["text"]).and_then(|()| text(part, "text")),
        Some("image") => object(part, "source").map(|_| ()),
        Some("document" | "search_result" | "tool_reference") => Ok(()),
        Some(_) | None => kind(part),
    }
}
