//! The requests that a rollout records, counted as `ccusage` counts them. Each event with token
//! counts is one request, unless its total equals that of the previous event: Codex repeats an
//! event when its rate limits change.

use epitome_model::{CacheUse, RecordedUsage};
use serde_json::Value;

use crate::{BilledRequest, BilledRequests};

/// Reads the requests of a rollout, or of some complete lines of a rollout.
pub fn read_billed(session: &[u8]) -> BilledRequests {
    let mut found = BilledRequests::default();
    let (mut model, mut total) = (None, Value::Null);
    for line in session.split(|byte| *byte == b'\n') {
        let is_known = KINDS.iter().any(|kind| memchr::memmem::find(line, kind).is_some());
        let Some(record) = is_known.then(|| serde_json::from_slice::<Value>(line).ok()).flatten()
        else {
            continue;
        };
        let payload = &record["payload"];
        match record["type"].as_str() {
            Some("session_meta") => found.cwd = found.cwd.or_else(|| text(&payload["cwd"])),
            Some("turn_context") => model = text(&payload["model"]).or(model),
            Some("event_msg") if payload["type"] == "token_count" => {
                let now = &payload["info"]["total_token_usage"];
                if *now != total {
                    let time = text(&record["timestamp"]);
                    found.requests.extend(request(&payload["info"], time, model.clone()));
                    total = now.clone();
                }
            }
            Some(_) | None => {}
        }
    }
    found
}

/// Only lines that contain one of these texts are parsed, because most of a rollout is results of
/// tools.
const KINDS: [&[u8]; 3] = [b"\"token_count\"", b"\"turn_context\"", b"\"session_meta\""];

/// The request of an event; `None` if the event does not state the tokens of a request. Its key
/// consists of the time and the total in the event: a fork may begin with copies of another
/// rollout's events, and the copies have the times of the originals.
fn request(info: &Value, time: Option<String>, model: Option<String>) -> Option<BilledRequest> {
    let last = info["last_token_usage"].as_object()?;
    let count = |name: &str| last.get(name).and_then(Value::as_u64).unwrap_or_default();
    let usage = RecordedUsage {
        input: count("input_tokens"),
        output: count("output_tokens"),
        cache: Some(CacheUse { read: count("cached_input_tokens"), written: 0 }),
        cost: None,
    };
    let total = &info["total_token_usage"]["total_tokens"];
    let key = time.as_deref().map(|time| format!("{time} {total}"));
    Some(BilledRequest { key, time, model, usage })
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_that_is_written_again_is_one_request() {
        let meta = json!({"type": "session_meta", "payload": {"cwd": "/p"}});
        let turn = json!({"type": "turn_context", "payload": {"model": "gpt-5.5"}});
        let event = |time: &str, total: u64| {
            json!({"type": "event_msg", "timestamp": time, "payload": {
                "type": "token_count", "info": {
                    "total_token_usage": {"total_tokens": total},
                    "last_token_usage": {
                        "input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 7,
                    },
                },
            }})
        };
        let limits = json!({"type": "event_msg", "payload": {"type": "token_count", "info": null}});
        let lines =
            [&meta, &turn, &limits, &event("t1", 107), &event("t2", 107), &event("t3", 214)];
        let session: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let request = |time: &str, total: u64| BilledRequest {
            key: Some(format!("{time} {total}")),
            time: Some(time.to_owned()),
            model: Some("gpt-5.5".to_owned()),
            usage: RecordedUsage {
                input: 100,
                output: 7,
                cache: Some(CacheUse { read: 60, written: 0 }),
                cost: None,
            },
        };
        let requests = vec![request("t1", 107), request("t3", 214)];
        let expect = BilledRequests { cwd: Some("/p".to_owned()), requests };
        assert_eq!(read_billed(session.as_bytes()), expect);
    }
}
