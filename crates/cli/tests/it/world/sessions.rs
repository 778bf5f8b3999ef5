//! Sessions for tests.

use serde_json::{Value, json};

use super::World;

pub const CLAUDE: &str = "0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4";
pub const OTHER: &str = "0f3c1111-7d1e-4c55-9f0e-2b8d7a61c3d4";
pub const PI: &str = "01a1fb3a-c450-731a-9250-9fa9d78b0d62";

/// A source file of so many lines.
pub fn code(lines: usize) -> String {
    (1..=lines).map(|n| format!("fn number_{n}() -> u32 {{ {n} }}\n")).collect()
}

/// The output of a failing test run.
pub fn log(lines: usize) -> String {
    let mut text: String = (1..=lines).map(|n| format!("test case_{n} ... ok\n")).collect();
    text.push_str("error: case_7 failed: expected 3, got 4\ntest result: FAILED\n");
    text
}

/// A session of Claude Code: three turns, a file read, a test run, an edit, and their copies.
pub fn claude(id: &str) -> String {
    let mut session = Claude::new(id);
    session.user("Fix the failing test, please.");
    session.call("t1", "Read", json!({"file_path": "/p/src/a.rs"}), &code(120), false);
    session.call("t2", "Bash", json!({"command": "cargo test"}), &log(90), true);
    let old = code(40);
    let new = old.replace("number", "count");
    let edit = json!({"file_path": "/p/src/a.rs", "old_string": old, "new_string": new});
    session.call("t3", "Edit", edit, "The file was edited.", false);
    session.say("The test passes now.");
    session.user("Show me \u{1b}[31mthe numbers\u{1b}[0m.");
    session.call("t4", "Bash", json!({"command": "seq 400"}), &log(60), false);
    session.say("Here they are.");
    session.user("Thanks. What was the first file?");
    session.say("It was src/a.rs.");
    session.lines()
}

/// A session of pi: two turns.
pub fn pi(id: &str) -> String {
    let mut lines = vec![json!({
        "type": "session", "version": 3, "id": id, "timestamp": "2026-11-18T10:00:00.000Z",
        "cwd": "/p",
    })];
    let mut parent = Value::Null;
    let mut add = |id: &str, message: Value| {
        lines.push(json!({
            "type": "message", "id": id, "parentId": parent,
            "timestamp": "2026-11-18T10:00:01.000Z", "message": message,
        }));
        parent = json!(id);
    };
    add("a0000001", json!({"role": "user", "content": "List the functions.", "timestamp": 1}));
    add(
        "a0000002",
        json!({
            "role": "assistant", "provider": "anthropic", "api": "anthropic-messages",
            "model": "claude-sonnet-4-5", "stopReason": "toolUse", "timestamp": 2,
            "usage": {"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15},
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "src/a.rs"}},
            ],
        }),
    );
    add(
        "a0000003",
        json!({
            "role": "toolResult", "toolCallId": "c1", "toolName": "read", "isError": false,
            "content": [{"type": "text", "text": code(200)}], "timestamp": 3,
        }),
    );
    add(
        "a0000004",
        json!({
            "role": "assistant", "provider": "anthropic", "api": "anthropic-messages",
            "model": "claude-sonnet-4-5", "stopReason": "stop", "timestamp": 4,
            "usage": {"input": 900, "output": 5, "cacheRead": 0, "cacheWrite": 0,
                "totalTokens": 905},
            "content": [{"type": "text", "text": "There are 200."}],
        }),
    );
    add("a0000005", json!({"role": "user", "content": "Good.", "timestamp": 5}));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

pub const CODEX: &str = "01a1fb3b-31f2-7601-bb99-e47e04b7ff1d";

/// A rollout of Codex: a command with a long output, recorded a second time for display.
pub fn codex(id: &str) -> String {
    let message = |role: &str, kind: &str, text: &str| {
        let content = json!([{"type": kind, "text": text}]);
        json!({"type": "message", "role": role, "content": content})
    };
    let call = json!({"type": "function_call", "name": "exec_command", "call_id": "c1",
        "arguments": json!({"cmd": "cat src/a.rs"}).to_string()});
    let result = json!({"type": "function_call_output", "call_id": "c1", "output": code(200)});
    let command_item = json!({"type": "CommandExecution", "id": "c1",
        "aggregated_output": code(200), "exit_code": 0, "status": "completed"});
    let records = [
        ("session_meta", json!({"id": id, "cwd": "/p", "cli_version": "0.169.0"})),
        ("turn_context", json!({"cwd": "/p", "model": "gpt-5.5"})),
        ("response_item", message("user", "input_text", "How many functions are there?")),
        ("response_item", call),
        ("event_msg", json!({"type": "item_completed", "item": command_item})),
        ("response_item", result),
        ("response_item", message("assistant", "output_text", "There are 200.")),
        ("response_item", message("user", "input_text", "Good.")),
    ];
    let line = |(n, (kind, payload)): (usize, &(&str, Value))| {
        let record = json!({"timestamp": "2026-11-20T23:12:03.096Z", "ordinal": n, "type": kind,
            "payload": payload});
        format!("{record}\n")
    };
    records.iter().enumerate().map(line).collect()
}

