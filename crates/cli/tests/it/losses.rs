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
    assert_snapshot!("of_the_agent", world.run(&["losses", CLAUDE]));
    assert_snapshot!("of_the_agent_all", world.run(&["losses", CLAUDE, "--all-pieces"]));
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
    assert_snapshot!("put_back", refused.replace(reference, "[ref]"));
    let none = world.run(&["show", "kffffffff", "--session", path.to_str().expect("text")]);
    assert_snapshot!("no_such_text", none);
    assert_eq!(world.tree(), before);
}

#[test]
fn what_epitome_took_out_is_put_back_by_the_command_that_it_prints() {
    let world = World::new();
    let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
    let small = ["--keep-turns=1", "--recipe", "transcript"];
    assert_snapshot!(
        "planned",
        world.run(&[&["compact", CLAUDE, "--losses"][..], &small].concat())
    );
    let planned = world.json(&[&["compact", CLAUDE, "--losses", "--json"][..], &small].concat());
    world::check("compact.schema.json", &planned);
    assert_eq!(world.status(&[&["compact", CLAUDE][..], &small].concat()), 0);
    assert_snapshot!("of_epitome", world.run(&["losses", CLAUDE]));
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
    assert_eq!(world.status(&["restore", CLAUDE]), 0);
    assert_snapshot!("of_none", world.run(&["losses", CLAUDE]));
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
    assert_snapshot!("of_every_agent", found.join("\n"));
}
