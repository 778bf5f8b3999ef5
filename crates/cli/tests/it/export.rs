//! `epitome export` on the command line.

use std::fs;

use crate::world::sessions::{self, CLAUDE, PI};
use crate::world::{self, World};
use insta::assert_snapshot;

#[test]
fn a_session_becomes_a_request_of_every_wire() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.pi(PI, sessions::pi(PI));
    for (wire, format) in [
        ("anthropic", "anthropic"),
        ("openai-chat", "openai-chat"),
        ("openai-responses", "openai-responses"),
        ("gemini", "gemini-request"),
    ] {
        for id in [CLAUDE, PI] {
            let out = format!("{wire}-{id}.json");
            let terminal = world.run(&["export", "--to", wire, id, "--out", &out]);
            assert!(terminal.ends_with("--- status 0\n"), "{terminal}");
            let object = &world.json(&["inspect", &out, "--agent", format, "--json"])[0];
            assert_eq!(object["breaches"], serde_json::json!([]), "{wire}");
        }
    }
}

#[test]
fn it_says_what_is_written_and_what_stays_behind() {
    let world = World::new();
    world.write("request.json", fixtures::case("anthropic", "request").bytes());
    let args = ["export", "--to", "openai-chat", "request.json", "--out", "chat.json"];
    assert_snapshot!(world.run(&args));
    assert_snapshot!("taken", world.run(&args));
    assert_snapshot!(
        "not_json",
        world.run(&["export", "--to", "gemini", "request.json", "--json"])
    );
    assert_snapshot!("made", fs::read_to_string(world.home.join("chat.json")).expect("a request"));
    let args = ["export", "--to", "gemini", "request.json", "--json", "--out", "g.json"];
    world::check("export.schema.json", &world.json(&args));
}

#[test]
fn a_session_becomes_text() {
    let world = World::new();
    world.write("run.traj.json", fixtures::case("mini-swe", "run").bytes());
    assert_snapshot!(world.run(&["export", "--to", "transcript", "run.traj.json"]));
}

#[test]
fn a_session_may_come_from_standard_input_and_one_that_says_nothing_is_refused() {
    let world = World::new();
    let body = br#"{"system":"Be brief.","messages":[{"role":"user","content":"hi"}]}"#;
    assert_snapshot!(world.run_with(&["export", "--to", "openai-responses", "-"], body));
    let empty = b"{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/p\"}\n";
    assert_snapshot!("empty", world.run_with(&["export", "--to", "anthropic", "-"], empty));
}

#[test]
fn a_request_becomes_smaller_and_stays_valid() {
    let world = World::new();
    for format in ["anthropic", "openai-chat", "openai-responses", "gemini-request"] {
        let name = format!("{format}.json");
        let path = world.write(&name, fixtures::case(format, "request").bytes());
        let before = fs::read(&path).expect("a request");
        let small = format!("small-{name}");
        let args = ["compact", &name, "--out", &small, "--keep-turns=1", "--count=estimate"];
        let terminal = world.run(&args);
        assert!(terminal.ends_with("--- status 0\n"), "{terminal}");
        assert_eq!(fs::read(&path).expect("a request"), before, "the request stays");
        let object = &world.json(&["inspect", &small, "--json"])[0];
        assert_eq!(object["agent"], format);
        assert_eq!(object["breaches"], serde_json::json!([]), "{format}");
        assert!(fs::read(world.home.join(&small)).expect("a request").len() < before.len());
        assert_eq!(world.status(&["compact", &name, "--keep-turns=1"]), 0);
        assert_eq!(world.status(&["restore", &name]), 0);
        assert_eq!(fs::read(&path).expect("a request"), before, "everything comes back");
    }
}

#[test]
fn inspect_names_every_breach_with_its_place() {
    let world = World::new();
    let body = r#"{"max_tokens": 1, "system": "", "messages": [
  {"role": "assistant", "content": [{"type": "tool_use", "id": "t 1", "name": "x", "input": {}}]},
  {"role": "user", "content": [
    {"type": "text", "text": " "},
    {"type": "tool_result", "tool_use_id": "t2", "content": "x"}
  ], "id": "m"}
]}"#;
    world.write("broken.json", body);
    assert_snapshot!(world.run(&["inspect", "broken.json", "--count", "estimate"]));
}
