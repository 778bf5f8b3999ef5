//! Rollouts of Codex that are archived or compressed.

use std::fs;
use std::path::PathBuf;

use crate::world::World;
use crate::world::sessions::{self, CODEX};

const CHILD: &str = "01a1fb3b-4dde-7821-9f6e-f84858e30c7c";
const NAME: &str = "rollout-2026-11-20T23-12-03-";

fn compact<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let plain = ["--keep-turns=1", "--count=estimate", "--recipe", "transcript", "--json"];
    ["compact"].iter().chain(args).chain(&plain).copied().collect()
}

/// A rollout that was compressed with another level than ours.
fn compressed(world: &World, folder: &str) -> (PathBuf, Vec<u8>) {
    let bytes = zstd::encode_all(sessions::codex(CODEX).as_bytes(), 19).expect("compressed");
    (world.write(&format!(".codex/{folder}/{NAME}{CODEX}.jsonl.zst"), &bytes), bytes)
}

#[test]
fn an_archived_rollout_is_listed_and_compacted() {
    let world = World::new();
    let session = sessions::codex(CODEX);
    let path = world.write(&format!(".codex/archived_sessions/{NAME}{CODEX}.jsonl"), &session);
    assert_eq!(world.json(&["list", "--json"])[0]["id"], CODEX);
    for way in [&[][..], &["--rewrite"]] {
        let done = world.json(&compact(&[&[CODEX], way].concat()));
        assert_eq!(done[0]["outcome"], "compacted");
        assert_ne!(fs::read_to_string(&path).expect("a session"), session);
        assert_eq!(world.status(&["restore", CODEX]), 0);
        assert_eq!(fs::read_to_string(&path).expect("a session"), session);
    }
}

#[test]
fn a_compressed_rollout_is_compacted_and_comes_back_to_the_byte() {
    for folder in ["sessions/2026/11/20", "archived_sessions"] {
        let world = World::new();
        let (path, before) = compressed(&world, folder);
        let listed = world.json(&["list", "--json"]);
        assert_eq!((listed.len(), &listed[0]["id"]), (1, &CODEX.into()));
        assert_eq!(listed[0]["title"], "How many functions are there?");
        assert_eq!(world.status(&["inspect", path.to_str().expect("text")]), 0);
        let export = world.output(&["export", CODEX, "--to", "transcript"]);
        assert!(String::from_utf8_lossy(&export.stdout).contains("There are 200."));

        let done = world.json(&compact(&[CODEX]));
        assert_eq!((&done[0]["outcome"], &done[0]["way"]), (&"compacted".into(), &"native".into()));
        let after = fs::read(&path).expect("a file");
        assert!(after.starts_with(&before), "what was compressed stays");
        let plain = zstd::decode_all(&after[..]).expect("all frames are whole");
        let added = plain.strip_prefix(sessions::codex(CODEX).as_bytes()).expect("appended");
        assert!(added.windows(9).any(|it| it == b"compacted"));
        assert_eq!(world.json(&compact(&[CODEX]))[0]["outcome"], "nothing");
        assert_eq!(world.status(&["restore", CODEX]), 0);
        assert_eq!(fs::read(&path).expect("a file"), before);
    }
}

#[test]
fn a_compressed_rollout_is_not_rewritten() {
    let world = World::new();
    let (path, before) = compressed(&world, "archived_sessions");
    let shown = world.run(&compact(&[CODEX, "--rewrite"]));
    assert!(shown.contains("a compressed session can only be appended to"), "{shown}");
    assert_eq!(fs::read(&path).expect("a file"), before);
    assert_eq!(world.status(&["archive", "verify"]), 0);
    let out = world.home.join("plain.jsonl");
    let out = out.to_str().expect("text");
    assert_eq!(world.status(&compact(&[CODEX, "--rewrite", "--out", out])), 0);
    assert!(fs::metadata(out).expect("a copy").len() < sessions::codex(CODEX).len() as u64);
}

