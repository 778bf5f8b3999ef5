//! OpenAI Chat Completions: <https://platform.openai.com/docs/api-reference/chat>.

pub mod invariants;

use crate::reply::{Reply, identifier, rough_tokens};
use crate::script::{Ending, Step};
use crate::sse::{Events, deltas};
use crate::stage::{Outcome, Stage};
use serde_json::{Value, json};

/// A fixed time: an answer must not depend on the clock.
const CREATED: u64 = 1_700_000_000;

/// Answers `POST /v1/chat/completions`.
pub(crate) fn reply(body: &Value, stage: &Stage) -> (Reply, Outcome) {
    if let Err(refusal) = invariants::check(body) {
        let error = json!({
            "message": refusal.0, "type": "invalid_request_error", "param": "messages",
            "code": null,
        });
        return (Reply::json(400, &json!({ "error": error })), Outcome::Refused(refusal.0));
    }
    let offers_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let (step, outcome) = stage.answer(offers_tools, &first_user_text(&body["messages"]));
    let reply = if body["stream"] == true {
        Reply::stream(stream(body, &step))
    } else {
        Reply::json(200, &completion(body, &step))
    };
    (reply, outcome)
}

fn first_user_text(messages: &Value) -> String {
    let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
    let first = messages.iter().find(|message| message["role"] == "user");
    // If the content is a list of parts, the mark of a track is searched in the list's JSON: so a
    // mark must have no characters that JSON escapes.
    first.map(|message| message["content"].to_string()).unwrap_or_default()
}

fn calls(body: &Value, step: &Step) -> Vec<Value> {
    let call = |(number, call): (usize, &crate::ToolCall)| {
        json!({
            "id": identifier("call_", &body["messages"], number), "type": "function",
            "function": { "name": call.name, "arguments": call.input.to_string() },
        })
    };
    step.calls.iter().enumerate().map(call).collect()
}

fn frame(body: &Value, object: &str) -> Value {
    let id = identifier("chatcmpl-", &body["messages"], 0);
    json!({ "id": id, "object": object, "created": CREATED, "model": body["model"] })
}

fn finish(step: &Step) -> &'static str {
    match step.ending {
        Ending::Length => "length",
        Ending::Refused => "content_filter",
        Ending::Done if step.calls.is_empty() => "stop",
        Ending::Done => "tool_calls",
    }
}

fn usage(body: &Value, step: &Step) -> Value {
    let prompt = rough_tokens(&body["messages"]);
    let answer = rough_tokens(&json!([step.text, calls(body, step)]));
    json!({
        "prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer,
        "prompt_tokens_details": { "cached_tokens": 0 },
        "completion_tokens_details": { "reasoning_tokens": 0 },
    })
}

fn completion(body: &Value, step: &Step) -> Value {
    let mut message = json!({ "role": "assistant", "content": step.text });
    if !step.calls.is_empty() {
        message["tool_calls"] = json!(calls(body, step));
    }
    let mut completion = frame(body, "chat.completion");
    completion["choices"] =
        json!([{ "index": 0, "message": message, "finish_reason": finish(step) }]);
    completion["usage"] = usage(body, step);
    completion
}

fn stream(body: &Value, step: &Step) -> String {
    let mut events = Events::default();
    let mut chunk = |delta: Value, finish: Option<&str>| {
        let mut chunk = frame(body, "chat.completion.chunk");
        chunk["choices"] = json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
        events.data(&chunk);
    };
    chunk(json!({ "role": "assistant", "content": "" }), None);
    for part in step.thinking.as_deref().into_iter().flat_map(deltas) {
        chunk(json!({ "reasoning_content": part }), None);
    }
    for part in step.text.as_deref().into_iter().flat_map(deltas) {
        chunk(json!({ "content": part }), None);
    }
    for (index, call) in calls(body, step).into_iter().enumerate() {
        let name = &call["function"]["name"];
        let function = json!({ "name": name, "arguments": "" });
        let start = json!({
            "index": index, "id": call["id"], "type": "function", "function": function,
        });
        chunk(json!({ "tool_calls": [start] }), None);
        for part in deltas(call["function"]["arguments"].as_str().unwrap_or_default()) {
            let function = json!({ "arguments": part });
            chunk(json!({ "tool_calls": [{ "index": index, "function": function }] }), None);
        }
    }
    chunk(json!({}), Some(finish(step)));
    let mut last = frame(body, "chat.completion.chunk");
    last["choices"] = json!([]);
    last["usage"] = usage(body, step);
    events.data(&last);
    events.data(&"[DONE]");
    events.finish()
}
