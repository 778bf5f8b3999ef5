//! A compacted session is read in its original state: shown, searched, scanned, exported, and
//! redacted.

use std::fs;
use std::path::{Path, PathBuf};

use crate::world::{self, World};
use insta::assert_snapshot;
use serde_json::{Value, json};

const ID: &str = "0f3c9a52-7d1b-4e6a-9c55-3b8f0e2d7a61";
/// Split in two, so that scanners do not report it as real.
const PASSWORD: &str = concat!("hunter2", "-Secret_pw9X");
/// A word that occurs only in a removed text.
const WORD: &str = "zebrafish";

/// A session of Claude Code in which `cat .env` prints a password, and a later command echoes it
/// without any context.
fn session() -> String {
    let mut lines: Vec<Value> = Vec::new();
    let mut parent = Value::Null;
    let mut push = |role: &str, content: Value, more: Value| {
        let n = lines.len();
        let id = format!("00000000-0000-4000-8000-{n:012}");
        let mut record = json!({
            "parentUuid": parent, "isSidechain": false, "userType": "external",
            "cwd": "/srv/shop", "sessionId": ID, "version": "2.1.0", "type": role,
            "message": {"role": role, "content": content}, "uuid": id,
            "timestamp": format!("2026-11-20T10:{:02}:{:02}.000Z", n / 60, n % 60),
        });
        let more = more.as_object().cloned().unwrap_or_default();
        record["message"].as_object_mut().expect("an object").extend(more);
        parent = json!(id);
        lines.push(record);
    };
    let usage = json!({"id": "msg", "model": "claude-sonnet-4-5", "type": "message",
        "stop_reason": "tool_use", "usage": {"input_tokens": 1000, "output_tokens": 50,
        "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}});
    push("user", json!("Why can the shop not connect?"), json!({}));
    let call = |push: &mut dyn FnMut(&str, Value, Value), n: usize, command: &str, out: &str| {
        let id = format!("toolu_{n:04}");
        let mut usage = usage.clone();
        usage["id"] = json!(format!("msg_{n:04}"));
        let input = json!({"command": command});
        let block = json!([{"type": "tool_use", "id": id, "name": "Bash", "input": input}]);
        push("assistant", block, usage);
        let result = json!([{"type": "tool_result", "tool_use_id": id, "content": out}]);
        push("user", result, json!({}));
    };
    let filler: String = (0..60).map(|n| format!("# line {n} of settings, {WORD} {n}\n")).collect();
    let env = format!("{filler}DATABASE_URL=postgres://admin:{PASSWORD}@db.shop.test/shop\n");
    call(&mut push, 0, "cat .env", &env);
    for n in 1..30 {
        let out: String = (0..40).map(|line| format!("step {n} line {line} went well\n")).collect();
        call(&mut push, n, &format!("make step-{n}"), &out);
    }
    call(&mut push, 30, "./connect", &format!("trying {PASSWORD} now\nrefused\n"));
    let answer = format!("The server refuses {PASSWORD}, so it is the wrong one.");
    push("assistant", json!([{"type": "text", "text": answer}]), json!({}));
    push("user", json!("Thanks."), json!({}));
    push("assistant", json!([{"type": "text", "text": "You are welcome."}]), json!({}));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A home with the session, and the session's path.
fn world() -> (World, PathBuf) {
    let world = World::new();
    let path = world.claude(ID, session());
    (world, path)
}

/// A home with the session, compacted so that the first result is removed.
fn compacted() -> (World, PathBuf) {
    compacted_by(&["--recipe", "transcript"])
}

fn compacted_by(options: &[&str]) -> (World, PathBuf) {
    let (world, path) = world();
    let run = world.run(&[&["compact", ID], options].concat());
    assert!(run.ends_with("--- status 0\n"), "{run}");
    let stored = fs::read_to_string(&path).expect("the session");
    assert!(!stored.contains(WORD) && stored.contains(PASSWORD), "{run}");
    (world, path)
}

/// The standard output of a command.
fn out(world: &World, args: &[&str]) -> String {
    String::from_utf8(world.output(args).stdout).expect("text")
}

/// Every output of the session that is made to be shared.
fn outputs(world: &World, more: &[&str]) -> Vec<(String, String)> {
    let mut outputs = Vec::new();
    let mut add = |args: &[&str]| {
        let args = [args, more].concat();
        outputs.push((args.join(" "), out(world, &args)));
    };
    for format in ["terminal", "html", "markdown", "json", "jsonl"] {
        add(&["render", ID, "--format", format]);
        add(&["render", ID, "--format", format, "--compact"]);
    }
    add(&["redact", ID]);
    for to in ["anthropic", "openai-chat", "openai-responses", "gemini", "transcript"] {
        add(&["export", ID, "--to", to]);
    }
    outputs
}

#[test]
fn json_names_the_blocks_that_are_not_sent_any_more() {
    let (world, _) = compacted();
    let render = ["render", ID, "--no-redact", "--format", "json"];
    let values = world.json(&render);
    world::check("transcript.schema.json", &values);
    let entries = values[0]["entries"].as_array().expect("entries");
    let in_order = |place: usize| values[0]["context"][place] == place;
    let mut removed = 0;
    for (place, entry) in entries.iter().enumerate() {
        let blocks = entry["blocks"].as_array().expect("blocks");
        let with_word: Vec<usize> =
            (0..blocks.len()).filter(|block| blocks[*block].to_string().contains(WORD)).collect();
        if !with_word.is_empty() {
            assert_eq!((&entry["unsent"], in_order(place)), (&json!(with_word), true));
            removed += 1;
        }
    }
    assert_eq!(removed, 1);
    assert_eq!(entries[0].get("unsent"), None, "it is sent");
    let as_sent = world.json(&[&render[..], &["--as-sent"]].concat());
    world::check("transcript.schema.json", &as_sent);
    assert!(!as_sent[0].to_string().contains("\"unsent\""));
}

#[test]
fn a_secret_learnt_from_a_removed_text_stays_hidden() {
    let (world, _) = compacted();
    for more in [&[][..], &["--as-sent"]] {
        for (args, output) in outputs(&world, more) {
            assert!(!output.is_empty(), "{args}");
            assert!(!output.contains(PASSWORD), "{args}: {output}");
        }
    }
    let hits = world.json(&["search", "--json", "hunter2"]);
    assert_eq!(hits, Vec::<Value>::new(), "it is not in the index");
}

#[test]
fn a_scan_finds_what_it_found_before() {
    let (before, _) = world();
    let (after, path) = compacted();
    let found = |world: &World, more: &[&str]| {
        let args = [&["scan", ID, "--json"][..], more].concat();
        world.json(&args).remove(0)["found"].as_array().expect("a list").len()
    };
    assert_eq!(found(&after, &[]), found(&before, &[]));
    // With `--as-sent`, removed text is not searched, but secrets in it are still known.
    assert_eq!(found(&after, &["--as-sent"]), 1);
    let piped = after.run_with(&["scan", "-"], &fs::read(path).expect("the session"));
    assert!(piped.contains("in 3 places"), "{piped}");
}

#[test]
fn what_is_shown_is_what_was_shown_before() {
    let ((before, _), (after, path)) = (world(), compacted());
    for args in [
        &["render", ID, "--format", "jsonl"][..],
        &["redact", ID],
        &["export", ID, "--to", "anthropic"],
        &["export", ID, "--to", "transcript"],
    ] {
        assert_eq!(out(&after, args), out(&before, args), "{args:?}");
    }
    // Including what the agent appended since.
    let more = "{\"type\":\"summary\",\"summary\":\"x\",\"leafUuid\":\"y\"}\n";
    for world in [&before, &after] {
        append(world, more);
    }
    let args = ["redact", ID];
    assert_eq!(out(&after, &args), out(&before, &args));
    assert!(out(&after, &["redact", ID, "--as-sent"]).len() < out(&after, &args).len());
    assert!(fs::read_to_string(path).expect("the session").ends_with(more), "nothing is written");
}

fn append(world: &World, more: &str) {
    let path = world.home.join(format!(".claude/projects/-p/{ID}.jsonl"));
    let text = fs::read_to_string(&path).expect("the session");
    fs::write(path, text + more).expect("the session");
}

#[test]
fn a_missing_archive_is_said_and_the_stubs_stay() {
    let (world, _) = compacted_by(&["--keep-turns", "0"]);
    fs::remove_dir_all(world.home.join(".local/share/epitome/archive")).expect("the archive");
    let run = world.run(&["render", ID, "--turn", "1", "--detail", "calls"]);
    assert_snapshot!("missing", run);
    let page = out(&world, &["render", ID, "--format", "html"]);
    assert!(page.contains("their texts are not in the archive"), "{page}");
    assert!(!out(&world, &["redact", ID]).contains(WORD));
    let losses = world.output(&["losses", ID]);
    let notes = String::from_utf8_lossy(&losses.stderr);
    assert!(notes.contains("their texts are not in the archive"), "{notes}");
}

#[test]
fn a_damaged_part_is_said_and_the_rest_is_put_back() {
    let (world, _) = compacted();
    let pack = world.home.join(format!(".local/share/epitome/archive/claude/{ID}/000001.pack"));
    damage(&pack);
    let run = world.output(&["redact", ID]);
    let (text, notes) =
        (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(notes.contains("not all of it could be put back"), "{notes}");
    assert!(text.contains("step 29 line 39"), "what can be read is put back: {notes}");
}

/// Breaks the payload of the first removed piece.
fn damage(pack: &Path) {
    let mut bytes = fs::read(pack).expect("a pack");
    let tag = b"\x89EPb";
    let at = bytes.windows(tag.len()).position(|it| it == tag).expect("a piece");
    let about = u32::from_le_bytes(bytes[at + 52..at + 56].try_into().expect("four bytes"));
    let payload = at + 64 + about as usize;
    bytes[payload + 8] ^= 0xff;
    fs::write(pack, bytes).expect("a pack");
}

#[test]
fn a_search_finds_what_was_removed_and_says_so() {
    let (world, _) = compacted();
    let hits = world.json(&["search", "--json", WORD]);
    assert_eq!(hits.len(), 1, "{hits:?}");
    assert_eq!(hits[0]["archived"], json!(true));
    assert_snapshot!(world.run(&["search", WORD]), @r"
    $ epitome search zebrafish
    claude  0f3c9a52  Why can the shop not connect?
      turn 1    tool        1d  archived  …line 0 of settings, zebrafish 0 # line 1 of settings, zebraf…
      epitome render 0f3c9a52 --turn 1  (shows what was archived, too)

    --- status 0
    ");
}
