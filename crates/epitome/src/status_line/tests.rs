//! Status lines of a user of Claude Code.

use std::fs;

use serde_json::json;

use super::*;

/// The current time according to `Config` in these tests. The files are written at the real time,
/// which is later.
const NOW: &str = "2026-01-02T12:00:00Z";
const YESTERDAY: &str = "2026-01-01T12:00:00Z";

/// A machine with one session, which has a response of today and one of yesterday.
struct Machine {
    _dir: tempfile::TempDir,
    config: Config,
    session: PathBuf,
}

impl Machine {
    fn new() -> Machine {
        let dir = tempfile::tempdir().expect("a folder");
        let now = |name: &str| (name == "EPITOME_NOW").then(|| NOW.into());
        let home = dir.path();
        let config = Config::from_folders(home, &home.join("data"), &home.join("config"), now);
        let session = dir.path().join(".claude/projects/-p/a.jsonl");
        fs::create_dir_all(session.parent().expect("a folder")).expect("a folder");
        let text = [response("1", NOW, 1_000_000), response("2", YESTERDAY, 50)];
        fs::write(&session, text.concat()).expect("a session");
        Machine { _dir: dir, config, session }
    }

    fn append(&self, text: &str) {
        let mut all = fs::read_to_string(&self.session).expect("a session");
        all.push_str(text);
        fs::write(&self.session, all).expect("a session");
    }

    fn line(&self, status: &Status) -> StatusLine {
        let session = Some(self.session.display().to_string());
        let status = Status { session, ..status.clone() };
        status_line(&self.config, &status).expect("a line")
    }
}

fn response(id: &str, time: &str, input: u64) -> String {
    let record = json!({
        "type": "assistant", "uuid": id, "sessionId": "a", "cwd": "/p", "timestamp": time,
        "version": "2.1.329", "requestId": id,
        "message": {
            "id": id, "role": "assistant", "model": "claude-haiku-4-5", "type": "message",
            "content": [{ "type": "text", "text": "…" }],
            "usage": {
                "input_tokens": input, "cache_read_input_tokens": 0,
                "cache_creation_input_tokens": 0, "output_tokens": 0,
            },
        },
    });
    format!("{record}\n")
}

#[test]
fn the_requests_of_today_are_summed_as_they_are_appended() {
    let machine = Machine::new();
    let status = Status::default();
    assert_eq!(machine.line(&status).today, Some(MicroDollars(1_000_000)));
    assert_eq!(machine.line(&status).today, Some(MicroDollars(1_000_000)));
    let more = response("3", NOW, 1_000_000);
    let last = response("4", NOW, 1_000_000);
    // The last line is not whole yet.
    machine.append(&[&*more, &last[..40]].concat());
    assert_eq!(machine.line(&status).today, Some(MicroDollars(2_000_000)));
    machine.append(&last[40..]);
    assert_eq!(machine.line(&status).today, Some(MicroDollars(3_000_000)));
}

#[test]
fn the_context_is_what_the_agent_says_or_the_last_request() {
    let machine = Machine::new();
    let known = Status {
        context: Some(Tokens(100_000)),
        window: Some(Tokens(200_000)),
        ..Status::default()
    };
    let line = machine.line(&known);
    assert_eq!((line.context_tokens, line.percent()), (Some(Tokens(100_000)), Some(50)));
    let model = Some("claude-haiku-4-5".to_owned());
    let line = machine.line(&Status { model, ..Status::default() });
    assert_eq!((line.context_tokens, line.window), (Some(Tokens(50)), Some(Tokens(200_000))));
}

#[test]
fn what_compacting_would_give_back_is_computed_apart() {
    let machine = Machine::new();
    let status = Status::default();
    let line = machine.line(&status);
    assert_eq!((line.saving_tokens, line.is_outdated), (None, true));
    refresh(&machine.config, &Settings::default(), &machine.session).expect("it is computed");
    let line = machine.line(&status);
    assert_eq!((line.saving_tokens, line.is_outdated), (Some(Tokens(0)), false));
    machine.append(&response("5", YESTERDAY, 1));
    assert!(machine.line(&status).is_outdated);
}

#[test]
fn without_a_session_the_line_has_what_is_known() {
    let dir = tempfile::tempdir().expect("a folder");
    let config = Config::from_home(dir.path());
    let line = status_line(&config, &Status::default()).expect("a line");
    assert_eq!(line, StatusLine { today: Some(MicroDollars(0)), ..StatusLine::default() });
}