#[test]
fn a_rollout_that_codex_unpacked_again_comes_back_with_what_was_appended() {
    let world = World::new();
    let (path, _) = compressed(&world, "sessions/2026/11/20");
    assert_eq!(world.status(&compact(&[CODEX])), 0);
    // What Codex does when it resumes such a session.
    let plain = zstd::decode_all(&fs::read(&path).expect("a file")[..]).expect("whole");
    fs::remove_file(&path).expect("it goes");
    let more = "{\"timestamp\":\"t\",\"type\":\"event_msg\",\"payload\":{\"type\":\"x\"}}\n";
    let path = world.codex(CODEX, [&plain[..], more.as_bytes()].concat());
    assert_eq!(world.status(&["restore", CODEX]), 0);
    assert_eq!(fs::read_to_string(path).expect("a file"), sessions::codex(CODEX) + more);
}

#[test]
fn of_a_rollout_and_its_compressed_copy_the_plain_one_counts() {
    let world = World::new();
    compressed(&world, "sessions/2026/11/20");
    let path = world.codex(CODEX, sessions::codex(CODEX));
    let listed = world.json(&["list", "--json"]);
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["session"], path.to_str().expect("text"));
}

#[test]
fn a_torn_compressed_rollout_says_so() {
    let world = World::new();
    let (path, bytes) = compressed(&world, "sessions/2026/11/20");
    fs::write(&path, &bytes[..bytes.len() - 2]).expect("a file");
    let shown = world.run(&["inspect", CODEX]);
    assert!(shown.contains("the compressed session is torn: its end is missing"), "{shown}");
    assert!(shown.ends_with("--- status 3\n"), "{shown}");
}

/// A rollout whose first line has more about its origin.
fn coming_from(id: &str, more: &str) -> String {
    sessions::codex(id).replacen("\"id\":", &format!("{more},\"id\":"), 1)
}

#[test]
fn what_a_sub_agent_wrote_is_compacted_with_its_session() {
    let world = World::new();
    let path = world.codex(CODEX, sessions::codex(CODEX));
    let source = r#"{"subagent":{"thread_spawn":{"parent_thread_id":"PARENT","depth":1}}}"#;
    let source = format!("\"source\":{}", source.replace("PARENT", CODEX));
    let child = coming_from(CHILD, &source);
    let child_path = world.codex(CHILD, &child);
    // A sub-agent of the sub-agent, in the form of newer versions, archived.
    let grandchild = coming_from("grandchild", &source.replace(CODEX, CHILD));
    let grandchild = grandchild.replacen("\"id\":", "\"session_id\":\"SESSION\",\"id\":", 1);
    let grandchild = grandchild.replace("SESSION", CODEX);
    let away = format!(".codex/archived_sessions/{NAME}grandchild.jsonl");
    let grandchild_path = world.write(&away, &grandchild);
    // A sub-agent whose session is missing.
    let orphan = coming_from("orphan", &source.replace(CODEX, "gone"));
    world.codex("orphan", orphan);

    let listed = world.json(&["list", "--json"]);
    let ids: Vec<&str> = listed.iter().filter_map(|it| it["id"].as_str()).collect();
    assert_eq!(ids, [CODEX, "orphan"]);
    let done = &world.json(&compact(&[CODEX]))[0];
    assert_eq!(done["files"].as_array().expect("files").len(), 2);
    assert_ne!(fs::read_to_string(&child_path).expect("a session"), child);
    assert_ne!(fs::read_to_string(&grandchild_path).expect("a session"), grandchild);
    assert_eq!(world.status(&["restore", CODEX]), 0);
    assert_eq!(fs::read_to_string(&path).expect("a session"), sessions::codex(CODEX));
    assert_eq!(fs::read_to_string(&child_path).expect("a session"), child);
    assert_eq!(fs::read_to_string(&grandchild_path).expect("a session"), grandchild);
    // It can be named by its own id.
    assert_eq!(world.status(&["inspect", CHILD]), 0);
}

