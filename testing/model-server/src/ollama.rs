//! Ollama's own API: <https://github.com/ollama/ollama/blob/main/docs/api.md>.

use serde_json::{Value, json};

use crate::reply::{Reply, rough_tokens};
use crate::script::Ending;
use crate::stage::{Outcome, Stage};

/// Answers `POST /api/chat` with one object, or, if the request does not switch streaming off, with
/// an object on each line. Requests with tools play the script.
pub(crate) fn reply(body: &Value, stage: &Stage) -> (Reply, Outcome) {
    let offers_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let (step, outcome) = stage.answer(offers_tools, first_user_text(body));
    let calls = step.calls.iter();
    let calls: Vec<Value> = calls
        .map(|call| json!({ "function": { "name": call.name, "arguments": call.input } }))
        .collect();
    let text = step.text.unwrap_or_default();
    let mut message = json!({ "role": "assistant", "content": text });
    if let Some(thinking) = &step.thinking {
        message["thinking"] = json!(thinking);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let because = if step.ending == Ending::Length { "length" } else { "stop" };
    let answer = json!({
        "model": body["model"], "created_at": "2023-11-14T22:13:20Z", "message": message,
        "done": true, "done_reason": because,
        "prompt_eval_count": rough_tokens(&body["messages"]),
        "eval_count": rough_tokens(&message),
    });
    // Streaming is the default.
    let reply = if body["stream"] == false { Reply::json(200, &answer) } else { stream(&answer) };
    (reply, outcome)
}

fn first_user_text(body: &Value) -> &str {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let first = messages.iter().find(|message| message["role"] == "user");
    first.and_then(|message| message["content"].as_str()).unwrap_or_default()
}

/// The answer as lines: reasoning, a text in two halves, the calls, the end.
fn stream(answer: &Value) -> Reply {
    let message = &answer["message"];
    let text = message["content"].as_str().unwrap_or_default();
    let middle = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
    let mut pieces =
        vec![json!({ "content": text[..middle] }), json!({ "content": text[middle..] })];
    if message["thinking"].is_string() {
        pieces.insert(0, json!({ "content": "", "thinking": message["thinking"] }));
    }
    if message["tool_calls"].is_array() {
        pieces.push(json!({ "content": "", "tool_calls": message["tool_calls"] }));
    }
    let mut body = String::new();
    for mut message in pieces {
        message["role"] = json!("assistant");
        let line = json!({ "model": answer["model"], "message": message, "done": false });
        body.push_str(&format!("{line}\n"));
    }
    let mut last = answer.clone();
    last["message"] = json!({ "role": "assistant", "content": "" });
    body.push_str(&format!("{last}\n"));
    Reply { status: 200, content_type: "application/x-ndjson", body }
}
