//! Sessions that are only read: everything that looks works, everything that writes is refused.

mod world;

use insta::assert_snapshot;
use world::World;

const ID: &str = "5cffe862-0000-4000-8000-000000000001";

fn copilot(world: &World) {
    let session = fixtures::made("copilot", "sundays.jsonl");
    world.write(&format!(".copilot/session-state/{ID}/events.jsonl"), session);
}

#[test]
fn what_looks_works() {
    let world = World::new();
    copilot(&world);
    assert_snapshot!(world.run(&["list"]));
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
