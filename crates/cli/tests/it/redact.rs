//! `epitome redact` and `epitome scan` on the command line.

use std::fs;

use crate::world::sessions::{self, CLAUDE, Claude, PI};
use crate::world::{self, World};
use insta::assert_snapshot;
use serde_json::json;

/// Split in two, so that scanners do not report them as real secrets.
const TOKEN: &str = concat!("ghp_", "9fK2mQ7xV4bN8sL1tR6wY3zA5cE0dHjUiOpG");
const PASSWORD: &str = concat!("tr0ub4dor", "-and-3");

/// A session of pi into which the user pasted a token, and in which a tool printed settings.
fn session() -> String {
    let message = |id: &str, parent: serde_json::Value, message: serde_json::Value| {
        json!({"type": "message", "id": id, "parentId": parent,
            "timestamp": "2026-11-18T10:00:01.000Z", "message": message})
    };
    let home = concat!("/home", "/jroe/shop");
    let lines = [
        json!({"type": "session", "version": 3, "id": PI, "timestamp": "2026-11-18T10:00:00.000Z",
            "cwd": home}),
        message(
            "a0000001",
            json!(null),
            json!({"role": "user", "timestamp": 1,
            "content": format!("Push with {TOKEN}, and mail jane@roe.name.")}),
        ),
        message(
            "a0000002",
            json!("a0000001"),
            json!({
            "role": "assistant", "provider": "anthropic", "api": "anthropic-messages",
            "model": "claude-sonnet-4-5", "stopReason": "toolUse", "timestamp": 2,
            "usage": {"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15},
            "content": [{"type": "toolCall", "id": "t1", "name": "bash",
                "arguments": {"command": "cat .env", "env": {"GH_TOKEN": TOKEN}}}]}),
        ),
        message(
            "a0000003",
            json!("a0000002"),
            json!({
            "role": "toolResult", "toolCallId": "t1", "toolName": "bash", "isError": false,
            "timestamp": 3, "content": [{"type": "text",
                "text": format!("DB_PASSWORD={PASSWORD}\nmysql -u shop -p{PASSWORD}\n")}]}),
        ),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_copy_is_written_without_what_is_found() {
    let world = World::new();
    let path = world.pi(PI, session());
    assert_snapshot!(world.run(&["redact", PI, "--out", "copy.jsonl"]), @r"
    $ epitome redact 01a1fb3a-c450-731a-9250-9fa9d78b0d62 --out copy.jsonl
    --- stderr
    written: copy.jsonl, 1.1 KB; 2 secrets, 2 pieces of personal data redacted
    --- status 0
    ");
    assert_eq!(fs::read_to_string(path).expect("the session"), session(), "it stays");
    assert_snapshot!(fs::read_to_string(world.home.join("copy.jsonl")).expect("a copy"), @r#"
    {"cwd":"~/shop","id":"01a1fb3a-c450-731a-9250-9fa9d78b0d62","timestamp":"2026-11-18T10:00:00.000Z","type":"session","version":3}
    {"id":"a0000001","message":{"content":"Push with [REDACTED:github-pat-1], and mail [REDACTED:email-1].","role":"user","timestamp":1},"parentId":null,"timestamp":"2026-11-18T10:00:01.000Z","type":"message"}
    {"id":"a0000002","message":{"api":"anthropic-messages","content":[{"arguments":{"command":"cat .env","env":{"GH_TOKEN":"[REDACTED:github-pat-1]"}},"id":"t1","name":"bash","type":"toolCall"}],"model":"claude-sonnet-4-5","provider":"anthropic","role":"assistant","stopReason":"toolUse","timestamp":2,"usage":{"cacheRead":0,"cacheWrite":0,"input":10,"output":5,"totalTokens":15}},"parentId":"a0000001","timestamp":"2026-11-18T10:00:01.000Z","type":"message"}
    {"id":"a0000003","message":{"content":[{"text":"DB_PASSWORD=[REDACTED:password-assignment-1]\nmysql -u shop -p[REDACTED:password-assignment-1]\n","type":"text"}],"isError":false,"role":"toolResult","timestamp":3,"toolCallId":"t1","toolName":"bash"},"parentId":"a0000002","timestamp":"2026-11-18T10:00:01.000Z","type":"message"}
    "#);
    assert_snapshot!(world.run(&["redact", "copy.jsonl", "--out", "again.jsonl"]), @r"
    $ epitome redact copy.jsonl --out again.jsonl
    --- stderr
    written: again.jsonl, 1.1 KB; nothing redacted
    --- status 0
    ");
    let read = |name: &str| fs::read(world.home.join(name)).expect("a copy");
    assert_eq!(read("again.jsonl"), read("copy.jsonl"), "twice is once");
    let args = ["redact", PI, "--redact", "secrets", "--out", "secrets.jsonl", "--json"];
    world::check("redact.schema.json", &world.json(&args));
    assert!(String::from_utf8_lossy(&read("secrets.jsonl")).contains("jane@roe.name"));
}

#[test]
fn a_scan_says_where_and_never_what() {
    let world = World::new();
    world.pi(PI, session());
    assert_snapshot!(world.run(&["scan", PI]), @r"
    $ epitome scan 01a1fb3a-c450-731a-9250-9fa9d78b0d62
    [home]/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl: 2 secrets in 4 places
      github-pat-1  line 2, entry a0000001, 40 characters
      github-pat-1  line 3, entry a0000002, 40 characters
      password-assignment-1  line 4, entry a0000003, 15 characters
      password-assignment-1  line 4, entry a0000003, 15 characters
    --- stderr
    error: something was found in 4 places
      hint: `epitome redact` writes a copy of a session without it
    --- status 6
    ");
    assert_snapshot!(world.run(&["scan", PI, "--for", "secrets,pii"]), @r"
    $ epitome scan 01a1fb3a-c450-731a-9250-9fa9d78b0d62 --for secrets,pii
    [home]/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl: 2 secrets, 2 pieces of personal data in 6 places
      home-path-1  line 1, 10 characters
      github-pat-1  line 2, entry a0000001, 40 characters
      email-1  line 2, entry a0000001, 13 characters
      github-pat-1  line 3, entry a0000002, 40 characters
      password-assignment-1  line 4, entry a0000003, 15 characters
      password-assignment-1  line 4, entry a0000003, 15 characters
    --- stderr
    error: something was found in 6 places
      hint: `epitome redact` writes a copy of a session without it
    --- status 6
    ");
    assert_snapshot!(world.run(&["scan", PI, "--for", "jwt"]), @r"
    $ epitome scan 01a1fb3a-c450-731a-9250-9fa9d78b0d62 --for jwt
    [home]/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl: nothing found
    --- status 0
    ");
    let objects = world.json(&["scan", PI, "--json"]);
    world::check("scan.schema.json", &objects);
    for args in [&["scan", PI][..], &["scan", PI, "--json", "--for", "secrets,pii"]] {
        let out = world.output(args);
        assert_eq!(out.status.code(), Some(6));
        let output = [out.stdout, out.stderr].concat();
        let output = String::from_utf8_lossy(&output);
        let secrets = [TOKEN, PASSWORD, "jane@roe.name"];
        assert!(!secrets.iter().any(|secret| output.contains(secret)), "{output}");
    }
}

#[test]
fn all_sessions_of_the_machine_are_scanned() {
    let world = World::new();
    world.pi(PI, session());
    world.pi("clean", fixtures::get("pi", "pricing").bytes());
    assert_snapshot!(world.run(&["scan", "--all"]), @r"
    $ epitome scan --all
    [home]/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl: 2 secrets in 4 places
      github-pat-1  line 2, entry a0000001, 40 characters
      github-pat-1  line 3, entry a0000002, 40 characters
      password-assignment-1  line 4, entry a0000003, 15 characters
      password-assignment-1  line 4, entry a0000003, 15 characters
    1 other session: nothing found
    --- stderr
    error: something was found in 4 places
      hint: `epitome redact` writes a copy of a session without it
    --- status 6
    ");
    assert_eq!(world.status(&["scan", "--project", "/home/dev/project"]), 0);
    assert_eq!(world.status(&["scan", "--all", "--agent", "claude"]), 0);
}

#[test]
fn the_sessions_of_sub_agents_are_scanned_and_a_copy_says_that_it_is_without_them() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let mut agent = Claude::new(CLAUDE);
    agent.user(&format!("Push with {TOKEN}."));
    let name = format!(".claude/projects/-p/{CLAUDE}/subagents/agent-abc.jsonl");
    world.write(&name, agent.lines());
    for args in [&["scan", CLAUDE, "--json"][..], &["scan", "--all", "--json"]] {
        let scanned = world.json(args);
        let places = scanned.iter().map(|it| it["found"].as_array().expect("a list").len());
        assert_eq!(places.collect::<Vec<_>>(), [0, 1], "{args:?}");
    }
    assert_snapshot!(world.run(&["redact", CLAUDE, "--out", "copy.jsonl"]), @r"
    $ epitome redact 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4 --out copy.jsonl
    --- stderr
    written: copy.jsonl, 22.5 KB; nothing redacted
    left out: 1 sub-agent; such a file can be copied alone: ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4/subagents/agent-abc.jsonl
    --- status 0
    ");
}

#[test]
fn an_export_is_redacted_unless_told_not_to() {
    let world = World::new();
    world.pi(PI, session());
    let text = |args: &[&str]| String::from_utf8(world.output(args).stdout).expect("text");
    for wire in ["anthropic", "openai-chat", "openai-responses", "gemini", "transcript"] {
        let redacted = text(&["export", "--to", wire, PI]);
        let secrets = [TOKEN, PASSWORD, "jane@roe.name"];
        assert!(!secrets.iter().any(|secret| redacted.contains(secret)), "{redacted}");
        assert!(redacted.contains("[REDACTED:github-pat-1]"), "{redacted}");
        let whole = text(&["export", "--to", wire, PI, "--no-redact"]);
        assert!(secrets.iter().all(|secret| whole.contains(secret)), "{whole}");
    }
}

#[test]
fn rules_of_the_user_are_added() {
    let world = World::new();
    world.write("s.jsonl", session().replace("Push with", "My badge is B-123456. Push with"));
    let rule = "[[rules]]\nid = \"badge\"\nregex = '''B-\\d{6}'''\nkeywords = [\"b-\"]\n";
    world.write("mine.toml", rule);
    assert_snapshot!(world.run(&["scan", "s.jsonl", "--rules", "mine.toml"]), @r"
    $ epitome scan s.jsonl --rules mine.toml
    s.jsonl: 3 secrets in 5 places
      badge-1  line 2, entry a0000001, 8 characters
      github-pat-1  line 2, entry a0000001, 40 characters
      github-pat-1  line 3, entry a0000002, 40 characters
      password-assignment-1  line 4, entry a0000003, 15 characters
      password-assignment-1  line 4, entry a0000003, 15 characters
    --- stderr
    error: something was found in 5 places
      hint: `epitome redact` writes a copy of a session without it
    --- status 6
    ");
    world.write(".config/epitome/rules.toml", rule);
    assert_snapshot!(world.run(&["scan", "s.jsonl", "--for", "badge"]), @r"
    $ epitome scan s.jsonl --for badge
    s.jsonl: 1 secret in 1 place
      badge-1  line 2, entry a0000001, 8 characters
    --- stderr
    error: something was found in 1 place
      hint: `epitome redact` writes a copy of a session without it
    --- status 6
    ");
    world.write("wrong.toml", "[[rules]]\nid = \"x\"\nregex = '''(a'''\n");
    world.write("none.toml", "rules = 1\n");
    assert_snapshot!(
        "wrong",
        [
            world.run(&["scan", "s.jsonl", "--rules", "wrong.toml"]),
            world.run(&["scan", "s.jsonl", "--rules", "none.toml"]),
            world.run(&["scan", "s.jsonl", "--rules", "gone.toml"]),
            world.run(&["redact", "s.jsonl", "--redact", "nothing"]),
            world.run(&["redact", "s.jsonl", "--no-redact"]),
            world.run(&["redact", "s.jsonl", "--json"]),
        ]
        .join("\n")
    );
}
