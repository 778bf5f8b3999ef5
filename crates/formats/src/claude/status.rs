//! The data that Claude Code passes to the command of its status line, on standard input
//! (<https://code.claude.com/docs/en/statusline>); and the setting that says how long Claude Code
//! keeps sessions.

use epitome_model::Tokens;
use serde_json::Value;

/// The number of days that Claude Code keeps sessions if its settings do not state another.
const KEPT_DAYS: u64 = 30;

/// The members of `current_usage` whose sum is the size of the last request and its response.
const USAGE: [&str; 4] =
    ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"];

/// What Claude Code reports about a running session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The session's file.
    pub session: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The tokens of the last request and its response; `None` if they are 0 or are not reported,
    /// as by older versions.
    pub context: Option<Tokens>,
    /// The context window of the model; `None` if it is 0 or is not reported, as by older versions.
    pub window: Option<Tokens>,
}

/// Parses the input of the command; `None` if the input is not a JSON object.
pub fn status(input: &[u8]) -> Option<Status> {
    let input: Value = serde_json::from_slice(input).ok().filter(Value::is_object)?;
    let text = |value: &Value| value.as_str().filter(|it| !it.is_empty()).map(str::to_owned);
    let window = &input["context_window"];
    let counts = USAGE.iter().filter_map(|name| window["current_usage"][*name].as_u64());
    let context = Tokens(counts.sum());
    Some(Status {
        session: text(&input["transcript_path"]),
        model: text(&input["model"]["id"]),
        context: Some(context).filter(|context| context.0 > 0),
        window: window["context_window_size"].as_u64().filter(|it| *it > 0).map(Tokens),
    })
}

/// The number of days after which Claude Code, with these settings, deletes a session that was not
/// used.
pub fn kept_days(settings: &[u8]) -> u64 {
    let settings: Option<Value> = serde_json::from_slice(settings).ok();
    let days = settings.as_ref().and_then(|settings| settings["cleanupPeriodDays"].as_u64());
    days.unwrap_or(KEPT_DAYS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_is_read_from_what_the_program_gets() {
        let input = json!({
            "hook_event_name": "Status", "session_id": "a", "transcript_path": "/p/a.jsonl",
            "model": { "id": "claude-sonnet-4-6", "display_name": "Sonnet" },
            "cost": { "total_cost_usd": 0.5 },
            "context_window": {
                "context_window_size": 200_000,
                "current_usage": {
                    "input_tokens": 1, "output_tokens": 20, "cache_creation_input_tokens": 300,
                    "cache_read_input_tokens": 4_000,
                },
            },
        });
        let expect = Status {
            session: Some("/p/a.jsonl".to_owned()),
            model: Some("claude-sonnet-4-6".to_owned()),
            context: Some(Tokens(4_321)),
            window: Some(Tokens(200_000)),
        };
        assert_eq!(status(input.to_string().as_bytes()), Some(expect));
        let old = br#"{"session_id":"a","context_window":{"current_usage":null}}"#;
        assert_eq!(status(old), Some(Status::default()));
        assert_eq!(status(b"[]"), None);
        assert_eq!(status(b""), None);
    }

    #[test]
    fn the_settings_say_how_long_sessions_are_kept() {
        assert_eq!(kept_days(b"{\"cleanupPeriodDays\": 365}"), 365);
        for settings in [&b"{}"[..], b"", b"{\"cleanupPeriodDays\":\"no\"}"] {
            assert_eq!(kept_days(settings), 30);
        }
    }
}
