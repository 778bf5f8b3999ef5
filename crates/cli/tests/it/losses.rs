//! `epitome losses` on the command line.

use std::path::Path;
use std::process::Command;

use crate::world::sessions::{self, CLAUDE, Claude};
use crate::world::{self, World};
use insta::assert_snapshot;
use serde_json::{Value, json};

/// A session that Claude Code compacted itself, and what it needed afterwards.
fn compacted() -> Claude {
    let mut session = Claude::new(CLAUDE);
    session.user("Read the rules, then fix \u{1b}[31mnumber_7\u{1b}[0m.");
    session.call("t1", "Read", json!({"file_path": "/p/CLAUDE.md"}), "Never push.", false);
    session.call("t2", "Read", json!({"file_path": "/p/src/a.rs"}), &sessions::code(40), false);
    session.call("t3", "Bash", json!({"command": "cargo test"}), &sessions::log(9), true);
    session.call("t4", "Bash", json!({"command": "seq 9"}), "1 2 3 4 5 6 7 8 9", false);
    session.say("It is in number_7.");
    session.compaction("The user wants a fix. Rules were read.");
    session.call("t5", "Read", json!({"file_path": "/p/src/a.rs"}), &sessions::code(40), false);
    session.call("t6", "Bash", json!({"command": "seq 9"}), "another", false);
    session.say("See case_7.");
    session
}

