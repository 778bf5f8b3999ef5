//! A response of Gemini: <https://ai.google.dev/api/generate-content>.

use epitome_json::Value;
use epitome_model::{StopReason, TokenUsage, Tokens};

use crate::response::{Parsed, count, raw};

pub(super) fn parse(root: &Value<'_>) -> Option<Parsed> {
    let usage = root.get("usageMetadata");
    let cached = count(usage, "cachedContentTokenCount").unwrap_or_default();
    let more = |key| count(usage, key).unwrap_or_default();
    let usage = count(usage, "promptTokenCount").map(|input| TokenUsage {
        input: input - cached,
        cached,
        cache_written: Tokens(0),
        output: more("candidatesTokenCount") + more("thoughtsTokenCount"),
    });
    let model = root.text_of("modelVersion").map(String::from);
    let blocked = root.get("promptFeedback").and_then(|it| it.text_of("blockReason"));
    if blocked.is_some() {
        let stop = Some(StopReason::Refused);
        return Some(Parsed { messages: Vec::new(), model, stop, usage });
    }
    let candidate = root.list_of("candidates").first().filter(|it| it.is_object())?;
    let stop = candidate.text_of("finishReason").map(|reason| match &*reason {
        "STOP" => StopReason::End,
        "MAX_TOKENS" => StopReason::Length,
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => StopReason::Call,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
            StopReason::Refused
        }
        other => StopReason::Other(other.to_owned()),
    });
    let parts = candidate.get("content").and_then(|content| content.get("parts"));
    let parts = parts.filter(|parts| !parts.list().is_empty());
    let message = parts.map(|parts| format!(r#"{{"role":"model","parts":{}}}"#, raw(parts)));
    Some(Parsed { messages: message.into_iter().collect(), model, stop, usage })
}
