//! A full disk: nothing changes, and the error is reported.

#![cfg(target_os = "linux")]

use std::fs;
use std::process::{Command, Output, Stdio};

use crate::world::World;
use crate::world::sessions::{self, CLAUDE, Claude, PI};
use crate::world::trouble::Seeded;
use serde_json::json;

/// Runs a shell script with a disk of 1 MiB at `$DISK`, mounted for it alone. None if this machine
/// does not permit that.
fn with_small_disk(world: &World, disk: &str, script: &str) -> Option<Output> {
    let disk = world.home.join(disk);
    fs::create_dir_all(&disk).expect("a folder");
    let run = |script: &str| {
        let mount = "mount -t tmpfs -o size=1m none \"$DISK\" || exit 99";
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &format!("{mount}\n{script}")]);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", &world.home).env("DISK", &disk);
        command.env("EPITOME", env!("CARGO_BIN_EXE_epitome")).env("SESSION", CLAUDE).env("PI", PI);
        command.current_dir(&world.home).stdin(Stdio::null()).output()
    };
    if !run("true").is_ok_and(|out| out.status.success()) {
        let why = "no disk can be mounted here: that takes Linux, `unshare` and root";
        fixtures::skipped("tests of a full disk in crates/cli/tests/it/robust_disk.rs", why);
        return None;
    }
    Some(run(script).expect("a shell"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A session whose removed bytes do not fit on the disk.
fn long_results() -> String {
    let mut seeded = Seeded::new(3);
    let mut session = Claude::new(CLAUDE);
    session.user("Roll the dice.");
    for n in 0..8 {
        let lines: Vec<String> = (0..6_000).map(|_| seeded.digits(63)).collect();
        let id = format!("t{n}");
        session.call(&id, "Bash", json!({"command": "dice"}), &lines.join("\n"), false);
    }
    session.say("Done.");
    session.user("Thanks.");
    session.lines()
}

/// A session that stays long: the old and the new file do not fit on the disk together.
fn long_words() -> String {
    let mut session = Claude::new(CLAUDE);
    session.user("Look at this.");
    session.user(&Seeded::new(5).digits(600_000));
    session.call("t1", "Bash", json!({"command": "x"}), &"a line of it\n".repeat(500), false);
    session.say("Done.");
    session.user("Thanks.");
    session.lines()
}

#[test]
fn an_archive_on_a_full_disk_changes_nothing() {
    let world = World::new();
    let original = long_results();
    let path = world.claude(CLAUDE, &original);
    let before = fs::metadata(&path).and_then(|it| it.modified()).expect("a time");
    let script = "
        export EPITOME_HOME=\"$DISK/epitome\"
        $EPITOME compact $SESSION --keep-turns=1 --count=estimate; status=$?
        echo \"--- packs\"; find \"$DISK\" -name '*.pack'
        echo \"--- left\"; find \"$DISK\" -name '*.tmp'
        $EPITOME archive verify; echo \"verify $?\"
        exit $status";
    let Some(out) = with_small_disk(&world, "disk", script) else { return };
    let (stdout, error) = (text(&out.stdout), text(&out.stderr));
    assert_eq!(out.status.code(), Some(5), "{stdout}{error}");
    assert!(error.contains("No space left on device"), "{error}");
    assert!(error.contains("hint: free some space on that disk; nothing was changed"), "{error}");
    assert!(stdout.contains("--- packs\n--- left\n"), "{stdout}");
    assert!(stdout.contains("verify 0"), "{stdout}");
    assert!(fs::read_to_string(&path).expect("a session") == original, "the session changed");
    assert_eq!(fs::metadata(&path).and_then(|it| it.modified()).expect("a time"), before);
}

#[test]
fn a_session_on_a_full_disk_stays_as_it_is() {
    let world = World::new();
    world.write("session.jsonl", long_words());
    let script = "
        cp session.jsonl \"$DISK/\" || exit 98
        $EPITOME compact \"$DISK/session.jsonl\" --keep-turns=1 --count=estimate; status=$?
        cmp session.jsonl \"$DISK/session.jsonl\" || exit 97
        echo \"--- beside\"; ls -A \"$DISK\"
        $EPITOME archive verify || exit 96
        exit $status";
    let Some(out) = with_small_disk(&world, "disk", script) else { return };
    let (stdout, error) = (text(&out.stdout), text(&out.stderr));
    assert_eq!(out.status.code(), Some(5), "{stdout}{error}");
    assert!(error.contains("No space left on device"), "{error}");
    assert!(error.contains("hint: free some space on that disk; nothing was changed"), "{error}");
    assert!(stdout.contains("--- beside\nsession.jsonl\n"), "{stdout}");
}

#[test]
fn a_restore_on_a_full_disk_leaves_the_small_session() {
    let world = World::new();
    world.write("session.jsonl", long_results());
    let script = "
        cp session.jsonl roomy.jsonl
        $EPITOME compact roomy.jsonl --keep-turns=1 --count=estimate || exit 98
        cp roomy.jsonl \"$DISK/session.jsonl\" || exit 97
        $EPITOME restore \"$DISK/session.jsonl\"; status=$?
        cmp roomy.jsonl \"$DISK/session.jsonl\" || exit 96
        $EPITOME restore \"$DISK/session.jsonl\" --out \"$DISK/whole.jsonl\"; copy=$?
        echo \"--- copy $copy\"; ls -A \"$DISK\"
        exit $status";
    let Some(out) = with_small_disk(&world, "disk", script) else { return };
    let (stdout, error) = (text(&out.stdout), text(&out.stderr));
    assert_eq!(out.status.code(), Some(5), "{stdout}{error}");
    assert!(error.contains("hint: free some space on that disk; nothing was changed"), "{error}");
    assert!(stdout.contains("--- copy 5\nsession.jsonl\n"), "{stdout}");
}

/// Another session is in the same part of the vault, which is written again without the forgotten
/// one: there is no room for that.
#[test]
fn a_session_is_not_forgotten_in_part_on_a_full_disk() {
    let world = World::new();
    world.claude(CLAUDE, long_words());
    world.pi(PI, sessions::pi(PI));
    let script = "
        export EPITOME_HOME=\"$DISK/epitome\"
        $EPITOME keep --all --once || exit 98
        $EPITOME compact $PI --keep-turns=1 --count=estimate --recipe transcript || exit 97
        dd if=/dev/zero of=\"$DISK/filling\" bs=1k 2> /dev/null
        truncate -s -16k \"$DISK/filling\"
        find \"$DISK\" -type f -exec sha256sum {} + | sort > before
        $EPITOME forget $PI --yes; status=$?
        find \"$DISK\" -type f -exec sha256sum {} + | sort > after
        diff before after || exit 96
        rm \"$DISK/filling\"
        $EPITOME forget $PI --yes || exit 95
        $EPITOME archive verify || exit 94
        exit $status";
    let Some(out) = with_small_disk(&world, "disk", script) else { return };
    let (stdout, error) = (text(&out.stdout), text(&out.stderr));
    assert_eq!(out.status.code(), Some(5), "{stdout}{error}");
    assert!(error.contains("hint: free some space on that disk; nothing was changed"), "{error}");
}
