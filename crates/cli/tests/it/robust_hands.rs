//! A session that was edited by hand after a compaction: unedited records are restored, the others
//! are counted, and the edits are kept.

use std::collections::HashMap;
use std::fs;

use crate::world::World;
use crate::world::sessions::{self, CLAUDE};
use crate::world::trouble::{append, compacted, rewrite, same, small};
use serde_json::{Value, json};

/// An edit of the lines of a compacted session.
type Hand = fn(&mut Vec<String>);

/// Edits that people and scripts make. Lines 2, 4, 6, 9 hold removed results, line 5 removed
/// arguments.
const HANDS: &[(&str, Hand)] = &[
    ("a record deleted", |lines| drop(lines.remove(2))),
    ("a record that was not compacted deleted", |lines| drop(lines.remove(0))),
    ("a record edited", |lines| lines[4] = lines[4].replace("lines]", "lines, really]")),
    ("a record edited far from its stub", |lines| lines[4] = lines[4].replace("/p", "/q")),
    ("two swapped", |lines| lines.swap(2, 4)),
    ("two far apart swapped", |lines| lines.swap(2, 9)),
    ("records in front", |lines| {
        lines.insert(0, json!({"type": "summary", "summary": "mine"}).to_string());
        lines.insert(0, String::new());
    }),
    ("records between", |lines| lines.insert(5, "{\"type\":\"mine\"}".to_owned())),
    ("records between and behind", |lines| {
        lines.insert(3, "no JSON".to_owned());
        lines.push("{\"type\":\"mine\"}".to_owned());
    }),
    ("a record doubled", |lines| lines.insert(4, lines[4].clone())),
    ("all backwards", |lines| lines.reverse()),
    ("all but the end deleted", |lines| drop(lines.drain(..9))),
    ("all but the beginning deleted", |lines| lines.truncate(4)),
    ("sorted", |lines| lines.sort()),
    ("everything twice", |lines| {
        *lines = lines.iter().flat_map(|line| [line.clone(), line.clone()]).collect();
    }),
    ("all records edited", |lines| lines.iter_mut().for_each(|it| it.push(' '))),
    ("CRLF", |lines| lines.iter_mut().for_each(|it| it.push('\r'))),
    ("the paths moved", |lines| lines.iter_mut().for_each(|it| *it = it.replace("/p", "/q"))),
];

