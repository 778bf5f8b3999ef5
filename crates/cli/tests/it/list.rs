//! `epitome list` on the command line.

use std::fs;

use crate::world::sessions::{self, CLAUDE, CODEX, OTHER, PI};
use crate::world::{self, World};
use epitome_formats::FORMATS;
use insta::assert_snapshot;

#[test]
fn sessions_are_listed_by_what_compacting_saves() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.claude(OTHER, sessions::claude(OTHER));
    world.pi(PI, sessions::pi(PI));
    world.claude("00000000-empty", "");
    world.claude("00000000-other", "no session at all\n");
    world.run(&["compact", OTHER, "--recipe", "transcript", "--count", "estimate"]);
    let cold = world.run(&["list"]);
    assert_snapshot!(cold, @r"
    $ epitome list
    agent   session     age     disk  messages  saves                    project  title
    claude  0f3c9a52     3d  22.5 KB     ~3.7k  ~1.4k  39.0%             p        Fix the failing test, please.
    claude  0f3c1111     3d   6.3 KB      ~136     ~0   0.0%  compacted  p        Fix the failing test, please.
    pi      01a1fb3a     3d   7.7 KB     ~2.4k     ~0   0.0%             p        List the functions.
    claude  00000000-e   3d      0 B         -      -      -             -        (the file is empty)
    claude  00000000-o   3d     18 B         -      -      -             -        (not a session of an agent that epitome knows)

    5 sessions, 36.5 KB on disk, ~6.2k tokens of messages, of which compacting saves ~1.4k (22.9%)
    ~ is an estimate: `epitome inspect` counts a session exactly, and says what the provider bills for it
    --- status 0
    ");
    assert_eq!(world.run(&["list"]), cold, "what was seen before is the same");
    assert_snapshot!(world.run(&["list", "--agent", "pi"]), @r"
    $ epitome list --agent pi
    agent  session   age    disk  messages  saves        project  title
    pi     01a1fb3a   3d  7.7 KB     ~2.4k     ~0  0.0%  p        List the functions.

    1 session, 7.7 KB on disk, ~2.4k tokens of messages, of which compacting saves ~0 (0.0%)
    ~ is an estimate: `epitome inspect` counts a session exactly, and says what the provider bills for it
    --- status 0
    ");
    assert_snapshot!(world.run(&["list", "--project", "/elsewhere"]), @r"
    $ epitome list --project /elsewhere
    no sessions
    --- stderr
    none was run in /elsewhere or below it; `epitome list` shows where sessions were run
    --- status 0
    ");
    world::check("list.schema.json", &world.json(&["list", "--json"]));
}

/// Sorted, limited, and filtered by a project in several spellings.
#[test]
fn sessions_are_sorted_limited_and_found_by_their_project() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.codex(CODEX, sessions::codex(CODEX));
    world.pi(PI, sessions::pi(PI));
    let agents = |args: &[&str]| -> Vec<String> {
        let listed = world.json(&[&["list", "--json"], args].concat());
        listed.iter().map(|it| it["agent"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(agents(&[]), ["claude", "codex", "pi"]);
    assert_eq!(agents(&["--sort", "size"]), ["claude", "codex", "pi"]);
    assert_eq!(agents(&["--sort", "context", "--limit", "2"]), ["claude", "codex"]);
    assert_eq!(agents(&["--since", "1h"]), [""; 0]);
    assert_eq!(agents(&["--since", "4d"]), ["claude", "codex", "pi"]);
    for project in ["p", "/p", "-p"] {
        assert_eq!(agents(&["--project", project]), ["claude", "codex", "pi"], "{project}");
    }
    assert_eq!(agents(&["--project", "other/p"]), [""; 0]);
    // An empty text and an option are no projects.
    for command in [&["list"][..], &["render"], &["restore", "--all"]] {
        for project in ["", "--json"] {
            let args = [command, &["--project", project]].concat();
            assert_eq!(world.status(&args), 2, "{args:?}");
        }
    }
    assert_snapshot!(world.run(&["list", "--limit", "1"]), @r"
    $ epitome list --limit 1
    agent   session   age     disk  messages  saves         project  title
    claude  0f3c9a52   3d  22.5 KB     ~3.7k  ~1.4k  39.0%  p        Fix the failing test, please.

    1 of 3 sessions, 22.5 KB on disk, ~3.7k tokens of messages, of which compacting saves ~1.4k (39.0%)
    ~ is an estimate: `epitome inspect` counts a session exactly, and says what the provider bills for it
    --- status 0
    ");
}

#[test]
fn a_machine_with_all_agents_shows_all_their_sessions() {
    let world = sessions::of_all_agents();
    let cold = world.run(&["list"]);
    assert_snapshot!(cold, @r"
    $ epitome list
    agent     session   age     disk  messages  saves                    project      title
    claude    0f3c9a52   3d  22.5 KB     ~3.7k  ~1.4k  39.0%             p            Fix the failing test, please.
    codex     01a1fb3b   3d  13.7 KB     ~2.4k     ~0   0.0%             p            How many functions are there?
    cursor    d17e5a00   3d   8.4 KB    ~18.4k      -      -  read-only  dev/project  Prices on Sundays
    copilot   5cffe862   3d  18.8 KB      ~173      -      -  read-only  dev/project  Prices on Sundays
    cursor    5ce2be00   3d   4.6 KB      ~503      -      -  read-only  dev/project  Why are Sundays cheap?
    cursor    e1a9c0de   3d    350 B       ~75      -      -  read-only  -            Why are Sundays cheap?
    cursor    f00d       3d    877 B      ~108      -      -  read-only  -            Why are Sundays cheap?
    gemini    123ae7f3   3d   1.5 KB       ~28     ~0   0.0%             dev/project  The tests fail since this morning. Find out why…
    amp       T-019b9d   3d   2.9 KB      ~160      -      -  read-only  dev/project  Why are prices wrong on Sundays?
    opencode  ses_e035   3d   1.7 KB       ~45     ~0   0.0%             dev/project  Work on the project
    pi        01a1fb3a   3d   7.7 KB     ~2.4k     ~0   0.0%             p            List the functions.
    qwen      77aa0000   3d   5.7 KB       ~79     ~0   0.0%             dev/project  Prices on Sundays
    cursor    70b1f300  99w   1.2 KB         -      -      -  read-only  -            Add a price for Mondays.

    13 sessions, 89.9 KB on disk, ~28.1k tokens of messages, of which compacting saves ~1.4k (5.1%)
    ~ is an estimate: `epitome inspect` counts a session exactly, and says what the provider bills for it
    --- status 0
    ");
    assert_eq!(world.run(&["list"]), cold, "what was seen before is the same");
    let listed = world.json(&["list", "--json"]);
    world::check("list.schema.json", &listed);
    for format in FORMATS {
        let found = listed.iter().filter(|it| it["agent"] == format.name).count();
        let alone = world.json(&["list", "--json", "--agent", format.name]);
        assert_eq!(alone.len(), found, "{}", format.name);
    }
}

#[test]
fn a_changed_session_is_read_again() {
    let world = World::new();
    let path = world.pi(PI, sessions::pi(PI));
    let before = world.json(&["list", "--json"]);
    fs::write(&path, sessions::pi(PI).replace("List the functions.", "Count.")).expect("a file");
    let after = world.json(&["list", "--json"]);
    assert_eq!(before[0]["title"], "List the functions.");
    assert_eq!(after[0]["title"], "Count.");
}

#[test]
fn a_machine_without_sessions_says_where_it_looked() {
    assert_snapshot!(World::new().run(&["list"]), @r"
    $ epitome list
    no sessions
    --- stderr
    looked in ~/.claude/projects, ~/.codex, ~/.pi/agent/sessions, ~/.local/share/opencode, ~/.gemini/tmp, ~/.cursor, ~/.local/share/epitome/live, ~/.qwen/projects, ~/.local/share/amp/threads, ~/.copilot/session-state, ~/.local/share/kilo, ~/.continue/sessions
    --- status 0
    ");
}

#[test]
fn folders_follow_the_agents_own_settings() {
    let world = World::new();
    world.write("c/projects/-p/one.jsonl", sessions::claude("one"));
    world.write("s/2026_two.jsonl", sessions::pi("two"));
    let out = world
        .command(&["list", "--json"])
        .env("CLAUDE_CONFIG_DIR", world.home.join("c"))
        .env("PI_CODING_AGENT_SESSION_DIR", world.home.join("s"))
        .output()
        .expect("the program runs");
    let text = String::from_utf8(out.stdout).expect("text");
    assert!(text.contains("\"id\":\"one\"") && text.contains("\"id\":\"two\""), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_no_text_is_listed_and_compacted() {
    use std::os::unix::ffi::OsStrExt;

    let world = World::new();
    let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
    let strange = path.with_file_name(std::ffi::OsStr::from_bytes(b"a\xff\x1b[31mb.jsonl"));
    fs::rename(&path, &strange).expect("a move");
    for args in [
        &["list"][..],
        &["list", "--json"],
        &["compact", "--all", "--count=estimate", "--json"],
        &["compact", "--all", "--count=estimate"],
        &["archive", "ls"],
        &["archive", "ls", "--json"],
        &["archive", "gc", "--json"],
    ] {
        let out = world.output(args);
        assert_eq!(
            out.status.code(),
            Some(0),
            "{args:?}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
        assert!(!out.stdout.contains(&0x1b), "{args:?}");
    }
}
