//! Files that are no sessions, and sessions that look damaged: a clear answer, and nothing is lost.

use std::fs;

use crate::world::World;
use crate::world::sessions::{self, CLAUDE, Claude};
use insta::assert_snapshot;
use serde_json::json;

#[test]
fn what_is_no_session_is_said_to_be_none() {
    let world = World::new();
    world.write("empty.jsonl", "");
    world.write("folder/file.txt", "");
    world.write("text.jsonl", "these are words\nand more words\n");
    world.write("other.jsonl", "{\"some\":\"json\"}\n");
    world.write("binary.jsonl", (0..=255_u8).cycle().take(100_000).collect::<Vec<u8>>());
    let names =
        ["empty.jsonl", "folder", "text.jsonl", "other.jsonl", "binary.jsonl", "missing.jsonl"];
    let before = world.tree();
    let mut terminals = Vec::new();
    for name in names {
        terminals.push(world.run(&["inspect", name]));
        for args in [&["compact", name][..], &["compact", name, "--dry-run"], &["restore", name]] {
            let terminal = world.run(args);
            assert!(terminal.ends_with("--- status 3\n"), "{terminal}");
        }
    }
    assert_eq!(world.tree(), before, "nothing was made, no lock and no folder");
    terminals.push(world.run(&["compact", "text.jsonl", "--agent", "pi"]));
    assert_snapshot!(terminals.join("\n"));
}

#[cfg(unix)]
#[test]
fn a_file_without_permission_is_said_to_be_one() {
    use std::os::unix::fs::PermissionsExt;

    let world = World::new();
    let path = world.write("secret.jsonl", sessions::claude(CLAUDE));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).expect("a mode");
    if fs::read(&path).is_ok() {
        // Root may read everything.
        return;
    }
    assert_snapshot!(world.run(&["compact", "secret.jsonl"]));
}

#[cfg(unix)]
#[test]
fn a_session_with_two_names_is_refused() {
    let world = World::new();
    let path = world.write("one.jsonl", sessions::claude(CLAUDE));
    fs::hard_link(&path, world.home.join("two.jsonl")).expect("a second name");
    assert_snapshot!(world.run(&["compact", "one.jsonl", "--count", "estimate"]), @r"
    $ epitome compact one.jsonl --count estimate
    --- stderr
    error: the session has more than one name on disk: [home]/one.jsonl
      hint: copy the file, so that it has one name, and try again
    --- status 4
    ");
}

/// Unusual sessions, each with a name.
fn odd_sessions() -> Vec<(&'static str, Vec<u8>)> {
    let whole = sessions::claude(CLAUDE);
    let text = |from: &str, to: &str| whole.replace(from, to).into_bytes();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let mut pasted = Claude::new(CLAUDE);
    pasted.user("You wrote [epitome k7f3a9c2: Read a.rs, 3 lines, 10 B] and [output: 3 lines].");
    let stub = "[epitome k7f3a9c2: Read a.rs, 3 lines, 10 B]\n".to_owned() + &sessions::log(50);
    pasted.call("t1", "Bash", json!({"command": "cat old"}), &stub, false);
    pasted.say("So it is.");
    pasted.user("[epitome k7f3a9c2: Read a.rs, 3 lines, 10 B]");
    let mut invalid = whole.clone().into_bytes();
    let at = whole.find("case_11").expect("it is there");
    invalid[at..at + 4].copy_from_slice(b"\xff\xfe\xc3\x28");
    vec![
        ("repeated ids", text("-000000000004\",\"version", "-000000000002\",\"version")),
        (
            "a parent loop",
            text("\"parentUuid\":null", "\"parentUuid\":\"00000000-0000-4000-8000-000000000005\""),
        ),
        ("invalid UTF-8", invalid),
        ("lone surrogates", text("case_12 ...", r"case_12 \ud83e \udd16 \\ud83e ...")),
        ("deep nesting", format!("{whole}{{\"type\":\"deep\",\"x\":{deep}}}\n").into_bytes()),
        ("deep arguments", text("\"command\":\"seq 400\"", &format!("\"command\":{deep}"))),
        ("a pasted stub", pasted.lines().into_bytes()),
        ("a torn last line", format!("{whole}{{\"type\":\"user\",\"mess").into_bytes()),
        ("blank lines", whole.replace('\n', "\n\n").into_bytes()),
        ("CRLF", whole.replace('\n', "\r\n").into_bytes()),
        ("a BOM", format!("\u{feff}{whole}").into_bytes()),
        ("garbage between", whole.replacen('\n', "\nthis is no JSON\0\x01\n", 3).into_bytes()),
    ]
}

#[test]
fn odd_sessions_are_read_and_lose_nothing() {
    let mut faults = Vec::new();
    for (name, bytes) in odd_sessions() {
        let world = World::new();
        let path = world.claude(CLAUDE, &bytes);
        let inspected = &world.json(&["inspect", CLAUDE, "--json", "--count", "estimate"])[0];
        let sound = inspected["breaches"].as_array().expect("a list").is_empty();
        let found = inspected["faults"].as_array().expect("a list").iter();
        let found: Vec<String> =
            found.map(|fault| format!("line {} {}", fault["line"], fault["what"])).collect();
        let invariants = if sound { "invariants hold" } else { "invariants do not hold" };
        let compacted = world.status(&["compact", CLAUDE, "--keep-turns=1", "--count=estimate"]);
        let small = fs::read(&path).expect("a session");
        let less = if small.len() < bytes.len() { "smaller" } else { "as before" };
        assert!([0, 4].contains(&compacted), "{name}: status {compacted}");
        if less == "smaller" {
            assert_eq!(world.status(&["restore", CLAUDE]), 0, "{name}");
        }
        assert!(fs::read(&path).expect("a session") == bytes, "{name}: it lost something");
        faults.push(format!("{name}: {invariants}, {less}, {compacted}: {}", found.join("; ")));
    }
    assert_snapshot!(faults.join("\n"), @r#"
    repeated ids: invariants hold, smaller, 0: line 5 "the id 00000000-0000-4000-8000-000000000002 repeats"
    a parent loop: invariants hold, smaller, 0: 
    invalid UTF-8: invariants hold, smaller, 0: line 5 "bytes that are not UTF-8"
    lone surrogates: invariants hold, smaller, 0: 
    deep nesting: invariants hold, smaller, 0: line 15 "a record of a kind that is not known: deep"
    deep arguments: invariants hold, smaller, 0: 
    a pasted stub: invariants hold, smaller, 0: 
    a torn last line: invariants hold, smaller, 0: line 15 "no record: the text ends inside a string at byte 20 (the last line is torn)"
    blank lines: invariants hold, smaller, 0: 
    CRLF: invariants hold, smaller, 0: 
    a BOM: invariants hold, smaller, 0: 
    garbage between: invariants hold, smaller, 0: line 2 "no record: expected a value at byte 0"; line 4 "no record: expected a value at byte 0"; line 6 "no record: expected a value at byte 0"
    "#);
}

#[test]
fn the_words_of_the_user_are_never_taken_for_stubs() {
    let world = World::new();
    let (_, bytes) = odd_sessions().remove(6);
    let path = world.claude(CLAUDE, &bytes);
    world.run(&["compact", CLAUDE, "--keep-turns=1", "--count=estimate"]);
    let small = fs::read_to_string(&path).expect("a session");
    assert!(small.contains("You wrote [epitome k7f3a9c2: Read a.rs, 3 lines, 10 B] and"));
    assert_eq!(world.status(&["show", "k7f3a9c2"]), 5, "it was never archived");
}