/// Writes records like Claude Code, each the parent of the next.
pub struct Claude {
    id: String,
    lines: Vec<Value>,
}

impl Claude {
    pub fn new(id: &str) -> Claude {
        Claude { id: id.to_owned(), lines: Vec::new() }
    }

    pub fn user(&mut self, words: &str) {
        self.push("user", json!({"role": "user", "content": words}), Value::Null);
    }

    pub fn say(&mut self, words: &str) {
        self.assistant(json!([{"type": "text", "text": words}]));
    }

    /// A call and its result, with the copy of the result that is never sent.
    pub fn call(&mut self, id: &str, name: &str, input: Value, result: &str, error: bool) {
        self.assistant(json!([{"type": "tool_use", "id": id, "name": name, "input": input}]));
        let content = json!([{"type": "tool_result", "tool_use_id": id, "content": result,
            "is_error": error}]);
        let copy = json!({"stdout": result, "stderr": ""});
        self.push("user", json!({"role": "user", "content": content}), copy);
    }

    /// A compaction as the agent itself writes it: a boundary, and a summary.
    pub fn compaction(&mut self, summary: &str) {
        self.push("system", Value::Null, Value::Null);
        let boundary = self.lines.last_mut().expect("it was pushed");
        boundary["parentUuid"] = Value::Null;
        boundary["subtype"] = json!("compact_boundary");
        boundary["content"] = json!("Conversation compacted");
        self.push("user", json!({"role": "user", "content": summary}), Value::Null);
        self.lines.last_mut().expect("it was pushed")["isCompactSummary"] = json!(true);
    }

    pub fn lines(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn assistant(&mut self, content: Value) {
        let n = self.lines.len();
        let message = json!({
            "id": format!("msg_{n}"), "type": "message", "role": "assistant",
            "model": "claude-sonnet-4-5", "content": content, "stop_reason": null,
            "usage": {"input_tokens": 100 + n, "output_tokens": 5},
        });
        self.push("assistant", message, Value::Null);
    }

    fn push(&mut self, kind: &str, message: Value, copy: Value) {
        let n = self.lines.len();
        let uuid = |n: usize| format!("00000000-0000-4000-8000-{n:012}");
        let mut line = json!({
            "parentUuid": n.checked_sub(1).map(uuid), "isSidechain": false, "userType": "external",
            "cwd": "/p", "sessionId": self.id, "version": "2.1.329", "type": kind,
            "message": message, "uuid": uuid(n),
            "timestamp": format!("2026-11-18T10:{:02}:{:02}.000Z", n / 60, n % 60),
        });
        if !copy.is_null() {
            line["toolUseResult"] = copy;
        }
        self.lines.push(line);
    }
}

/// A home with sessions of all agents.
pub fn of_all_agents() -> World {
    let world = World::new();
    world.pi(PI, pi(PI));
    world.claude(CLAUDE, claude(CLAUDE));
    world.codex(CODEX, codex(CODEX));
    world.opencode();
    let bytes = super::beginning(&fixtures::get("gemini", "pricing").bytes(), 4);
    let gemini = [".gemini", "tmp", "project", "chats", "session-2026-11-20T23-12-123ae7f3.jsonl"];
    world.write(&gemini.join("/"), bytes);
    world.cursor(&["composer", "sub-agent", "composer-inline"]);
    world.cursor_chat("5ce2be00-0000-4000-8000-000000000001");
    let transcripts = ".cursor/projects/home-dev-project/agent-transcripts";
    for (name, of) in [("e1a9c0de.txt", "transcript-text"), ("f00d/f00d.jsonl", "transcript")] {
        world.write(&format!("{transcripts}/{name}"), fixtures::case("cursor", of).bytes());
    }
    let copilot = fixtures::case("copilot", "sundays").bytes();
    world.write(".copilot/session-state/5cffe862-0001/events.jsonl", copilot);
    let qwen = fixtures::case("qwen", "compressed").bytes();
    world.write(".qwen/projects/-home-dev-project/chats/77aa0000.jsonl", qwen);
    let amp = fixtures::case("amp", "thread").bytes();
    world.write(".local/share/amp/threads/T-019b9d03.json", amp);
    world
}
