//! `epitome keep`, `epitome history` and `epitome restore --at`: every version of a session.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;

use crate::world::World;
use crate::world::sessions::{self, CLAUDE, PI};

/// Runs a command at a given time, which must succeed.
fn at(world: &World, time: &str, args: &[&str]) {
    let time = format!("2026-11-20T{time}:00Z");
    let done = world.command(args).env("EPITOME_NOW", time).output().expect("the program runs");
    assert!(done.status.success(), "{args:?}: {done:?}");
}

/// A session that was appended to, compacted, rewritten by its agent and deleted.
fn kept(world: &World) -> Vec<Vec<u8>> {
    let path = world.pi(PI, sessions::pi(PI));
    let read = |path: &Path| fs::read(path).expect("a session");
    let keep = ["keep", "--all", "--once"];
    let mut versions = vec![read(&path)];
    at(world, "10:00", &keep);
    let line = versions[0].split(|byte| *byte == b'\n').next().expect("a line").to_vec();
    let appended = [&versions[0][..], &line, b"\n"].concat();
    fs::write(&path, &appended).expect("a session");
    versions.push(appended);
    at(world, "10:10", &keep);
    let small = ["compact", PI, "--keep-turns=1", "--count=estimate", "--recipe", "transcript"];
    at(world, "10:20", &small);
    versions.push(read(&path));
    at(world, "10:30", &keep);
    fs::write(&path, &versions[0][..400]).expect("a session");
    versions.push(read(&path));
    at(world, "10:40", &keep);
    fs::remove_file(&path).expect("a session");
    at(world, "10:50", &keep);
    versions
}

#[test]
fn a_deleted_session_is_listed_with_its_versions_and_comes_back() {
    let world = World::new();
    let versions = kept(&world);
    assert_snapshot!(without_runs(&world.run(&["history", PI])));
    let path =
        world.home.join(format!(".pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_{PI}.jsonl"));
    for (n, expect) in versions.iter().enumerate() {
        let number = (n + 1).to_string();
        let restored = ["restore", PI, "--at", &number, "--yes"];
        assert_eq!(world.status(&restored), 0);
        assert_eq!(&fs::read(&path).expect("a session"), expect, "version {number}");
    }
    assert_snapshot!(without_runs(&world.run(&["history", PI])));
    let seen = world.run(&["restore", PI, "--at", "2026-11-20T10:15:00Z", "--yes"]);
    assert_snapshot!(seen);
    assert_eq!(fs::read(&path).expect("a session"), versions[1]);
}

/// The output without the id of a run, which depends on the time.
fn without_runs(terminal: &str) -> String {
    terminal.lines().fold(String::new(), |text, line| match line.split_once("(run ") {
        Some((before, rest)) => format!("{text}{before}(run [id]{}\n", &rest[8..]),
        None => format!("{text}{line}\n"),
    })
}

#[test]
fn keep_says_what_it_would_keep_and_writes_nothing() {
    let world = World::new();
    world.pi(PI, sessions::pi(PI));
    let agent = sessions::claude(CLAUDE).replace("\"isSidechain\":false", "\"isSidechain\":true");
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.write(&format!(".claude/projects/-p/{CLAUDE}/subagents/agent-abc.jsonl"), agent);
    let before = world.tree();
    assert_snapshot!(world.run(&["keep"]));
    assert_snapshot!(world.run(&["keep", "--all", "--once", "--dry-run"]));
    assert_eq!(world.tree(), before);
    assert_snapshot!(world.run(&["keep", "--once", "--agent", "claude"]));
    assert_snapshot!(world.run(&["keep", "--all", "--once"]));
    assert_snapshot!(world.run(&["keep", "--all", "--once"]));
    assert_snapshot!(world.run(&["history", CLAUDE]));
}

#[test]
fn a_session_that_was_never_kept_is_named() {
    let world = World::new();
    world.pi(PI, sessions::pi(PI));
    assert_snapshot!(world.run(&["history", PI]));
    assert_snapshot!(world.run(&["restore", PI, "--at", "1"]));
    world.run(&["keep", "--all", "--once"]);
    assert_snapshot!(world.run(&["restore", PI, "--at", "2"]));
    assert_snapshot!(world.run(&["restore", PI, "--at", "yesterday"]));
    assert_snapshot!(world.run(&["restore", PI, "--at", "2026-01-01"]));
}
