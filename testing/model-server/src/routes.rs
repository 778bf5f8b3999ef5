//! Maps paths to APIs.

use crate::reply::{Reply, rough_tokens};
use crate::script::Script;
use crate::stage::{Outcome, Stage};
use crate::{anthropic, chat, gemini, ollama, responses};
use serde_json::{Value, json};
use tiny_http::{Header, Method, Request, Response};

/// Reads a request, answers it and records both.
pub(crate) fn answer(mut request: Request, stage: &Stage) {
    let mut bytes = Vec::new();
    if request.as_reader().read_to_end(&mut bytes).is_err() {
        return; // The agent has closed the connection.
    }
    let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let url = request.url().to_owned();
    let path = url.split('?').next().unwrap_or_default();
    let post = *request.method() == Method::Post;
    let (reply, outcome) = route(path, post, &body, stage);
    stage.record(path, body, &bytes, outcome);
    let header = Header::from_bytes("content-type", reply.content_type)
        .expect("a fixed header is well formed");
    let response =
        Response::from_string(reply.body).with_status_code(reply.status).with_header(header);
    // If the agent has closed the connection, this fails; the exchange is recorded already.
    let _ = request.respond(response);
}

/// The answer of the API to which `path` belongs; 404 if there is none.
pub(crate) fn route(path: &str, post: bool, body: &Value, stage: &Stage) -> (Reply, Outcome) {
    match path {
        "/v1/messages" if post => anthropic::reply(body, stage),
        "/v1/messages/count_tokens" if post => (count(body), Outcome::Other),
        "/v1/chat/completions" if post => chat::reply(body, stage),
        "/v1/responses" if post => responses::reply(body, stage),
        "/api/chat" if post => ollama::reply(body, stage),
        "/v1/models" => (models(), Outcome::Other),
        "/script" if post => (play(body, stage), Outcome::Other),
        _ if post && path.starts_with(gemini::MODELS) => {
            gemini::reply(path, body, stage).unwrap_or_else(|| (not_found(path), Outcome::Other))
        }
        "/" => (Reply::json(200, &json!({})), Outcome::Other),
        _ => (not_found(path), Outcome::Other),
    }
}

fn count(body: &Value) -> Reply {
    Reply::json(200, &json!({ "input_tokens": rough_tokens(&body["messages"]) }))
}

fn models() -> Reply {
    let model = json!({
        "id": "scripted", "type": "model", "object": "model", "display_name": "Scripted",
        "created": 1_700_000_000, "created_at": "2025-01-01T00:00:00Z", "owned_by": "tests",
    });
    Reply::json(200, &json!({ "object": "list", "data": [model], "has_more": false }))
}

/// Plays the script in a body: tests in other languages set it so.
fn play(body: &Value, stage: &Stage) -> Reply {
    let Some(script) = Script::from_json(body) else {
        return Reply::json(400, &json!({ "error": "a script is a list of steps" }));
    };
    stage.play(script);
    Reply::json(200, &json!({}))
}

fn not_found(path: &str) -> Reply {
    let error = json!({ "type": "not_found_error", "message": format!("Not found: {path}") });
    Reply::json(404, &json!({ "type": "error", "error": error }))
}
