//! What other programs read from a session is the same before and after a compaction.
//!
//! The values are found by key in parsed JSON, not with the lists in the formats, so that a value
//! that a list lacks is noticed.

use serde_json::Value;

/// The paths, in records of all formats, of objects with values that other programs read. `*` is
/// every element of a list.
const HOLDERS: &[&str] = &[
    "",
    "message",
    "payload",
    "data",
    "data.info",
    "data.part",
    "data.state.metadata",
    "data.part.state.metadata",
    "data.message",
    "data.message.message",
    "toolUseResult",
    "message.details",
    "message.details.results.*",
    "$set.messages.*",
    "messages.*",
    "messages.*.info",
    "messages.*.parts.*",
    "messages.*.parts.*.state.metadata",
];

/// The keys of such values.
const KEYS: &[&str] = &[
    "usage",
    "tokens",
    "cost",
    "costUSD",
    "info",
    "rate_limits",
    "totalTokens",
    "totalDurationMs",
    "totalToolUseCount",
    "turn_token_usage",
    "thread_token_usage",
    "cwd",
    "directory",
    "gitBranch",
    "git",
    "version",
    "cli_version",
    "userType",
    "timestamp",
    "time_created",
    "requestId",
    "responseId",
    "uuid",
    "parentUuid",
    "parentId",
    "sessionId",
    "agentId",
    "toolUseID",
    "parentToolUseID",
    "model",
    "modelID",
    "providerID",
    "provider",
    "stopReason",
    "stop_reason",
];

/// Every such value of every record, with its path.
pub fn values(bytes: &[u8]) -> Vec<String> {
    // A damaged byte may be removed by an edit, so that the rest of its line is still compared.
    let text = String::from_utf8_lossy(bytes);
    let whole = serde_json::from_str::<Value>(&text).map(|value| vec![value]);
    let records = whole.unwrap_or_else(|_| {
        text.split('\n').map(|line| serde_json::from_str(line).unwrap_or_default()).collect()
    });
    let mut found = Vec::new();
    for (line, record) in records.iter().enumerate() {
        for holder in HOLDERS {
            let path: Vec<&str> = holder.split('.').filter(|key| !key.is_empty()).collect();
            for inner in at(record, &path) {
                for (key, value) in KEYS.iter().filter_map(|key| Some((key, inner.get(key)?))) {
                    // The member `info` of an exported message contains such values, but is no such
                    // value itself.
                    if *key == "info" && *holder != "payload" {
                        continue;
                    }
                    found.push(format!("{line} {holder} {key} {value}"));
                }
            }
        }
    }
    found
}

fn at<'a>(value: &'a Value, path: &[&str]) -> Vec<&'a Value> {
    match path.split_first() {
        None => vec![value],
        Some((&"*", rest)) => {
            let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
            list.iter().flat_map(|element| at(element, rest)).collect()
        }
        Some((key, rest)) => value.get(key).map(|inner| at(inner, rest)).unwrap_or_default(),
    }
}
