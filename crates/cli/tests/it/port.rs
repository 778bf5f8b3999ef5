//! `epitome port` on the command line.

use std::fs;
use std::path::{Path, PathBuf};

use crate::world::sessions::{self, CLAUDE, CODEX, PI};
use crate::world::{self, World};
use insta::assert_snapshot;
use serde_json::{Value, json};

/// A home with a session of each agent that sessions can be converted for, and their ids.
fn agents() -> (World, [(&'static str, &'static str); 3]) {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.codex(CODEX, sessions::codex(CODEX));
    world.pi(PI, sessions::pi(PI));
    (world, [("claude", CLAUDE), ("codex", CODEX), ("pi", PI)])
}

#[test]
fn it_says_what_is_written_what_stays_behind_and_how_to_go_on() {
    let (world, _) = agents();
    assert_snapshot!(world.run(&["port", CLAUDE, "--to", "codex"]), @r"
    $ epitome port 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4 --to codex
    cd /p && codex resume 01a1fdfa-4600-7867-be74-b81fde9556c2
    --- stderr
    written: 14 records, 16.0 KB, ~/.codex/sessions/2026/11/21/rollout-2026-11-21T12-00-00-01a1fdfa-4600-7867-be74-b81fde9556c2.jsonl
    left out: the failure of 1 call; the output of the tools is kept
    note: /p is not a directory on this machine; --cwd names another
    --- status 0
    ");
    assert_snapshot!(world.run(&["port", CLAUDE, "--to", "codex"]), @r"
    $ epitome port 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4 --to codex
    --- stderr
    error: there is something of that name already: [home]/.codex/sessions/2026/11/21/rollout-2026-11-21T12-00-00-01a1fdfa-4600-7867-be74-b81fde9556c2.jsonl
      hint: choose another name, or remove what is there
    --- status 4
    ");
    world.write("request.json", fixtures::case("anthropic", "request").bytes());
    let args = ["port", "request.json", "--to", "pi", "--cwd", "/it's a project"];
    assert_snapshot!(world.run(&args), @r#"
    $ epitome port request.json --to pi --cwd /it's a project
    cd '/it'\''s a project' && pi --session 01a1fdfa-4600-7d5c-9e49-eba6eea708c3
    --- stderr
    written: 11 records, 18.9 KB, ~/.pi/agent/sessions/--it's a project--/2026-11-21T12-00-00-000Z_01a1fdfa-4600-7d5c-9e49-eba6eea708c3.jsonl
    left out: 1 block of reasoning, signed for another API
    left out: the definitions of tools
    left out: 1 prompt or reminder of the agent itself
    note: /it's a project is not a directory on this machine; --cwd names another
    --- status 0
    "#);
    let args = ["port", PI, "--to", "claude", "--out", "new.jsonl"];
    assert_snapshot!(world.run(&args), @r"
    $ epitome port 01a1fb3a-c450-731a-9250-9fa9d78b0d62 --to claude --out new.jsonl
    --- stderr
    written: 6 records, 8.5 KB, new.jsonl
    note: /p is not a directory on this machine; --cwd names another
    --- status 0
    ");
}

#[test]
fn each_agent_gets_it_where_it_looks_for_sessions_and_finds_it_there() {
    let (world, agents) = agents();
    let places = [
        ("claude", ".claude/projects/-p/[id].jsonl"),
        ("codex", ".codex/sessions/2026/11/21/rollout-2026-11-21T12-00-00-[id].jsonl"),
        ("pi", ".pi/agent/sessions/--p--/2026-11-21T12-00-00-000Z_[id].jsonl"),
    ];
    for (from, id) in agents {
        for (to, place) in places {
            let printed = world.json(&["port", id, "--to", to, "--json"]);
            world::check("port.schema.json", &printed);
            let new = printed[0]["new_id"].as_str().expect("an id");
            let out = PathBuf::from(printed[0]["out"].as_str().expect("a path"));
            assert_eq!(out, world.home.join(place.replace("[id]", new)), "{from} → {to}");
            let found = &world.json(&["inspect", new, "--json"])[0];
            assert_eq!((&found["agent"], &found["breaches"]), (&json!(to), &json!([])), "{from}");
            assert_eq!(found["id"], json!(new));
        }
    }
    let listed = world.json(&["list", "--json"]);
    assert_eq!(listed.len(), 3 + 9, "{listed:#?}");
}

#[test]
fn a_session_that_comes_back_says_what_it_said() {
    let (world, agents) = agents();
    let words = |id: &str| {
        let args = ["export", "--to", "openai-chat", id];
        let mut body: Value =
            serde_json::from_slice(&world.output(&args).stdout).expect("a request");
        for message in body["messages"].as_array_mut().expect("messages") {
            for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
                let arguments = &mut call["function"]["arguments"];
                let text = arguments.as_str().expect("a text");
                // The members of an object have no order.
                *arguments = serde_json::from_str(text).expect("an object");
            }
        }
        body["messages"].take()
    };
    for (from, id) in agents {
        for (to, _) in agents {
            let ported = |id: &str, to: &str| {
                let printed = world.json(&["port", id, "--to", to, "--json"]);
                printed[0]["new_id"].as_str().expect("an id").to_owned()
            };
            let back = ported(&ported(id, to), from);
            assert_eq!(words(&back), words(id), "{from} → {to} → {from}");
        }
    }
}

#[test]
fn the_file_is_private_and_the_session_stays() {
    let (world, _) = agents();
    let before = sessions::pi(PI);
    let printed = &world.json(&["port", PI, "--to", "codex", "--json"])[0];
    let out = Path::new(printed["out"].as_str().expect("a path"));
    let old = Path::new(printed["session"].as_str().expect("a path"));
    assert_eq!(fs::read_to_string(old).expect("the session"), before);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode();
        assert_eq!(mode(out) & 0o777, 0o600);
        assert_eq!(mode(out.parent().expect("a folder")) & 0o777, 0o700);
    }
}

#[test]
fn what_cannot_be_carried_over_is_refused_and_nothing_is_written() {
    let world = World::new();
    let before = world.tree();
    let empty = b"{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/p\"}\n";
    assert_snapshot!(world.run_with(&["port", "-", "--to", "claude"], empty), @r"
    $ epitome port - --to claude
    --- stderr
    error: the session says nothing that could be carried over
    --- status 3
    ");
    let deep = format!("/{}", "deep/".repeat(50));
    let body = br#"{"system":"Be brief.","messages":[{"role":"user","content":"hi"}]}"#;
    let args = ["port", "-", "--to", "claude", "--cwd", &deep];
    assert_eq!(world.run_with(&args, body).lines().last(), Some("--- status 4"));
    assert_eq!(world.tree(), before, "nothing was written");
}
