//! OpenAI Responses: <https://platform.openai.com/docs/api-reference/responses>.

pub mod invariants;

use crate::reply::{Reply, identifier, rough_tokens};
use crate::script::{Ending, Step};
use crate::sign::sign;
use crate::sse::{Events, deltas};
use crate::stage::{Outcome, Stage};
use serde_json::{Value, json};

/// A fixed time: an answer must not depend on the clock.
const CREATED: u64 = 1_700_000_000;

/// Answers `POST /v1/responses`.
pub(crate) fn reply(body: &Value, stage: &Stage) -> (Reply, Outcome) {
    if let Err(refusal) = invariants::check(body) {
        let error = json!({
            "message": refusal.0, "type": "invalid_request_error", "param": "input", "code": null,
        });
        return (Reply::json(400, &json!({ "error": error })), Outcome::Refused(refusal.0));
    }
    let (step, outcome) = stage.answer(offers_tools(body), &first_user_texts(&body["input"]));
    let reply = if body["stream"] == true {
        Reply::stream(stream(body, &step))
    } else {
        Reply::json(200, &ended(body, &step))
    };
    (reply, outcome)
}

/// The whole response of a request that does not stream.
fn ended(body: &Value, step: &Step) -> Value {
    let because = match step.ending {
        Ending::Done => return response(body, &output(body, step), "completed"),
        Ending::Length => "max_output_tokens",
        Ending::Refused => "content_filter",
    };
    let mut response = response(body, &output(body, step), "incomplete");
    response["incomplete_details"] = json!({ "reason": because });
    response
}

/// Whether a request offers tools: in the request itself, or in an item of its input.
fn offers_tools(body: &Value) -> bool {
    let some = |tools: &Value| tools.as_array().is_some_and(|tools| !tools.is_empty());
    let items = body["input"].as_array().map(Vec::as_slice).unwrap_or_default();
    some(&body["tools"])
        || items.iter().any(|item| item["type"] == "additional_tools" && some(&item["tools"]))
}

/// The texts of the first four user items. The first alone would not be enough: agents describe
/// their environment before the user's message.
fn first_user_texts(input: &Value) -> String {
    let items = input.as_array().map(Vec::as_slice).unwrap_or_default();
    let users = items.iter().filter(|item| item["role"] == "user");
    users.take(4).map(|item| item["content"].to_string()).collect()
}

fn output(body: &Value, step: &Step) -> Vec<Value> {
    let input = &body["input"];
    let mut items = Vec::new();
    // This part of the id tells the invariants that the item follows reasoning.
    let mark = if step.thinking.is_some() { invariants::REASONED } else { "" };
    if let Some(thinking) = &step.thinking {
        items.push(json!({
            "type": "reasoning", "id": identifier("rs_", input, 0),
            "summary": [{ "type": "summary_text", "text": thinking }],
            "encrypted_content": sign(thinking),
        }));
    }
    if let Some(text) = &step.text {
        let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
        items.push(json!({
            "type": "message", "id": identifier(&format!("msg_{mark}"), input, 0),
            "role": "assistant", "status": "completed", "content": content,
        }));
    }
    for (number, call) in step.calls.iter().enumerate() {
        let id = identifier("call_", input, number);
        items.push(match &call.input {
            // The input of a tool with a grammar is a text.
            Value::String(text) => json!({
                "type": "custom_tool_call", "id": identifier(&format!("ctc_{mark}"), input, number),
                "status": "completed", "name": call.name, "input": text, "call_id": id,
            }),
            arguments => json!({
                "type": "function_call", "id": identifier(&format!("fc_{mark}"), input, number),
                "status": "completed", "name": call.name, "arguments": arguments.to_string(),
                "call_id": id,
            }),
        });
    }
    items
}

fn response(body: &Value, output: &[Value], status: &str) -> Value {
    let (input, answer) = (rough_tokens(&body["input"]), rough_tokens(&json!(output)));
    json!({
        "id": identifier("resp_", &body["input"], 0), "object": "response", "created_at": CREATED,
        "model": body["model"], "status": status, "output": output, "error": null,
        "parallel_tool_calls": true, "tools": [], "tool_choice": "auto", "metadata": {},
        "usage": {
            "input_tokens": input, "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": answer, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": input + answer,
        },
    })
}

fn stream(body: &Value, step: &Step) -> String {
    let items = output(body, step);
    let mut events = Events::default();
    let mut number = 0;
    let mut event = |kind: &str, mut data: Value| {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(number);
        number += 1;
        events.named(&data);
    };
    event("response.created", json!({ "response": response(body, &[], "in_progress") }));
    for (index, item) in items.iter().enumerate() {
        let (deltas, begun) = begun(item);
        event("response.output_item.added", json!({ "output_index": index, "item": begun }));
        for (kind, delta) in deltas {
            let place = json!({ "output_index": index, "item_id": item["id"], "delta": delta,
                "content_index": 0, "summary_index": 0 });
            event(kind, place);
        }
        event("response.output_item.done", json!({ "output_index": index, "item": item }));
    }
    let ended = ended(body, step);
    let kind = if ended["status"] == "incomplete" { "incomplete" } else { "completed" };
    event(&format!("response.{kind}"), json!({ "response": ended }));
    events.finish()
}

/// The parts of an item that are streamed as deltas, and the item as it is before they arrive.
fn begun(item: &Value) -> (Vec<(&'static str, String)>, Value) {
    let mut begun = item.clone();
    let (kind, text, key, empty) = match item["type"].as_str() {
        Some("reasoning") => (
            "response.reasoning_summary_text.delta",
            &item["summary"][0]["text"],
            "summary",
            json!([]),
        ),
        Some("function_call") => {
            ("response.function_call_arguments.delta", &item["arguments"], "arguments", json!(""))
        }
        Some("custom_tool_call") => {
            ("response.custom_tool_call_input.delta", &item["input"], "input", json!(""))
        }
        _ => ("response.output_text.delta", &item["content"][0]["text"], "content", json!([])),
    };
    begun[key] = empty;
    (deltas(text.as_str().unwrap_or_default()).map(|delta| (kind, delta)).collect(), begun)
}
