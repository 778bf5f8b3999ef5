//! `epitome inspect` on the command line.

use crate::world::sessions::{self, CLAUDE, PI};
use crate::world::{self, World};
use insta::assert_snapshot;

#[test]
fn it_says_where_everything_goes() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.pi(PI, sessions::pi(PI));
    assert_snapshot!(world.run(&["inspect", "0f3c", "--count", "estimate"]));
    assert_snapshot!("pi", world.run(&["inspect", "01a1"]));
}

#[test]
fn kinds_come_to_the_whole_file_and_context() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    for count in ["estimate", "o200k"] {
        let object = &world.json(&["inspect", "0f3c", "--count", count, "--json"])[0];
        let sum = |what: &str| -> u64 {
            let kinds = object["kinds"].as_object().expect("an object");
            kinds.values().map(|kind| kind[what].as_u64().expect("a number")).sum()
        };
        assert_eq!(sum("disk_bytes"), object["disk_bytes"].as_u64().expect("a number"));
        assert_eq!(sum("context_tokens"), object["context_tokens"].as_u64().expect("a number"));
        let planned = &world.json(&["compact", "0f3c", "--dry-run", "--json", "--count", count])[0];
        assert_eq!(planned["context_tokens"]["before"], object["context_tokens"]);
    }
}

#[test]
fn a_session_may_come_from_standard_input() {
    let world = World::new();
    let session = sessions::pi(PI);
    let terminal = world.run_with(&["inspect", "-", "--count", "estimate"], session.as_bytes());
    assert!(terminal.ends_with("--- status 0\n"), "{terminal}");
}

#[test]
fn violations_are_named_and_are_no_failure() {
    let world = World::new();
    let session = sessions::claude(CLAUDE);
    // The first result belongs to another call.
    let broken = session.replacen("\"tool_use_id\":\"t1\"", "\"tool_use_id\":\"t9\"", 1);
    world.write("broken.jsonl", broken);
    assert_snapshot!(world.run(&["inspect", "broken.jsonl", "--count", "estimate"]));
    assert_snapshot!("broken_compact", world.run(&["compact", "broken.jsonl", "--count=estimate"]));
}

#[test]
fn a_role_that_nobody_has_hides_no_body() {
    let world = World::new();
    let said = r#"{"role":"user","content":"hi"},{"role":"wizard","content":""}"#;
    world.write("request.json", format!(r#"{{"model":"gpt","messages":[{said}]}}"#));
    assert_snapshot!(world.run(&["inspect", "request.json", "--count", "estimate"]));
}

#[test]
fn json_is_what_the_schema_says() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.pi(PI, sessions::pi(PI));
    for id in [CLAUDE, PI] {
        let objects = world.json(&["inspect", id, "--json", "--count", "estimate"]);
        world::check("inspect.schema.json", &objects);
    }
}
