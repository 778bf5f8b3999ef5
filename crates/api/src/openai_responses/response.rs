//! A response of OpenAI's Responses API:
//! <https://platform.openai.com/docs/api-reference/responses>.

use epitome_json::Value;
use epitome_model::StopReason;

use crate::response::{Parsed, raw, usage};

pub(super) fn parse(root: &Value<'_>) -> Option<Parsed> {
    let output = root.get("output").filter(|output| output.is_list())?;
    let mut parts = output.list().iter().flat_map(|item| item.list_of("content"));
    let declined = parts.any(|part| part.is("type", "refusal"));
    let because = root.get("incomplete_details").and_then(|details| details.text_of("reason"));
    let stop = match (root.text_of("status").as_deref(), because.as_deref()) {
        _ if declined => Some(StopReason::Refused),
        (Some("completed"), _) => Some(StopReason::End),
        (Some("incomplete"), Some("max_output_tokens")) => Some(StopReason::Length),
        (Some("incomplete"), Some("content_filter")) => Some(StopReason::Refused),
        (other, _) => other.map(|other| StopReason::Other(other.to_owned())),
    };
    let usage = usage(root.get("usage"), "input_tokens", "output_tokens", "input_tokens_details");
    let messages = output.list().iter().map(raw).collect();
    Some(Parsed { messages, model: root.text_of("model").map(String::from), stop, usage })
}
