//! A response of Anthropic's Messages API: <https://docs.claude.com/en/api/messages>.

use epitome_json::Value;
use epitome_model::{StopReason, TokenUsage};

use crate::response::{Parsed, count, raw};

pub(super) fn parse(root: &Value<'_>) -> Option<Parsed> {
    let content = root.get("content").filter(|content| content.is_list())?;
    let mut messages = Vec::new();
    if !content.list().is_empty() {
        messages.push(format!(r#"{{"role":"assistant","content":{}}}"#, raw(content)));
    }
    let usage = root.get("usage");
    let more = |key| count(usage, key).unwrap_or_default();
    let usage = count(usage, "input_tokens").map(|input| TokenUsage {
        input,
        cached: more("cache_read_input_tokens"),
        cache_written: more("cache_creation_input_tokens"),
        output: more("output_tokens"),
    });
    let stop = root.text_of("stop_reason").map(|reason| match &*reason {
        "end_turn" | "stop_sequence" => StopReason::End,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "tool_use" => StopReason::Call,
        "refusal" => StopReason::Refused,
        other => StopReason::Other(other.to_owned()),
    });
    Some(Parsed { messages, model: root.text_of("model").map(String::from), stop, usage })
}
