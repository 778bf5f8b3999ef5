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
    assert_snapshot!(cold);
    assert_eq!(world.run(&["list"]), cold, "what was seen before is the same");
    assert_snapshot!("of_pi", world.run(&["list", "--agent", "pi"]));
    assert_snapshot!("elsewhere", world.run(&["list", "--project", "/elsewhere"]));
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
    assert_snapshot!("limited", world.run(&["list", "--limit", "1"]));
}

#[test]
fn a_machine_with_all_agents_shows_all_their_sessions() {
    let world = World::new();
    world.pi(PI, sessions::pi(PI));
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.codex(CODEX, sessions::codex(CODEX));
    world.opencode();
    let bytes = world::beginning(&fixtures::get("gemini", "pricing").bytes(), 4);
    let gemini = [".gemini", "tmp", "project", "chats", "session-2026-11-20T23-12-123ae7f3.jsonl"];
    world.write(&gemini.join("/"), bytes);
    world.cursor(&["composer", "sub-agent", "composer-inline"]);
    world.cursor_chat("5ce2be00-0000-4000-8000-000000000001");
    let transcripts = ".cursor/projects/home-dev-project/agent-transcripts";
    for (name, of) in [("e1a9c0de.txt", "transcript-text"), ("f00d/f00d.jsonl", "transcript")] {
        world.write(&format!("{transcripts}/{name}"), fixtures::case("cursor", of).bytes());
    }
    let copilot = fixtures::case("copilot", "sundays").bytes();
    world.write(".copilot/session-state/5cffe862-0001/events.jsonl", copilot);
    let qwen = fixtures::case("qwen", "compressed").bytes();
    world.write(".qwen/projects/-home-dev-project/chats/77aa0000.jsonl", qwen);
    let amp = fixtures::case("amp", "thread").bytes();
    world.write(".local/share/amp/threads/T-019b9d03.json", amp);
    let cold = world.run(&["list"]);
    assert_snapshot!("all_agents", cold);
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
    assert_snapshot!(World::new().run(&["list"]));
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
