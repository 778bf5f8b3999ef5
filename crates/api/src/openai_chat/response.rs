//! A response of Chat Completions: <https://platform.openai.com/docs/api-reference/chat>.

use epitome_json::Value;
use epitome_model::StopReason;

use super::read::REASONING;
use crate::message::is_nothing;
use crate::response::{Parsed, raw, usage};

/// The members of a response's message that the next request may send back, except reasoning.
const CONTENT: [&str; 3] = ["content", "refusal", "tool_calls"];

pub(super) fn parse(root: &Value<'_>) -> Option<Parsed> {
    let choice = root.list_of("choices").first()?;
    let message = choice.get("message").filter(|message| message.is_object())?;
    let stop = choice.text_of("finish_reason").map(|reason| match &*reason {
        "stop" => StopReason::End,
        "length" => StopReason::Length,
        "tool_calls" | "function_call" => StopReason::Call,
        "content_filter" => StopReason::Refused,
        other => StopReason::Other(other.to_owned()),
    });
    let usage =
        usage(root.get("usage"), "prompt_tokens", "completion_tokens", "prompt_tokens_details");
    let messages = self::message(message).into_iter().collect();
    Some(Parsed { messages, model: root.text_of("model").map(String::from), stop, usage })
}

/// The message of a response as the next request sends it back; `None` if it has no content.
fn message(message: &Value<'_>) -> Option<String> {
    let members = message.members().iter();
    let members = members.filter(|(key, value)| {
        let known = CONTENT.contains(&&**key) || REASONING.contains(&&**key);
        known && !is_nothing(value)
    });
    let members: Vec<String> =
        members.map(|(key, value)| format!(r#""{key}":{}"#, raw(value))).collect();
    let says = !members.is_empty();
    says.then(|| format!(r#"{{"role":"assistant",{}}}"#, members.join(",")))
}
