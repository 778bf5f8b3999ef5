//! Summaries that are rows after the others.

use epitome::archive::Archive;
use epitome::compaction::{PreparedCompaction, apply};
use epitome::storage::{RestoreTarget, Spliced, restore};
use epitome::{ErrorKind, Loaded};
use epitome_passes::built_in;
use epitome_tokens::Estimate;
use serde_json::{Value, json};

use super::*;

const SUMMARY: &str = "What was done: \"all of it\".\nAnd what is left: nothing.";

/// Replaces everything but the last turn by a summary.
fn summarise(world: &World) -> epitome::Result<(Archive, epitome::archive::SessionKey)> {
    let file = world.open();
    let loaded = Loaded::read(file.source(), None).expect("OpenCode's");
    let keep = epitome_passes::Keep { turns: Some(1), ..Default::default() };
    let recipe = epitome_passes::Recipe { keep, ..built_in("transcript").expect("a recipe") };
    let planned = PreparedCompaction::with_summary(SUMMARY, &loaded, &recipe, &Estimate)?;
    assert_eq!(planned.violations, []);
    let archive = Archive::new(&world.dir.path().join("home"));
    apply(&planned, &file, &archive, &Estimate, jiff::Timestamp::UNIX_EPOCH)?;
    Ok((archive, epitome::storage::key_of(&loaded, file.path())))
}

/// Undoes the compaction of a session.
fn take_back(world: &World, (archive, key): &(Archive, epitome::archive::SessionKey)) {
    let file = world.open();
    let generations = archive.generations(key).expect("generations").whole;
    let blobs = archive.blobs(key);
    let back =
        restore(file.source(), &generations, &blobs, RestoreTarget::Original).expect("a way back");
    let spliced = Spliced::new(file.source(), back.splices).expect("apart");
    file.replace(|out| spliced.copy_to(out)).expect("replaced");
}