fn text(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The expected result of a restore, and how many records it undoes and misses. Of a record that
/// occurs twice, it is uncertain which one the compaction left: both are unchanged.
fn expected(original: &str, small: &str, by_hand: &[String]) -> (String, u64, u64) {
    let pairs = small.lines().zip(original.lines());
    let mut edited: HashMap<&str, &str> = pairs.filter(|(small, whole)| small != whole).collect();
    let all = edited.len();
    edited.retain(|small, _| by_hand.iter().filter(|line| line == small).count() == 1);
    let given: Vec<String> = by_hand
        .iter()
        .map(|line| (*edited.get(line.as_str()).unwrap_or(&line.as_str())).to_owned())
        .collect();
    (text(&given), edited.len() as u64, (all - edited.len()) as u64)
}

/// The report without what a dry run cannot know.
fn report(world: &World, args: &[&str]) -> Value {
    let mut report = world.json(args).remove(0);
    let members = report.as_object_mut().expect("an object");
    members.remove("dry_run");
    members.remove("generation");
    report
}

#[test]
fn what_still_stands_is_given_back() {
    let original = sessions::claude(CLAUDE);
    for (name, hand) in HANDS {
        let world = World::new();
        let path = world.claude(CLAUDE, &original);
        let small = String::from_utf8(compacted(&world, &path)).expect("text");
        let mut lines: Vec<String> = small.lines().map(str::to_owned).collect();
        hand(&mut lines);
        let by_hand = text(&lines);
        rewrite(&path, &by_hand);
        let (whole, restored, missing) = expected(&original, &small, &lines);

        let before = world.tree();
        let dry = report(&world, &["restore", CLAUDE, "--dry-run", "--json"]);
        assert_eq!(world.tree(), before, "{name}: a dry run wrote something");
        assert_eq!(dry["restored"], restored, "{name}");
        assert_eq!(dry["missing"], missing, "{name}");
        assert_eq!(dry["outcome"], "by-record", "{name}");
        assert_eq!(dry["disk_bytes"]["after"], whole.len(), "{name}");
        assert_eq!(dry["restored_proof"], Value::Null, "{name}: it cannot be proved");
        assert_eq!(report(&world, &["restore", CLAUDE, "--json"]), dry, "{name}");
        same(&fs::read(&path).expect("a session"), whole.as_bytes(), name);
        assert_eq!(dry["blake3"], blake3::hash(whole.as_bytes()).to_string(), "{name}");
    }
}

#[test]
fn a_second_restore_says_what_it_does() {
    let original = sessions::claude(CLAUDE);
    for (name, hand) in HANDS {
        let world = World::new();
        let path = world.claude(CLAUDE, &original);
        let small = String::from_utf8(compacted(&world, &path)).expect("text");
        let mut lines: Vec<String> = small.lines().map(str::to_owned).collect();
        hand(&mut lines);
        let by_hand = text(&lines);
        rewrite(&path, &by_hand);
        let (whole, restored, _) = expected(&original, &small, &lines);
        world.run(&["restore", CLAUDE]);
        // Everything possible is restored the first time: a second and a third restore change
        // nothing.
        for _ in 0..2 {
            let before = world.tree();
            let terminal = world.run(&["restore", CLAUDE]);
            assert!(terminal.starts_with("$ epitome restore"), "{name}: {terminal}");
            assert!(terminal.contains("\nnothing to do  "), "{name}: {terminal}");
            assert!(terminal.ends_with("--- status 0\n"), "{name}: {terminal}");
            assert_eq!(world.tree(), before, "{name}: {terminal}");
            same(&fs::read(&path).expect("a session"), whole.as_bytes(), name);
        }
        if restored == 0 {
            continue;
        }
        // The restore is undone by number, and repeated.
        let terminal = world.run(&["restore", CLAUDE, "--generation", "1"]);
        assert!(terminal.contains("exact, to the byte: 1 compaction undone"), "{name}: {terminal}");
        same(&fs::read(&path).expect("a session"), by_hand.as_bytes(), name);
        assert_eq!(world.status(&["restore", CLAUDE]), 0, "{name}");
        same(&fs::read(&path).expect("a session"), whole.as_bytes(), name);
    }
}

/// Another turn of the session, with a result that will be removed.
fn a_turn() -> String {
    let log = sessions::log(300);
    let words = |words: &str| json!({"role": "user", "content": words});
    let call = json!({"id": "m9", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{"type": "tool_use", "id": "t9", "name": "Bash", "input": {}}]});
    let result = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t9", "content": log}]});
    let last_message = json!({"id": "m10", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "So it is."}]});
    let messages = [
        ("user", words("On.")),
        ("assistant", call),
        ("user", result),
        ("assistant", last_message),
    ];
    let mut turn = String::new();
    let mut parent = json!("00000000-0000-4000-8000-000000000012");
    for (n, (kind, message)) in messages.into_iter().chain([("user", words("Ok."))]).enumerate() {
        let uuid = json!(format!("turn-{n}"));
        let record = json!({"type": kind, "uuid": uuid, "parentUuid": parent, "cwd": "/p",
            "sessionId": CLAUDE, "isSidechain": false, "message": message,
            "timestamp": format!("2026-11-18T11:00:0{n}.000Z")});
        turn.push_str(&format!("{record}\n"));
        parent = uuid;
    }
    turn
}

#[test]
fn compacted_by_hand_and_compacted_again_it_comes_back() {
    let original = sessions::claude(CLAUDE);
    let mut shorter = 0;
    for (name, hand) in HANDS {
        let world = World::new();
        let path = world.claude(CLAUDE, &original);
        let first = String::from_utf8(compacted(&world, &path)).expect("text");
        let mut lines: Vec<String> = first.lines().map(str::to_owned).collect();
        hand(&mut lines);
        rewrite(&path, text(&lines));
        let (whole, ..) = expected(&original, &first, &lines);
        // A turn is appended and compacted; then everything is undone.
        let turn = a_turn();
        append(&path, turn.as_bytes());
        let whole = whole + &turn;
        let long = fs::metadata(&path).expect("a session").len();
        let status = world.status(&small(CLAUDE, &[]));
        assert!([0, 4].contains(&status), "{name}: status {status}");
        shorter += u64::from(fs::metadata(&path).expect("a session").len() < long);
        // The first restore leads back to the edited state, if that is a known state.
        for _ in 0..2 {
            let terminal = world.run(&["restore", CLAUDE]);
            assert!(terminal.ends_with("--- status 0\n"), "{name}: {terminal}");
            if fs::read_to_string(&path).expect("a session") == whole {
                break;
            }
        }
        same(&fs::read(&path).expect("a session"), whole.as_bytes(), name);
    }
    assert!(shorter > 5, "{shorter} were compacted again");
}
