//! Google's Gemini API: <https://ai.google.dev/api/generate-content>.

pub mod invariants;

use crate::reply::{Reply, identifier, rough_tokens};
use crate::script::{Ending, Step};
use crate::sign::sign;
use crate::sse::Events;
use crate::stage::{Outcome, Stage};
use serde_json::{Value, json};

/// The beginning of the paths of models.
pub(crate) const MODELS: &str = "/v1beta/models/";

/// Answers `POST /v1beta/models/MODEL:METHOD`; `None` for an unknown method.
pub(crate) fn reply(path: &str, body: &Value, stage: &Stage) -> Option<(Reply, Outcome)> {
    let (model, method) = path.strip_prefix(MODELS)?.split_once(':')?;
    let streams = match method {
        "generateContent" => false,
        "streamGenerateContent" => true,
        "countTokens" => {
            let count = json!({ "totalTokens": rough_tokens(&body["contents"]) });
            return Some((Reply::json(200, &count), Outcome::Other));
        }
        _ => return None,
    };
    if let Err(refusal) = invariants::check(model, body) {
        let error = json!({ "code": 400, "message": refusal.0, "status": "INVALID_ARGUMENT" });
        return Some((Reply::json(400, &json!({ "error": error })), Outcome::Refused(refusal.0)));
    }
    let (step, outcome) = stage.answer(offers_tools(body), &first_user_text(&body["contents"]));
    let parts = parts(body, &step);
    let finish = match step.ending {
        Ending::Done => "STOP",
        Ending::Length => "MAX_TOKENS",
        Ending::Refused => "SAFETY",
    };
    let reply = if streams {
        Reply::stream(stream(model, body, &parts, finish))
    } else {
        Reply::json(200, &response(model, body, &parts, Some(finish)))
    };
    Some((reply, outcome))
}

fn offers_tools(body: &Value) -> bool {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.into_iter().any(|tool| {
        tool["functionDeclarations"].as_array().is_some_and(|functions| !functions.is_empty())
    })
}

fn first_user_text(contents: &Value) -> String {
    let mut turns = contents.as_array().into_iter().flatten();
    let Some(first) = turns.find(|turn| turn["role"] != "model") else { return String::new() };
    let parts = first["parts"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn parts(body: &Value, step: &Step) -> Vec<Value> {
    let thinks = body["generationConfig"]["thinkingConfig"]["includeThoughts"] == true;
    let mut parts = Vec::new();
    if let Some(thinking) = step.thinking.as_ref().filter(|_| thinks) {
        parts.push(json!({ "text": thinking, "thought": true }));
    }
    if let Some(text) = &step.text {
        parts.push(json!({ "text": text }));
    }
    for (number, call) in step.calls.iter().enumerate() {
        let mut part = json!({ "functionCall": { "name": call.name, "args": call.input } });
        if number == 0 {
            // Of parallel calls only the first has a signature.
            part["thoughtSignature"] = json!(sign(&call.name));
        }
        parts.push(part);
    }
    parts
}

fn response(model: &str, body: &Value, parts: &[Value], finish: Option<&str>) -> Value {
    let prompt = rough_tokens(&body["contents"]);
    let answer = rough_tokens(&json!(parts));
    let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    json!({
        "candidates": [candidate], "modelVersion": model,
        "responseId": identifier("r", &body["contents"], 0),
        "usageMetadata": {
            "promptTokenCount": prompt, "candidatesTokenCount": answer,
            "totalTokenCount": prompt + answer,
        },
    })
}

/// One chunk per part, as `streamGenerateContent` answers.
fn stream(model: &str, body: &Value, parts: &[Value], ending: &str) -> String {
    let mut events = Events::default();
    for (idx, part) in parts.iter().enumerate() {
        let finish = (idx + 1 == parts.len()).then_some(ending);
        events.data(&response(model, body, std::slice::from_ref(part), finish));
    }
    events.finish()
}
