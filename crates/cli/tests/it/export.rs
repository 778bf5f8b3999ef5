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
    assert_snapshot!(world.run(&args), @r"
    $ epitome export --to openai-chat request.json --out chat.json
    --- stderr
    written: 11 messages, 16.9 KB, chat.json
    left out: 1 block of reasoning, signed for another API
    left out: the definitions of tools
    redacted: 1 piece of personal data
    --- status 0
    ");
    assert_snapshot!(world.run(&args), @r"
    $ epitome export --to openai-chat request.json --out chat.json
    --- stderr
    error: there is something of that name already: chat.json
      hint: choose another name, or remove what is there
    --- status 4
    ");
    assert_snapshot!(world.run(&["export", "--to", "gemini", "request.json", "--json"]), @r"
    $ epitome export --to gemini request.json --json
    --- stderr
    error: --json prints a report, so the export needs --out
    --- status 2
    ");
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
    assert_snapshot!(world.run_with(&["export", "--to", "openai-responses", "-"], body), @r#"
    $ epitome export --to openai-responses -
    {"instructions":"Be brief.","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]}
    --- status 0
    "#);
    let empty = b"{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/p\"}\n";
    assert_snapshot!(world.run_with(&["export", "--to", "anthropic", "-"], empty), @r"
    $ epitome export --to anthropic -
    --- stderr
    error: the session sends nothing to a model: -
    --- status 3
    ");
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
    assert_snapshot!(world.run(&["inspect", "broken.json", "--count", "estimate"]), @r"
    $ epitome inspect broken.json --count estimate
    broken.json
    anthropic


                    blocks  messages          disk
    user                 1         1  25.0%    3 B   1.0%
    call arguments       1         2  50.0%    2 B   0.7%
    results              1         1  25.0%    3 B   1.0%
    overhead                       -         287 B  97.3%
    total                3         4         295 B

    tool  calls  arguments  results         disk
    x         1          2        0  50.0%   2 B  0.7%

    line  messages         disk  largest blocks
       2         2  50.0%   2 B  call arguments  x
       4         1  25.0%   3 B  user
       5         1  25.0%   3 B  results         result

    session    5 lines · 3 of 3 entries are sent · 0 turns
    messages   4 tokens, counted with estimate
    disk       295 B
    not valid  line 2: messages.0.content.0: the call t 1 has no result in the next message (pairing)
               line 5: messages.1.content.1: a result without its call t2 in the message before (pairing)
               line 4: messages.1.content.0: a text of only white space (empty text)
               line 2: messages.0.content.0: `id` has other characters than a-z, A-Z, 0-9, _ and - (shape)
               line 2: messages.0.content.0: the first message is not of the user (roles)
               line 6: messages.1: `id` is not a key of this (unknown keys)
    --- status 0
    ");
}
