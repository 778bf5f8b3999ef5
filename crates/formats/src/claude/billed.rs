//! The requests that a session of Claude Code records, counted as `ccusage` counts them.
//!
//! The reader of the format leaves out the output tokens of a response that was still being
//! written, and the requests of sub-agents in records of progress. Both are billed, so `epitome
//! cost` and the status line read the requests with this module.

use epitome_model::{CacheUse, RecordedUsage};
use memchr::memmem;
use serde_json::Value;

use crate::{BilledRequest, BilledRequests};

/// The name of the model in messages that Claude Code writes itself.
const SYNTHETIC: &str = "<synthetic>";

/// Reads the requests of a session, or of some complete lines of a session.
pub fn read_billed(session: &[u8]) -> BilledRequests {
    let finder = memmem::Finder::new(b"\"usage\":");
    let mut found = BilledRequests::default();
    let mut at = 0;
    while let Some(next) = session.get(at..).and_then(|rest| finder.find(rest)) {
        let next = at + next;
        let start = memchr::memrchr(b'\n', &session[..next]).map_or(0, |at| at + 1);
        let end = memchr::memchr(b'\n', &session[next..]).map_or(session.len(), |end| next + end);
        if let Ok(record) = serde_json::from_slice::<Value>(&session[start..end]) {
            found.cwd = found.cwd.or_else(|| text(&record["cwd"]));
            found.requests.extend(request(&record, &record));
            found.requests.extend(request(&record["data"]["message"], &record));
        }
        at = end;
    }
    found
}

/// The request of `record`, which is a record of the file or is inside of a record of progress.
/// `outer` is the record of the file. `None` if `record` states no usage.
fn request(record: &Value, outer: &Value) -> Option<BilledRequest> {
    let message = &record["message"];
    let usage = message["usage"].as_object()?;
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or_default();
    let cache = CacheUse {
        read: count("cache_read_input_tokens"),
        written: count("cache_creation_input_tokens"),
    };
    let input = count("input_tokens").saturating_add(cache.read).saturating_add(cache.written);
    let usage =
        RecordedUsage { input, output: count("output_tokens"), cache: Some(cache), cost: None };
    let usage = match record["costUSD"].as_f64() {
        Some(dollars) => usage.with_cost(&dollars.to_string()),
        None => usage,
    };
    let ids = (message["id"].as_str(), record["requestId"].as_str());
    let key = match ids {
        (Some(message), Some(request)) => Some(format!("{message} {request}")),
        (_, _) => None,
    };
    let time = text(&record["timestamp"]).or_else(|| text(&outer["timestamp"]));
    let model = text(&message["model"]).filter(|model| model != SYNTHETIC);
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
    fn requests_of_responses_and_of_progress_are_read_with_the_counts_as_they_are() {
        let message = |output: u64| {
            json!({
                "id": "msg_1", "model": "claude-haiku-4-5", "stop_reason": null,
                "usage": {
                    "input_tokens": 1, "cache_read_input_tokens": 20,
                    "cache_creation_input_tokens": 300, "output_tokens": output,
                },
            })
        };
        let own = json!({
            "type": "assistant", "cwd": "/p", "requestId": "req_1", "timestamp": "t1",
            "message": message(4),
        });
        let inner = json!({ "requestId": "req_2", "message": message(5) });
        let progress =
            json!({ "type": "progress", "timestamp": "t2", "data": { "message": inner } });
        let other = json!({ "type": "user", "toolUseResult": { "usage": { "input_tokens": 9 } } });
        let session = format!("{own}\n{{}}\n{progress}\n{other}\n{{\"usage\":");
        let request = |key: &str, time: &str, output| BilledRequest {
            key: Some(key.to_owned()),
            time: Some(time.to_owned()),
            model: Some("claude-haiku-4-5".to_owned()),
            usage: RecordedUsage {
                input: 321,
                output,
                cache: Some(CacheUse { read: 20, written: 300 }),
                cost: None,
            },
        };
        let requests = vec![request("msg_1 req_1", "t1", 4), request("msg_1 req_2", "t2", 5)];
        let expect = BilledRequests { cwd: Some("/p".to_owned()), requests };
        assert_eq!(read_billed(session.as_bytes()), expect);
        assert_eq!(read_billed(b""), BilledRequests::default());
    }

    #[test]
    fn counts_that_are_too_large_for_a_sum_are_read() {
        let usage = json!({ "input_tokens": u64::MAX, "cache_read_input_tokens": 1 });
        let record = json!({ "message": { "usage": usage } });
        let usage = RecordedUsage {
            input: u64::MAX,
            output: 0,
            cache: Some(CacheUse { read: 1, written: 0 }),
            cost: None,
        };
        let request = BilledRequest { key: None, time: None, model: None, usage };
        let expect = BilledRequests { cwd: None, requests: vec![request] };
        assert_eq!(read_billed(record.to_string().as_bytes()), expect);
    }
}
