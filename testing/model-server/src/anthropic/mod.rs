//! Anthropic Messages: <https://docs.claude.com/en/api/messages>.

pub mod invariants;

use crate::reply::{Reply, identifier, rough_tokens};
use crate::script::{Ending, Step};
use crate::sign::sign;
use crate::sse::{Events, deltas};
use crate::stage::{Outcome, Stage};
use serde_json::{Value, json};

/// Answers `POST /v1/messages`.
pub(crate) fn reply(body: &Value, stage: &Stage) -> (Reply, Outcome) {
    if let Err(refusal) = invariants::check(body) {
        let error = json!({ "type": "invalid_request_error", "message": refusal.0 });
        let id = identifier("req_", body, 0);
        let reply = json!({ "type": "error", "error": error, "request_id": id });
        return (Reply::json(400, &reply), Outcome::Refused(refusal.0));
    }
    let offers_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let (step, outcome) = stage.answer(offers_tools, &first_user_text(&body["messages"]));
    let message = message(body, &step);
    let reply = if body["stream"] == true {
        Reply::stream(stream(&message))
    } else {
        Reply::json(200, &message)
    };
    (reply, outcome)
}

fn first_user_text(messages: &Value) -> String {
    let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(first) = messages.iter().find(|message| message["role"] == "user") else {
        return String::new();
    };
    let content = &first["content"];
    let texts = content.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
    content.as_str().into_iter().chain(texts).collect::<Vec<_>>().join("\n")
}

fn message(body: &Value, step: &Step) -> Value {
    let history = &body["messages"];
    let thinks = matches!(body["thinking"]["type"].as_str(), Some("enabled" | "adaptive"));
    let mut content = Vec::new();
    if let Some(thinking) = step.thinking.as_ref().filter(|_| thinks) {
        content
            .push(json!({ "type": "thinking", "thinking": thinking, "signature": sign(thinking) }));
    }
    if let Some(text) = &step.text {
        content.push(json!({ "type": "text", "text": text }));
    }
    for (number, call) in step.calls.iter().enumerate() {
        let id = identifier("toolu_", history, number);
        content
            .push(json!({ "type": "tool_use", "id": id, "name": call.name, "input": call.input }));
    }
    let stop = match step.ending {
        Ending::Length => "max_tokens",
        Ending::Refused => "refusal",
        Ending::Done if step.calls.is_empty() => "end_turn",
        Ending::Done => "tool_use",
    };
    json!({
        "id": identifier("msg_", history, 0), "type": "message", "role": "assistant",
        "model": body["model"], "stop_reason": stop, "stop_sequence": null,
        "usage": {
            "input_tokens": rough_tokens(history), "output_tokens": rough_tokens(&json!(content)),
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        },
        "content": content,
    })
}

/// The message as events: <https://docs.claude.com/en/docs/build-with-claude/streaming>.
fn stream(message: &Value) -> String {
    let mut events = Events::default();
    let mut opening = message.clone();
    opening["content"] = json!([]);
    opening["stop_reason"] = Value::Null;
    opening["usage"]["output_tokens"] = json!(1);
    events.named(&json!({ "type": "message_start", "message": opening }));
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        stream_block(&mut events, index, block);
    }
    events.named(&json!({
        "type": "message_delta",
        "delta": { "stop_reason": message["stop_reason"], "stop_sequence": null },
        "usage": { "output_tokens": message["usage"]["output_tokens"] },
    }));
    events.named(&json!({ "type": "message_stop" }));
    events.finish()
}

fn stream_block(events: &mut Events, index: usize, block: &Value) {
    let text = |key: &str| block[key].as_str().unwrap_or_default();
    let (empty, parts): (Value, Vec<Value>) = match text("type") {
        "thinking" => {
            let mut parts: Vec<Value> = deltas(text("thinking"))
                .map(|part| json!({ "type": "thinking_delta", "thinking": part }))
                .collect();
            parts.push(json!({ "type": "signature_delta", "signature": block["signature"] }));
            (json!({ "type": "thinking", "thinking": "", "signature": "" }), parts)
        }
        "tool_use" => {
            let parts = deltas(&block["input"].to_string())
                .map(|part| json!({ "type": "input_json_delta", "partial_json": part }))
                .collect();
            let (id, name) = (&block["id"], &block["name"]);
            (json!({ "type": "tool_use", "id": id, "name": name, "input": {} }), parts)
        }
        _ => {
            let parts = deltas(text("text"))
                .map(|part| json!({ "type": "text_delta", "text": part }))
                .collect();
            (json!({ "type": "text", "text": "" }), parts)
        }
    };
    let start = json!({ "type": "content_block_start", "index": index, "content_block": empty });
    events.named(&start);
    for part in parts {
        let delta = json!({ "type": "content_block_delta", "index": index, "delta": part });
        events.named(&delta);
    }
    events.named(&json!({ "type": "content_block_stop", "index": index }));
}
