//! Ollama's own API: <https://github.com/ollama/ollama/blob/main/docs/api.md>.

use serde_json::{Value, json};

use crate::routes::{Reply, rough_tokens};
use crate::script::Ending;
use crate::server::{Outcome, Stage};

/// Answers `POST /api/chat` with one object: what streams is not spoken here.
pub(crate) fn reply(body: &Value, stage: &Stage) -> (Reply, Outcome) {
    if body["stream"] != false {
        let error = json!({ "error": "this server does not stream" });
        return (Reply::json(400, &error), Outcome::Refused("stream".into()));
    }
    let step = stage.canned();
    let calls = step.calls.iter();
    let calls: Vec<Value> = calls
        .map(|call| json!({ "function": { "name": call.name, "arguments": call.input } }))
        .collect();
    let mut message = json!({ "role": "assistant", "content": step.text.unwrap_or_default() });
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
    (Reply::json(200, &answer), Outcome::Canned)
}
