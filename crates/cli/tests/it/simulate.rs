//! What recipes would have kept of sessions, and the cost.

use crate::world::sessions::{self, CLAUDE};
use crate::world::{self, World};
use insta::assert_snapshot;
use serde_json::json;

/// A session of twenty calls: each reads a file, and mentions what it found in earlier ones.
fn session() -> String {
    let mut session = sessions::Claude::new(CLAUDE);
    session.user("Find out why parseConfig fails.");
    for n in 0..20_usize {
        let code: Vec<String> =
            (0..60).map(|line| format!("fn step{n}Of{line}() {{ run({n}{line:03}) }}")).collect();
        let input = json!({ "file_path": format!("/p/src/file{n}.rs") });
        session.call(&format!("toolu_{n}"), "Read", input, &code.join("\n"), false);
        let earlier = n / 2;
        session.say(&format!("It calls step{earlier}Of7 in src/file{earlier}.rs."));
        session.user("And then?");
    }
    session.lines()
}

#[test]
fn recipes_are_compared_over_a_session() {
    let world = World::new();
    world.claude(CLAUDE, session());
    let before = world.tree();
    assert_snapshot!("compared", world.run(&["simulate", CLAUDE]));
    assert_snapshot!("two", world.run(&["simulate", CLAUDE, "--recipe", "s06", "--recipe", "s08"]));
    assert_snapshot!("all", world.run(&["simulate", "--all", "--recipe", "s06"]));
    assert_eq!(world.tree(), before, "a simulation writes nothing");
}

#[test]
fn a_page_is_a_new_file_and_a_session_that_is_not_replayed_is_told() {
    let world = World::new();
    let path = world.claude(CLAUDE, session());
    let path = path.to_str().expect("it is one");
    let before = world.tree();
    let output = world.output(&["simulate", path, "--recipe", "s06", "--html", path]);
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(world.tree(), before, "the session is not written over");
    let output = world.output(&["simulate", path, "/nowhere", "--recipe", "s06"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("1 of 2 sessions were not replayed"), "{told}");
    let page = world.home.join("page.html");
    world.run(&["simulate", path, "--recipe", "s06", "--html", page.to_str().expect("a path")]);
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && !page.contains("<script"), "{page}");
}

#[test]
fn json_is_what_the_schema_says() {
    let world = World::new();
    let path = world.claude(CLAUDE, session());
    let path = path.to_str().expect("it is one");
    let copy = world.write("copy.jsonl", session());
    let copy = copy.to_str().expect("text");
    // One file with two names counts once; a copy of it counts again.
    let objects = world.json(&["simulate", CLAUDE, path, copy, "--json"]);
    world::check("simulate.schema.json", &objects);
    assert_eq!(objects.len(), 1);
    let sessions = objects[0]["sessions"].as_array().map(Vec::len);
    assert_eq!(sessions, Some(2));
    // A mean over sessions, one of which is the copy of the other.
    assert_eq!(
        objects[0]["recipes"][1]["recall"],
        objects[0]["sessions"][0]["recipes"][1]["recall"]
    );
}

#[test]
fn a_gate_that_is_missed_is_a_status_of_its_own() {
    let world = World::new();
    world.claude(CLAUDE, session());
    let simulate =
        |gate: &str| world.output(&["simulate", CLAUDE, "--recipe", "s06", "--gate", gate]);
    let status = |gate: &str| simulate(gate).status.code();
    let cases = [
        ("recall>=0.1, cost<=9", Some(0)),
        ("recall>=0.1,cost<=0.01", Some(7)),
        ("cost<=1.5", Some(0)),
        ("far-recall>=1.1", Some(2)),
        ("recall>=90", Some(2)),
        ("over<=-1", Some(2)),
        ("beauty>=1", Some(2)),
        ("recall=1", Some(2)),
    ];
    for (gate, expect) in cases {
        assert_eq!(status(gate), expect, "{gate}");
    }
    let told = String::from_utf8(simulate("kept<=0.9,recall>=1").stderr).expect("UTF-8");
    assert!(told.contains("the recipe s06 misses the gate: recall>=1 (is 0."), "{told}");
    assert!(!told.contains("kept"), "{told}");
    let told = String::from_utf8(simulate("pins>=1").stderr).expect("UTF-8");
    let why = "pins>=1 (was not measured: no session has a rule file, a skill or a marked text)";
    assert!(told.contains(why), "{told}");
    let mut short = sessions::Claude::new(CLAUDE);
    short.user("Hello.");
    short.say("Hello.");
    let short = world.write("short.jsonl", short.lines());
    let short = short.to_str().expect("text");
    let output = world.output(&["simulate", short, "--recipe", "s06", "--gate", "recall>=0.9"]);
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    let why = "recall>=0.9 (was not measured: no session is long enough for a forced compaction)";
    assert!(told.contains(why), "{told}");
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let world = World::new();
    world.claude(CLAUDE, session());
    world.write("prices.toml", "[[model]]\n");
    let refused = [
        &["simulate"][..],
        &["simulate", "no-such-session"],
        &["simulate", CLAUDE, "--recipe", "no-such-recipe"],
        &["simulate", CLAUDE, "--model", "no-such-model"],
        &["simulate", CLAUDE, "--prices", "prices.toml"],
        &["simulate", CLAUDE, "--gate", "recall>=90"],
    ];
    let mut terminals: Vec<String> = refused.iter().map(|args| world.run(args)).collect();
    terminals.push(World::new().run(&["simulate", "--all"]));
    assert_snapshot!(terminals.join("\n"));
}
