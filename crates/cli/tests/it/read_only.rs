//! Read-only sessions: every command that reads works, every command that writes is refused.

use crate::world::{self, World};
use insta::assert_snapshot;

const ID: &str = "5cffe862-0000-4000-8000-000000000001";

fn copilot(world: &World) {
    let session = fixtures::case("copilot", "sundays").bytes();
    world.write(&format!(".copilot/session-state/{ID}/events.jsonl"), session);
}

#[test]
fn what_looks_works() {
    let world = World::new();
    copilot(&world);
    assert_snapshot!(world.run(&["list"]), @r"
    $ epitome list
    agent    session   age     disk  messages  saves                project      title
    copilot  5cffe862   3d  18.8 KB      ~173      -  -  read-only  dev/project  Prices on Sundays

    1 session, 18.8 KB on disk, ~173 tokens of messages, of which compacting saves ~0 (0.0%)
    ~ is an estimate: `epitome inspect` counts a session exactly, and says what the provider bills for it
    --- status 0
    ");
    assert_snapshot!("inspected", world.run(&["inspect", "5cff", "--count", "estimate"]));
    let objects = world.json(&["inspect", ID, "--json", "--count", "estimate"]);
    world::check("inspect.schema.json", &objects);
}

#[test]
fn what_writes_is_refused_and_leaves_no_trace() {
    let world = World::new();
    copilot(&world);
    let before = world.tree();
    let mut terminals = Vec::new();
    for args in [
        &["compact", "5cff"][..],
        &["compact", "5cff", "--dry-run"],
        &["compact", "5cff", "--out", "small.jsonl"],
        &["restore", "5cff"],
        &["restore", "5cff", "--out", "whole.jsonl"],
    ] {
        let terminal = world.run(args);
        assert!(terminal.ends_with("--- status 4\n"), "{terminal}");
        terminals.push(terminal);
    }
    assert_eq!(world.tree(), before, "nothing was made, no lock and no folder");
    terminals.push(world.run(&["compact", "--all"]));
    assert_snapshot!(terminals.join("\n"));
}

const COMPOSER: &str = "d17e5a00-0000-4000-8000-000000000017";

#[test]
fn composers_of_cursor_are_looked_at() {
    let world = World::new();
    world.cursor(&["composer", "sub-agent", "composer-summary"]);
    let before = world.tree();
    let mut terminals = Vec::new();
    for args in [
        &["inspect", COMPOSER, "--count", "estimate"][..],
        &["export", COMPOSER, "--to", "transcript"],
        &["export", "90ad5c00-0000-4000-8000-000000000010", "--to", "openai-chat"],
    ] {
        terminals.push(world.run(args));
    }
    assert_eq!(world.tree(), before, "nothing was made");
    assert_snapshot!(terminals.join("\n"));
    let objects = world.json(&["inspect", COMPOSER, "--json", "--count", "estimate"]);
    world::check("inspect.schema.json", &objects);
}

#[test]
fn conversations_of_cursor_are_never_written() {
    let world = World::new();
    let database = world.cursor(&["composer"]).display().to_string();
    let chat = world.cursor_chat("5ce2be00-0000-4000-8000-000000000001").display().to_string();
    let before = world.tree();
    for session in [COMPOSER, &database, "5ce2be00", &chat] {
        for args in [
            &["compact", session][..],
            &["compact", session, "--dry-run"],
            &["compact", session, "--vacuum"],
            &["compact", session, "--out", "small.jsonl"],
            &["restore", session],
        ] {
            let terminal = world.run(args);
            assert!(terminal.contains("sessions of cursor are only read"), "{terminal}");
            assert!(terminal.ends_with("--- status 4\n"), "{terminal}");
        }
    }
    assert_eq!(world.tree(), before, "nothing was made, no lock and no folder");
    let terminal = world.run(&["compact", "--all", "--vacuum"]);
    let kept = |tree: Vec<(std::path::PathBuf, std::time::SystemTime, String)>| {
        let stores = tree
            .into_iter()
            .filter(|(path, ..)| path.extension().is_some_and(|end| end == "vscdb" || end == "db"));
        stores.collect::<Vec<_>>()
    };
    assert_eq!(kept(world.tree()), kept(before), "{terminal}");
}