/// Appends a turn in which nothing is done.
fn another_turn(world: &World) {
    let connection = world.connection();
    let model = r#""providerID":"p","modelID":"m""#;
    let rows = [
        ("msg_3", 30, format!(r#"{{"role":"user","agent":"plan","model":{{{model}}}}}"#)),
        ("msg_4", 40, format!(r#"{{"role":"assistant","parentID":"msg_3",{model}}}"#)),
    ];
    for (id, time, data) in rows {
        let insert = "INSERT INTO message VALUES (?1, 'ses_a', ?2, ?2, ?3)";
        connection.execute(insert, (id, time, data)).expect("a message");
        let insert = "INSERT INTO part VALUES (?1, ?2, 'ses_a', 1, 2, ?3)";
        let text = format!(r#"{{"type":"text","text":"Said in {id}"}}"#);
        connection.execute(insert, (id.replace("msg_", "prt_1"), id, text)).expect("a part");
    }
}

#[test]
fn a_summary_is_rows_behind_the_others_and_they_are_taken_away_again() {
    let world = World::new();
    another_turn(&world);
    let before = world.all();
    let lines = text(&epitome::open(&world.database()).expect("a session"));
    let done = summarise(&world).expect("a summary");
    let after = text(&epitome::open(&world.database()).expect("a session"));
    let new = after.strip_prefix(&lines).expect("what stood there stands there");
    let ids: Vec<&str> = new.lines().map(|line| line.split('"').nth(7).expect("an id")).collect();
    let [asked, tail, answer, words] = ids.as_slice() else { panic!("{new}") };
    let row = |table: &str, id: &str, of: String, data: Value| {
        format!(r#"{{"table":"{table}","id":"{id}",{of},"data":{data}}}"#)
    };
    let at = |time: u64| format!(r#""time_created":{time}"#);
    let of = |message: &str| format!(r#""message_id":"{message}""#);
    let request = json!({"role": "user", "model": {"providerID": "p", "modelID": "m"},
        "agent": "plan", "time": {"created": 41}});
    let compaction = json!({"type": "compaction", "auto": false, "tail_start_id": "msg_3"});
    let tokens = json!({"input": 0, "output": 0, "reasoning": 0,
        "cache": {"write": 0, "read": 0}});
    let summary = json!({"role": "assistant", "parentID": asked, "mode": "compaction",
        "agent": "compaction", "summary": true, "path": {"cwd": "/p", "root": "/p"}, "cost": 0,
        "tokens": tokens, "modelID": "m", "providerID": "p",
        "time": {"created": 42, "completed": 42}, "finish": "stop"});
    let text_part = json!({"type": "text", "text": SUMMARY, "time": {"start": 42, "end": 42}});
    let expect = [
        row("message", asked, at(41), request),
        row("part", tail, of(asked), compaction),
        row("message", answer, at(42), summary),
        row("part", words, of(answer), text_part),
    ];
    let read = |line: &str| serde_json::from_str::<Value>(line).expect("a row");
    assert_eq!(new.lines().map(read).collect::<Vec<_>>(), expect.map(|row| read(&row)));
    assert!(asked.starts_with("msg_000000029001") && answer.starts_with("msg_00000002a001"));
    assert!(tail.starts_with("prt_000000029001") && words.starts_with("prt_00000002a001"));
    take_back(&world, &done);
    assert_eq!(world.all(), before);
}

#[test]
fn what_an_agent_added_behind_a_summary_stays_when_it_is_taken_away() {
    let world = World::new();
    another_turn(&world);
    let done = summarise(&world).expect("a summary");
    let insert = "INSERT INTO message VALUES ('msg_9', 'ses_a', 90, 91, '{}')";
    world.connection().execute(insert, []).expect("one");
    take_back(&world, &done);
    let after = text(&epitome::open(&world.database()).expect("a session"));
    assert!(after.ends_with("\"id\":\"msg_9\",\"time_created\":90,\"data\":{}}\n"), "{after}");
    assert!(!after.contains("compaction"), "{after}");
}

#[test]
fn a_summary_goes_nowhere_when_something_was_added_in_its_place() {
    let world = World::new();
    another_turn(&world);
    let file = world.open();
    let lines = text(file.source());
    let made = summary_lines(&world);
    // A new part of the last message would come before the summary.
    let insert = "INSERT INTO part VALUES ('prt_5', 'msg_4', 'ses_a', 1, 2, '{}')";
    world.connection().execute(insert, []).expect("one");
    let before = world.all();
    let err = file.replace(|out| Ok(out.write_all(format!("{lines}{made}").as_bytes())?));
    assert_eq!(err.expect_err("it changed").kind(), ErrorKind::Changed);
    assert_eq!(world.all(), before);
}

#[test]
fn only_rows_that_epitome_made_come_and_go() {
    let world = World::new();
    another_turn(&world);
    let made = summary_lines(&world);
    let before = world.all();
    let (first, _) = made.split_once('\n').expect("lines");
    let id = first.split('"').nth(7).expect("an id");
    let mut other = id.to_owned();
    let last = other.pop().expect("a digit");
    other.push(if last == '0' { '1' } else { '0' });
    let lines = text(&epitome::open(&world.database()).expect("a session"));
    let without = lines.rsplit_once("{\"table\":\"part\"").expect("a part").0.to_owned();
    for to in [
        format!("{lines}{}", made.replace(id, &other)),
        format!("{lines}{first}\n{first}\n"),
        format!("{lines}{}", made.replace("\"table\":\"message\"", "\"table\":\"event\"")),
        without,
    ] {
        let file = world.open();
        let done = file.replace(|out| Ok(out.write_all(to.as_bytes())?));
        done.expect_err(&to);
        assert_eq!(world.all(), before, "{to}");
    }
}

/// The lines of a summary that would be written.
fn summary_lines(world: &World) -> String {
    let source = epitome::open(&world.database()).expect("a session");
    let loaded = Loaded::read(&source, None).expect("OpenCode's");
    let keep = epitome_passes::Keep { turns: Some(1), ..Default::default() };
    let recipe = epitome_passes::Recipe { keep, ..built_in("transcript").expect("a recipe") };
    let planned =
        PreparedCompaction::with_summary(SUMMARY, &loaded, &recipe, &Estimate).expect("a plan");
    let [(splice, _)] = planned.splices.as_slice() else { panic!("{:?}", planned.splices) };
    String::from_utf8(splice.with.to_vec()).expect("text")
}