#[test]
fn what_the_agent_took_out_and_needed_again_is_listed() {
    let world = World::new();
    let path = world.claude(CLAUDE, compacted().lines());
    let before = world.tree();
    assert_snapshot!(world.run(&["losses", CLAUDE]), @r"
    $ epitome losses 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
    ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl

    Compaction 1 of 1 (claude's own, 2026-11-18 10:00, line 12): 650 → 10 tokens
      Left the context: 1 rule (3), 1 error (83), 1 of your messages (19), 1 file read (480), 1 command (17), 1 text of the model (7).
      Of 55 facts (paths, names, numbers) 55 are gone; the agent used 2 of them later.
      Rules and plans that left:
        k3e3d857  /p/CLAUDE.md  3 tokens
      Read or run again: 491 tokens, $0.0016:
        kfbfd864  src/a.rs  480 tokens · again on line 13 (491, $0.0016, the same text)
      1 other call was made again because of changes: not counted.
      Used later though gone: p/src/a.rs, case_7
      Errors that were not resolved:
        k141b650  cargo test: error: case_7 failed: expected 3, got 4  83 tokens · 1 fact used later
      Your messages:
        k1ef952c  Read the rules, then fix [31mnumber_7 [0m.  19 tokens
      Texts of the model:
        k69543f1  It is in number_7.  7 tokens · @5
      None can be put back alone (the agent took them out itself). Read one: epitome show REF --session 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
    --- status 0
    ");
    assert_snapshot!(world.run(&["losses", CLAUDE, "--all-pieces"]), @r"
    $ epitome losses 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4 --all-pieces
    ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl

    Compaction 1 of 1 (claude's own, 2026-11-18 10:00, line 12): 650 → 10 tokens
      Left the context: 1 rule (3), 1 error (83), 1 of your messages (19), 1 file read (480), 1 command (17), 1 text of the model (7).
      Of 55 facts (paths, names, numbers) 55 are gone; the agent used 2 of them later.
      Rules and plans that left:
        k3e3d857  /p/CLAUDE.md  3 tokens
                  epitome show k3e3d857 --session 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
      Read or run again: 491 tokens, $0.0016:
        kfbfd864  src/a.rs  480 tokens · again on line 13 (491, $0.0016, the same text)
                  epitome show kfbfd864 --session 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
      1 other call was made again because of changes: not counted.
      Used later though gone: p/src/a.rs, case_7
      Errors that were not resolved:
        k141b650  cargo test: error: case_7 failed: expected 3, got 4  83 tokens · 1 fact used later
                  epitome show k141b650 --session 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
      Your messages:
        k1ef952c  Read the rules, then fix [31mnumber_7 [0m.  19 tokens
                  epitome show k1ef952c --session 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
      Texts of the model:
        k69543f1  It is in number_7.  7 tokens · @5
                  epitome show k69543f1 --session 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
      The rest:
        k0031146  seq 9  17 tokens · again on line 15 (10, $0.0001, changed)
                  epitome show k0031146 --session 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
      None can be put back alone (the agent took them out itself). Read one: epitome show REF --session 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
    --- status 0
    ");
    let report = world.json(&["losses", CLAUDE, "--json"]);
    world::check("losses.schema.json", &report);
    let pieces = report[0]["compactions"][0]["pieces"].as_array().expect("a list").clone();
    let file = pieces.iter().find(|it| it["name"] == "src/a.rs").expect("it left");
    let show = file["show"].as_str().expect("a command").to_owned();
    let shown = world.output(&show.split(' ').skip(1).collect::<Vec<_>>());
    assert_eq!(String::from_utf8(shown.stdout).expect("text"), sessions::code(40));
    // It cannot be put back: the message says why, and how to read it.
    let reference = file["references"][0].as_str().expect("a name");
    assert_eq!(file["restore"], Value::Null);
    let refused = world.run(&["restore", CLAUDE, "--block", reference]);
    assert_snapshot!(refused.replace(reference, "[ref]"), @r"
    $ epitome restore 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4 --block [ref]
    --- stderr
    error: the archive holds nothing of this session: [home]/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
      hint: `epitome archive ls` shows the sessions that were compacted on this machine; EPITOME_HOME says where the archive is, if it is not the usual place
      hint: [ref] is still in the file: it was removed from the context by a compaction that archived nothing, and cannot be put back alone
      hint: `epitome show [ref] --session ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl` prints it
    --- status 5
    ");
    let none = world.run(&["show", "kffffffff", "--session", path.to_str().expect("text")]);
    assert_snapshot!(none, @r"
    $ epitome show kffffffff --session [home]/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    --- stderr
    error: no text of this session is called kffffffff
      hint: `epitome losses SESSION` lists what left its context, with names
    --- status 5
    ");
    assert_eq!(world.tree(), before);
}

#[test]
fn what_epitome_took_out_is_put_back_by_the_command_that_it_prints() {
    let world = World::new();
    let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
    let small = ["--keep-turns=1", "--recipe", "transcript"];
    assert_snapshot!(world.run(&[&["compact", CLAUDE, "--losses"][..], &small].concat()), @r"
    $ epitome compact 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4 --losses --keep-turns=1 --recipe transcript
    would compact  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    claude · recipe transcript · nothing was written

               before       after
    messages     3.7k  →      133  -96.4%  tokens (o200k)
    disk      22.5 KB  →   6.3 KB  -72.0%
    net       22.5 KB  →  (with the archive)

    edits    3 tool outputs shortened, 2 long arguments shortened, 4 duplicates removed
    saves    1.4k of Read, 1.1k of Bash, 1.0k of Edit
             2.5k of src/a.rs
    loses    1 unresolved error, 1 file read and changed
    price    next request: 12.2k tokens instead of 16.5k, none from the cache, which has expired
             −$0.02 once, −$0.0013 for each later request: pays at once (claude-sonnet-4-5, tokens assumed)
    kept     14 tokens untouched: the last turns (2 entries)

    What would leave the context
      It would take: 1 error (650), 1 file read (1.4k), 1 command (440), 1 change (1.0k).
      Of 275 facts (paths, names, numbers) 270 would be gone.
      Read and changed in this session: src/a.rs
      Errors that were not resolved:
        k10501aa  cargo test: error: case_7 failed: expected 3, got 4  650 tokens
      The largest of the rest:
        k951f5a2  src/a.rs  1.4k tokens
        k25f68b3  src/a.rs  1.0k tokens of it
        k23508c7  seq 400  440 tokens
      Put one back afterwards: epitome restore 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4 --block REF
    --- status 0
    ");
    let planned = world.json(&[&["compact", CLAUDE, "--losses", "--json"][..], &small].concat());
    world::check("compact.schema.json", &planned);
    assert_eq!(world.status(&[&["compact", CLAUDE][..], &small].concat()), 0);
    assert_snapshot!(world.run(&["losses", CLAUDE]), @r"
    $ epitome losses 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
    ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl

    Compaction 1 of 1 (epitome, recipe transcript, 2026-11-21 12:00): 3.7k → 133 tokens
      Left the context: 1 error (650), 1 file read (1.4k), 1 command (440), 1 change (1.0k).
      Of 275 facts (paths, names, numbers) 270 are gone; the agent used none of them later.
      Errors that were not resolved:
        k10501aa  cargo test: error: case_7 failed: expected 3, got 4  650 tokens
      Put one back: epitome restore 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4 --block REF
    --- status 0
    ");
    let report = world.json(&["losses", CLAUDE, "--json"]);
    world::check("losses.schema.json", &report);
    let made = &report[0]["compactions"][0];
    assert_eq!(made["pieces"], planned[0]["losses"]["pieces"]);
    let file = made["pieces"].as_array().expect("a list").iter().find(|it| it["kind"] == "read");
    let restore = file.expect("it left")["restore"].as_str().expect("a command").to_owned();
    let stubs =
        || std::fs::read_to_string(&path).expect("a session").matches("fn number_99").count();
    assert_eq!(stubs(), 0);
    assert_eq!(world.status(&restore.split(' ').skip(1).collect::<Vec<_>>()), 0);
    assert_eq!(stubs(), 1);
    // The compaction is still in effect, and the piece is back.
    let mut now = world.json(&["losses", CLAUDE, "--json"]);
    world::check("losses.schema.json", &now);
    let pieces = now[0]["compactions"][0]["pieces"].as_array_mut().expect("a list");
    let back: Vec<Option<Value>> =
        pieces.iter_mut().map(|it| it.as_object_mut().expect("one").remove("back")).collect();
    let read = pieces.iter().position(|it| it["kind"] == "read").expect("it left");
    assert_eq!(back.iter().position(Option::is_some), Some(read));
    assert_eq!(back.iter().flatten().count(), 1);
    assert_eq!(now[0]["compactions"][0], *made);
    let all = world.run(&["losses", CLAUDE, "--all-pieces"]);
    assert!(all.contains("src/a.rs  1.4k tokens · in the session again\n"), "{all}");
    assert_eq!(all.matches("in the session again").count(), 1, "{all}");
    // Once all of them are back, there is no command that puts one back.
    // One piece has two references: the second is named once the first is back.
    for _ in 0..2 {
        let now = world.json(&["losses", CLAUDE, "--json"]);
        for piece in now[0]["compactions"][0]["pieces"].as_array().expect("a list") {
            let restore = piece["restore"].as_str().expect("a command").split(' ').skip(1);
            assert!([0, 4].contains(&world.status(&restore.collect::<Vec<_>>())), "{piece}");
        }
    }
    let all = world.run(&["losses", CLAUDE, "--all-pieces"]);
    assert!(!all.contains("Put one back") && !all.contains("None can be put back"), "{all}");
    assert_eq!(world.status(&["restore", CLAUDE]), 0);
    assert_snapshot!(world.run(&["losses", CLAUDE]), @r"
    $ epitome losses 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
    ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    no compaction is known of this session
    --- status 0
    ");
}

/// The user's own rule files count as rules in every loss report.
#[test]
fn rule_files_of_the_settings_are_rules() {
    let world = World::new();
    let mut session = Claude::new(CLAUDE);
    session.user("Follow the style.");
    session.call(
        "t1",
        "Read",
        json!({"file_path": "/p/STYLE.md"}),
        "Use tabs, never blanks.",
        false,
    );
    session.say("I know the style now.");
    session.compaction("The user wants a fix.");
    session.say("Done.");
    world.claude(CLAUDE, session.lines());
    let kind = |settings: &[&str]| {
        let report = world.json(&[&["losses", CLAUDE, "--json"][..], settings].concat());
        let pieces = report[0]["compactions"][0]["pieces"].as_array().expect("a list").clone();
        let is_style = |it: &&Value| it["name"].as_str().is_some_and(|it| it.ends_with("STYLE.md"));
        let style = pieces.iter().find(is_style).unwrap_or_else(|| panic!("{pieces:?}"));
        style["kind"].as_str().expect("a kind").to_owned()
    };
    assert_eq!(kind(&[]), "read");
    assert_eq!(kind(&["--set", "compaction.keep.pins=STYLE.md"]), "rule");
}

/// A copy has the id of its original, so the commands name its path.
#[test]
fn the_commands_for_a_copy_lead_to_the_copy() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let copy = world.write("a copy's/one.jsonl", sessions::claude(CLAUDE));
    let copy = copy.to_str().expect("text");
    assert_eq!(world.status(&["compact", copy, "--keep-turns=1", "--recipe", "transcript"]), 0);
    let report = world.json(&["losses", copy, "--json"]);
    let pieces = report[0]["compactions"][0]["pieces"].as_array().expect("a list");
    let file = pieces.iter().find(|it| it["kind"] == "read").expect("it left");
    let restore = file["restore"].as_str().expect("a command");
    let program = Path::new(env!("CARGO_BIN_EXE_epitome")).parent().expect("a folder");
    let mut shell = Command::new("sh");
    shell.args(["-c", restore]).env_clear().env("HOME", &world.home);
    shell.env("PATH", format!("{}:/usr/bin:/bin", program.display()));
    let text = || std::fs::read_to_string(copy).expect("a session");
    assert!(!text().contains("fn number_99"));
    assert!(shell.status().expect("a shell").success(), "{restore}");
    assert!(text().contains("fn number_99"), "{restore}");
}

#[test]
fn compactions_of_every_agent_are_found() {
    let world = World::new();
    let mut found = Vec::new();
    for fixture in fixtures::all().iter().filter(|it| it.name == "own-compaction") {
        let path = world.write(&format!("{}.jsonl", fixture.agent), fixture.bytes());
        let report = world.json(&["losses", path.to_str().expect("text"), "--json"]);
        world::check("losses.schema.json", &report);
        for made in report[0]["compactions"].as_array().expect("a list") {
            let tokens = &made["context_tokens"];
            let left = made["left"].as_object().expect("kinds");
            let pieces: u64 = left.values().filter_map(|it| it["pieces"].as_u64()).sum();
            found.push(format!("{} {} {pieces}", fixture.agent, made["by"]));
            assert!(tokens["before"].as_u64() > tokens["after"].as_u64(), "{made:#}");
        }
    }
    found.sort();
    assert_snapshot!(found.join("\n"), @r#"
    claude "agent" 13
    codex "agent" 6
    gemini "agent" 14
    pi "agent" 7
    "#);
}
