//! `epitome restore` on the command line.

use std::fs;
use std::path::Path;

use crate::world::sessions::{self, CLAUDE};
use crate::world::{self, World};
use insta::assert_snapshot;

const COMPACT: [&str; 6] =
    ["compact", CLAUDE, "--keep-turns=1", "--count=estimate", "--recipe", "transcript"];

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a session")
}

#[test]
fn a_session_comes_back_to_the_byte() {
    let world = World::new();
    let original = sessions::claude(CLAUDE);
    let path = world.claude(CLAUDE, &original);
    world.run(&COMPACT);
    let small = world.tree();
    assert_snapshot!(world.run(&["restore", "0f3c", "--dry-run"]), @r"
    $ epitome restore 0f3c --dry-run
    would restore  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    nothing was written
    disk     6.3 KB → 22.5 KB
    how      exact, to the byte: 1 compaction undone, 5 records restored
             verified: blake3 6306aee1158a8efe…
    --- status 0
    ");
    assert_eq!(world.tree(), small);
    assert_snapshot!(world.run(&["restore", "0f3c"]), @r"
    $ epitome restore 0f3c
    restored  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    disk     6.3 KB → 22.5 KB
    how      exact, to the byte: 1 compaction undone, 5 records restored
             verified: blake3 6306aee1158a8efe…
    --- status 0
    ");
    assert_eq!(read(&path), original);
    assert_snapshot!(world.run(&["restore", "0f3c"]), @r"
    $ epitome restore 0f3c
    nothing to do  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    disk     22.5 KB → 22.5 KB
    how      unchanged: blake3 6306aee1158a8efe…
    --- status 0
    ");
}

#[test]
fn what_was_appended_since_stays() {
    let world = World::new();
    let original = sessions::claude(CLAUDE);
    let path = world.claude(CLAUDE, &original);
    world.run(&COMPACT);
    let more = "{\"type\":\"summary\",\"summary\":\"more\"}\n";
    fs::write(&path, read(&path) + more).expect("a session");
    assert_snapshot!(world.run(&["restore", "0f3c"]), @r"
    $ epitome restore 0f3c
    restored  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    disk     6.3 KB → 22.5 KB
    how      exact, to the byte: 1 compaction undone, 5 records restored
             verified: blake3 0aa82149c6ece6a1…
    --- status 0
    ");
    assert_eq!(read(&path), original + more);
}

#[test]
fn a_session_changed_by_hand_comes_back_record_by_record() {
    let world = World::new();
    let original = sessions::claude(CLAUDE);
    let path = world.claude(CLAUDE, &original);
    world.run(&COMPACT);
    let by_hand = read(&path).replace("[error: 92 lines]", "[my own words]");
    fs::write(&path, &by_hand).expect("a session");
    assert_snapshot!(world.run(&["restore", "0f3c"]), @r"
    $ epitome restore 0f3c
    restored  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    disk     6.3 KB → 18.6 KB
    how      record by record: 4 edits undone
             1 is no longer where epitome left it: `epitome show` has the bytes
             kept as generation 2; --generation 1 undoes it
    --- status 0
    ");
    assert!(read(&path).contains("[my own words]") && read(&path).contains("fn number_120"));
    // A restore can be undone by number, even if there is nothing more to restore.
    world.run(&["restore", "0f3c", "--generation", "1"]);
    assert_eq!(read(&path), by_hand);
}

#[test]
fn generations_can_be_gone_back_to() {
    let world = World::new();
    let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.run(&["compact", CLAUDE, "--keep-turns=2", "--count=estimate", "--recipe", "transcript"]);
    let first = read(&path);
    world.run(&COMPACT);
    assert!(read(&path).len() < first.len());
    assert_snapshot!(world.run(&["restore", "0f3c", "--generation", "1"]), @r"
    $ epitome restore 0f3c --generation 1
    restored  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    disk     6.3 KB → 8.9 KB
    how      exact, to the byte: 1 compaction undone, 1 record restored
             verified: blake3 4210b5a2bb5007ed…
    --- status 0
    ");
    assert_eq!(read(&path), first);
    assert_snapshot!(world.run(&["restore", "0f3c", "--generation", "7"]), @r"
    $ epitome restore 0f3c --generation 7
    --- stderr
    error: this session has no generation 7
      hint: this session has the generations 1, 2
    --- status 5
    ");
}

#[test]
fn a_session_changed_between_two_compactions_comes_back_whole() {
    let world = World::new();
    let original = sessions::claude(CLAUDE);
    let path = world.claude(CLAUDE, &original);
    world.run(&["compact", CLAUDE, "--keep-turns=2", "--count=estimate", "--recipe", "transcript"]);
    let by_hand = |text: &str| text.replacen("}\n", " }\n", 1);
    fs::write(&path, by_hand(&read(&path))).expect("a session");
    world.run(&COMPACT);
    assert_snapshot!(world.run(&["restore", "0f3c"]), @r"
    $ epitome restore 0f3c
    restored  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    disk     6.3 KB → 22.5 KB
    how      to the byte: 1 compaction undone, 1 record restored; the file was changed by others before that
             record by record: 4 edits undone
             kept as generation 3; --generation 2 undoes it
    --- status 0
    ");
    assert_eq!(read(&path), by_hand(&original));
    assert_snapshot!(world.run(&["restore", "0f3c"]), @r"
    $ epitome restore 0f3c
    nothing to do  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    disk     22.5 KB → 22.5 KB
    how      record by record: 0 edits undone
    --- status 0
    ");
    assert_eq!(read(&path), by_hand(&original));
}

/// Without a kill and without an error: the session had nothing to compact, but its sub-agent had.
#[test]
fn sub_agents_come_back_although_their_session_never_was_compacted() {
    let world = World::new();
    let session = world::beginning(sessions::claude(CLAUDE).as_bytes(), 1);
    world.claude(CLAUDE, &session);
    let name = format!(".claude/projects/-p/{CLAUDE}/subagents/agent-abc.jsonl");
    let agent = sessions::claude(CLAUDE).replace("\"isSidechain\":false", "\"isSidechain\":true");
    let path = world.write(&name, &agent);
    assert_snapshot!(world.run(&COMPACT), @r"
    $ epitome compact 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4 --keep-turns=1 --count=estimate --recipe transcript
    compacted  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    claude · recipe transcript

               before       after
    messages        7  →        7      0%  tokens (estimate)
    disk        311 B  →    311 B      0%
    messages     3.7k  →      143  -96.1%  tokens, with 1 sub-agent
    disk      22.8 KB  →   6.6 KB  -71.0%  with 1 sub-agent
    net       22.8 KB  →  (with the archive)

    edits    none
    kept     7 tokens untouched: the last turns (1 entry)
             the last turns: that is everything, nothing is old yet
    with     agent-abc  22.5 KB → 6.3 KB  generation 1
    undo     epitome undo
    --- status 0
    ");
    assert!(read(&path).len() < agent.len());
    assert_snapshot!(world.run(&["restore", CLAUDE, "--dry-run"]), @r"
    $ epitome restore 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4 --dry-run
    would restore  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    nothing was written
    disk     311 B → 311 B
    how      unchanged: blake3 f0fd982556b847fa…
    with     agent-abc  6.3 KB → 22.5 KB
             exact, to the byte: 1 compaction undone, 5 records restored
             verified: blake3 bddf5d27c1471512…
    --- status 0
    ");
    world::check("restore.schema.json", &world.json(&["restore", "0f3c", "--dry-run", "--json"]));
    assert_snapshot!(world.run(&["restore", CLAUDE]), @r"
    $ epitome restore 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
    restored  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    disk     311 B → 311 B
    how      unchanged: blake3 f0fd982556b847fa…
    with     agent-abc  6.3 KB → 22.5 KB
             exact, to the byte: 1 compaction undone, 5 records restored
             verified: blake3 bddf5d27c1471512…
    --- status 0
    ");
    assert_eq!(read(&path), agent);
}

#[test]
fn a_session_of_rows_without_a_log_comes_back() {
    let world = World::new();
    let database = world.opencode();
    let [listed] = &world.json(&["list", "--json"])[..] else { panic!("one session") };
    let id = listed["id"].as_str().expect("an id");
    let compact = ["compact", id, "--keep-turns=0", "--count=estimate"];
    let whole = world.run(&["export", id, "--to", "openai-chat"]);
    assert_eq!(world.status(&compact), 0);
    assert_ne!(world.run(&["export", id, "--to", "openai-chat", "--as-sent"]), whole);
    let address = format!("{}#{id}", database.display());
    for args in [&["restore", &address, "--dry-run"][..], &["restore", id], &["restore", id]] {
        let terminal = world.run(args);
        assert!(terminal.ends_with("--- status 0\n"), "{terminal}");
    }
    assert_eq!(world.run(&["export", id, "--to", "openai-chat"]), whole);
}

#[test]
fn one_piece_can_be_given_back() {
    let world = World::new();
    let original = sessions::claude(CLAUDE);
    let path = world.claude(CLAUDE, &original);
    world.run(&["compact", CLAUDE, "--keep-turns=1", "--count=estimate"]);
    let small = read(&path);
    let digits = small.split("[epitome k").nth(1).expect("a stub");
    let reference = format!("k{}", &digits[..7]);
    let terminal = world.run(&["restore", "0f3c", "--block", &reference]);
    assert_snapshot!(terminal.replace(&reference, "[ref]"), @r"
    $ epitome restore 0f3c --block [ref]
    restored  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    disk     6.4 KB → 10.0 KB
    how      record by record: 1 edit undone
             kept as generation 2; --generation 1 undoes it
    --- status 0
    ");
    assert!(read(&path).len() > small.len() && read(&path).len() < original.len());
    world.run(&["restore", "0f3c"]);
    assert_eq!(read(&path), original);
    assert_snapshot!(world.run(&["restore", "0f3c", "--block", "kffffffff"]), @r"
    $ epitome restore 0f3c --block kffffffff
    --- stderr
    error: nothing named kffffffff was removed from this session
      hint: this session has the generations 1, 2
    --- status 5
    ");
    assert_snapshot!(world.run(&["restore", "0f3c", "--block", "Read"]), @r"
    $ epitome restore 0f3c --block Read
    --- stderr
    error: invalid value 'Read' for '--block <REF>': `Read` is not a reference; a stub shows one like k7f3a9c2

    For more information, try '--help'.
    --- status 2
    ");
}

#[test]
fn a_whole_copy_can_be_written_aside() {
    let world = World::new();
    let original = sessions::claude(CLAUDE);
    let path = world.claude(CLAUDE, &original);
    world.run(&COMPACT);
    let small = read(&path);
    assert_snapshot!(world.run(&["restore", "0f3c", "--out", "whole.jsonl"]), @r"
    $ epitome restore 0f3c --out whole.jsonl
    restored  ~/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
    disk     6.3 KB → 22.5 KB
    how      exact, to the byte: 1 compaction undone, 5 records restored
             verified: blake3 6306aee1158a8efe…
    written  whole.jsonl
    --- status 0
    ");
    assert_eq!((read(&path), read(&world.home.join("whole.jsonl"))), (small, original));
    assert_snapshot!(world.run(&["restore", "0f3c", "--out", "whole.jsonl"]), @r"
    $ epitome restore 0f3c --out whole.jsonl
    --- stderr
    error: there is something of that name already: whole.jsonl
      hint: choose another name, or remove what is there
    --- status 4
    ");
}

#[test]
fn a_session_that_was_never_compacted_is_not_in_the_archive() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    assert_snapshot!(world.run(&["restore", "0f3c"]), @r"
    $ epitome restore 0f3c
    --- stderr
    error: the archive holds nothing of this session: [home]/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl
      hint: `epitome archive ls` shows the sessions that were compacted on this machine; EPITOME_HOME says where the archive is, if it is not the usual place
    --- status 5
    ");
}

#[test]
fn a_damaged_archive_changes_nothing() {
    let world = World::new();
    let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.run(&COMPACT);
    let small = read(&path);
    let pack = world.home.join(format!(".local/share/epitome/archive/claude/{CLAUDE}/000001.pack"));
    let mut bytes = fs::read(&pack).expect("a pack");
    let middle = bytes.len() / 3;
    bytes[middle..middle + 40].fill(0);
    fs::write(&pack, &bytes).expect("a pack");
    let terminal = world.run(&["restore", "0f3c"]);
    assert!(terminal.ends_with("--- status 5\n"), "{terminal}");
    assert_eq!(read(&path), small);
    assert!(world.run(&["archive", "verify"]).ends_with("--- status 5\n"));
    let output = world.run(&["restore", "0f3c", "--partial", "--dry-run"]);
    assert!(output.contains("record by record") && output.ends_with("--- status 0\n"), "{output}");
    fs::remove_file(&pack).expect("a pack");
    assert_eq!(world.status(&["restore", "0f3c"]), 5);
    assert_eq!(read(&path), small);
}

/// Two compactions, with the archive of the second damaged or missing.
#[test]
fn what_may_need_a_damaged_part_changes_nothing() {
    let world = World::new();
    let original = sessions::claude(CLAUDE);
    let path = world.claude(CLAUDE, &original);
    for turns in ["--keep-turns=2", "--keep-turns=0"] {
        assert_eq!(world.status(&["compact", CLAUDE, turns, "--count=estimate"]), 0);
    }
    let small = read(&path);
    let pack = world.home.join(format!(".local/share/epitome/archive/claude/{CLAUDE}/000002.pack"));
    let whole = fs::read(&pack).expect("a pack");
    fs::write(&pack, &whole[..whole.len() / 2]).expect("a pack");
    assert_snapshot!(world.run(&["restore", "0f3c"]), @r"
    $ epitome restore 0f3c
    --- stderr
    error: a damaged or missing part of the archive may be needed; nothing was changed
      cause: this part of the archive has no manifest: [home]/.local/share/epitome/archive/claude/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4/000002.pack
      hint: `epitome restore SESSION --partial` restores what can be; `epitome archive verify` lists what is damaged
    --- status 5
    ");
    assert_eq!(read(&path), small);
    fs::remove_file(&pack).expect("a pack");
    let terminal = world.run(&["restore", "0f3c"]);
    assert!(terminal.contains("is not in the archive"), "{terminal}");
    assert!(terminal.ends_with("--- status 5\n"), "{terminal}");
    assert_eq!(read(&path), small);
    let terminal = world.run(&["restore", "0f3c", "--partial"]);
    assert!(terminal.ends_with("--- status 0\n"), "{terminal}");
    assert!(read(&path).len() > small.len() && read(&path).len() < original.len());
    // The restore is archived as a generation: once the lost part is back, everything can be
    // restored.
    fs::write(&pack, &whole).expect("a pack");
    world.run(&["restore", "0f3c"]);
    assert_eq!(read(&path).len(), original.len());
}

#[test]
fn a_lost_part_of_a_sub_agent_changes_nothing() {
    let world = World::new();
    let recorded = fixtures::get("claude", "pricing");
    let path = world.claude(CLAUDE, recorded.bytes());
    let mut agents = Vec::new();
    for agent in recorded.sub_agents() {
        let name = agent.file_name().and_then(|it| it.to_str()).expect("a name");
        let name = format!(".claude/projects/-p/{CLAUDE}/subagents/{name}");
        agents.push(world.write(&name, fs::read(&agent).expect("recorded")));
    }
    assert_eq!(world.status(&["compact", CLAUDE, "--keep-turns=0", "--count=estimate"]), 0);
    let small = (read(&path), read(&agents[0]));
    assert!(small.1.contains("[epitome k"), "a result of it went");
    let archive = world.home.join(".local/share/epitome/archive/claude");
    let of_agent = fs::read_dir(&archive).expect("a folder").find_map(|it| {
        let path = it.expect("an entry").path();
        path.to_string_lossy().contains(".agent-").then_some(path)
    });
    fs::remove_dir_all(of_agent.expect("a folder")).expect("removed");
    let terminal = world.run(&["restore", CLAUDE]);
    assert!(terminal.ends_with("--- status 5\n"), "{terminal}");
    assert_eq!((read(&path), read(&agents[0])), small);
}

/// A restored session is found even if its id is not in the file any more.
#[test]
fn a_restored_file_without_an_id_is_found_by_its_path() {
    let world = World::new();
    let call = |n: usize| {
        let output = format!("line {n}\\n").repeat(200);
        let info = format!(
            r#"{{"id":"m{n}","role":"assistant","sessionID":"ses_a","time":{{"created":{n}}}}}"#
        );
        format!(
            r#"{{"info":{info},
"parts":[{{"id":"p{n}","type":"tool","tool":"bash","callID":"c{n}","state":{{"status":"completed",
"input":{{"command":"make"}},"output":"{output}","time":{{"start":1,"end":2}}}}}}]}}"#
        )
    };
    let calls: Vec<String> = (0..8).map(call).collect();
    let session = format!(
        "{{\"info\":\n{{\"id\":\"ses_abcdefgh\",\"directory\":\"/p\",\"title\":\"t\",\
         \"version\":\"1\"}},\n\"messages\":[{}]}}\n",
        calls.join(",\n"),
    );
    let path = world.write("s.json", &session);
    assert_eq!(world.status(&["compact", "s.json", "--keep-turns=0", "--count=estimate"]), 0);
    let broken = read(&path).replace("\"id\":\"ses_abcdefgh\",", "");
    fs::write(&path, &broken).expect("a session");
    let terminal = world.run(&["restore", "s.json"]);
    assert!(terminal.contains("record by record"), "{terminal}");
    assert_eq!(read(&path), session.replace("\"id\":\"ses_abcdefgh\",", ""));
    // This can be undone, too.
    assert_eq!(world.status(&["restore", "s.json", "--generation", "1"]), 0);
    assert_eq!(read(&path), broken);
    // The former state is back, so that the generation that kept it is not needed.
    assert_eq!(world.status(&["archive", "gc", "--grace=0d", "--yes"]), 0);
    let kept = world.json(&["archive", "ls", "--json"]);
    assert_eq!((kept.len(), &kept[0]["generation"]), (1, &serde_json::json!(1)));
    assert_eq!(world.status(&["restore", "s.json"]), 0);
    assert_eq!(read(&path), session.replace("\"id\":\"ses_abcdefgh\",", ""));
}

#[test]
fn json_is_what_the_schema_says() {
    let world = World::new();
    let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.run(&COMPACT);
    world::check("restore.schema.json", &world.json(&["restore", "0f3c", "--dry-run", "--json"]));
    let by_hand = read(&path).replace("[error: 92 lines]", "[my own words]");
    fs::write(&path, by_hand).expect("a session");
    world::check("restore.schema.json", &world.json(&["restore", "0f3c", "--json"]));
}

/// An appended record of ours that was edited since is not counted as undone.
#[test]
fn an_appended_record_that_was_changed_is_told() {
    let world = World::new();
    let id = "01a1fc9b-bb93-70a1-b7c3-6fcf53d36849";
    let path = world.codex(id, fixtures::get("codex", "pricing").bytes());
    let before = read(&path);
    assert_eq!(world.status(&["compact", id, "--native", "--count=estimate"]), 0);
    let compacted = read(&path);
    let year = before.len() + compacted[before.len()..].find("2026-").expect("a time");
    let mut changed = compacted.clone();
    changed.replace_range(year..year + 4, "2025");
    fs::write(&path, &changed).expect("a session");
    let output = world.run(&["restore", id]);
    assert!(output.contains("what generation 1 appended to this session was changed"), "{output}");
    assert!(output.ends_with("--- status 4\n"), "{output}");
    assert_eq!(world.status(&["archive", "gc", "--grace=0d", "--yes"]), 0);
    assert_eq!(world.json(&["archive", "ls", "--json"]).len(), 1);
    let output = world.run(&["restore", id, "--partial"]);
    assert!(
        output.ends_with("--- status 0\n") && !output.contains("it is what it was"),
        "{output}"
    );
    assert_eq!(read(&path), changed);
    // What the agent appends to a restored session is not ours.
    fs::write(&path, &compacted).expect("a session");
    assert_eq!(world.status(&["restore", id]), 0);
    let more = before + "{\"timestamp\":\"2026-11-21T12:00:00.000Z\",\"type\":\"event_msg\"}\n";
    fs::write(&path, more).expect("a session");
    let output = world.run(&["restore", id]);
    assert!(output.contains("nothing to do") && output.ends_with("--- status 0\n"), "{output}");
}