/// A rollout that continues from the first bytes of another.
fn fork(world: &World, bytes: usize) {
    let base = serde_json::json!({"thread_id": CODEX, "end_ordinal_exclusive": 8,
        "end_byte_offset": bytes});
    let base = format!("\"history_base\":{base}");
    world.codex(CHILD, coming_from(CHILD, &base));
}

#[test]
fn a_rollout_that_goes_on_from_another_says_so_and_gets_no_record() {
    let world = World::new();
    world.codex(CODEX, sessions::codex(CODEX));
    fork(&world, sessions::codex(CODEX).len());
    let shown = world.run(&["inspect", CHILD]);
    assert!(shown.contains("it continues another rollout"), "{shown}");
    let summary = world.write("summary.txt", "What was said.");
    let summary = ["--summary", summary.to_str().expect("text")];
    for way in [&["--native"][..], &summary] {
        let shown = world.run(&compact(&[&[CHILD], way].concat()));
        assert!(shown.contains("which a record would leave out"), "{shown}");
    }
    // The records in its own file can be edited in place.
    assert_eq!(world.json(&compact(&[CHILD]))[0]["way"], "rewrite");
    assert_eq!(world.status(&["restore", CHILD]), 0);
}

#[test]
fn what_another_rollout_goes_on_from_stays_where_it_is() {
    let world = World::new();
    let path = world.codex(CODEX, sessions::codex(CODEX));
    fork(&world, sessions::codex(CODEX).len());
    let refused = |args: &[&str]| {
        let before = fs::read(&path).expect("a session");
        let shown = world.run(args);
        assert!(shown.contains("another session goes on from this one"), "{shown}");
        assert_eq!(fs::read(&path).expect("a session"), before);
    };
    refused(&compact(&[CODEX, "--rewrite"]));
    assert_eq!(world.json(&compact(&[CODEX]))[0]["outcome"], "compacted");
    assert_eq!(world.status(&["restore", CODEX]), 0);
    assert_eq!(world.json(&compact(&[CODEX]))[0]["outcome"], "compacted");
    fork(&world, fs::read(&path).expect("a session").len());
    refused(&["restore", CODEX]);
}

#[test]
fn a_text_that_stays_in_compressed_versions_is_named() {
    let world = World::new();
    compressed(&world, "archived_sessions");
    world.run(&["keep", "--all", "--once"]);
    let forget = ["forget", "--secret", "--yes", "--sessions"];
    let done = world.run_with(&forget, b"There are 200.");
    assert!(done.contains("these versions are compressed, and cannot be masked"), "{done}");
    assert!(done.contains("not all forgotten"), "{done}");
    assert!(done.ends_with("--- status 4\n"), "{done}");
    assert_eq!(world.status(&["forget", CODEX, "--yes"]), 0);
    let done = world.run_with(&forget, b"There are 200.");
    assert!(done.ends_with("--- status 0\n"), "{done}");
}

/// The record of a compaction repeats the history that is sent after it, with stubs.
#[test]
fn what_the_record_of_a_compaction_repeats_is_sent_and_counted_once() {
    let world = World::new();
    world.codex(CODEX, sessions::codex(CODEX));
    assert_eq!(world.json(&compact(&[CODEX]))[0]["way"], "native");
    let shown = &world.json(&["inspect", CODEX, "--json"])[0];
    assert_eq!((&shown["turns"], &shown["context_turns"]), (&2.into(), &2.into()));
    let tool = &shown["tools"][0];
    let blocks = (&tool["arguments"]["blocks"], &tool["results"]["blocks"]);
    assert_eq!(blocks, (&1.into(), &1.into()));
    let archived = |text: &str| {
        let found = world.json(&["search", text, "--json"]);
        found.iter().map(|it| it["archived"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(archived("\"How many functions\""), [false]);
    assert_eq!(archived("number_150"), [true]);
}
