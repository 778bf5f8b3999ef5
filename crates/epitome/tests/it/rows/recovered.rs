//! Databases that a killed program left in the middle of a commit.

use std::fs;
use std::path::Path;

use epitome::{ErrorKind, Loaded, agents};

use super::*;

/// A database with the journal of a program that was killed during a commit: half of the pages are
/// of the new state, and the journal has the old ones.
fn killed() -> World {
    let world = World::new();
    let connection = world.connection();
    let batch = "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 2; PRAGMA cache_spill = 1;
        CREATE TABLE other (text); BEGIN IMMEDIATE;";
    connection.execute_batch(batch).expect("a transaction");
    connection.execute("UPDATE part SET data = '{}'", []).expect("parts");
    for n in 0..400 {
        connection.execute("INSERT INTO other VALUES (?1)", ["x".repeat(900 + n)]).expect("a row");
    }
    let kept = world.dir.path().join("kept");
    fs::create_dir(&kept).expect("a folder");
    for name in ["opencode.db", "opencode.db-journal"] {
        fs::copy(world.dir.path().join(name), kept.join(name)).expect("a file");
    }
    connection.execute_batch("ROLLBACK").expect("rolled back");
    drop(connection);
    for name in ["opencode.db", "opencode.db-journal"] {
        fs::rename(kept.join(name), world.dir.path().join(name)).expect("a file");
    }
    fs::remove_dir(&kept).expect("it is empty");
    world
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    names(folder)
        .into_iter()
        .map(|it| (it.clone(), fs::read(folder.join(it)).expect("a file")))
        .collect()
}

fn config(world: &World) -> Config {
    let mut config = Config::from_home(world.dir.path());
    let database = world.dir.path().join("opencode.db");
    config.agents.variables.insert("OPENCODE_DB".to_owned(), database.into());
    config
}

#[test]
fn a_database_left_by_a_killed_writer_is_read_and_not_written() {
    let (world, whole) = (killed(), World::new());
    let before = files(world.dir.path());
    let found = agents::all(&config(&world).agents, Some("opencode"));
    assert_eq!(found.unread.len(), 0, "{:?}", found.unread);
    let ids: Vec<&str> = found.sessions.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["ses_a"]);
    let session =
        epitome::storage::load(&world.address("ses_a"), None).expect("it is recovered in a copy");
    let expect = epitome::storage::load(&whole.address("ses_a"), None).expect("a session");
    assert_eq!(text(&session.source), text(&expect.source), "the state before the commit");
    assert!(files(world.dir.path()) == before, "reading wrote to the folder of the database");
}

#[test]
fn a_database_left_by_a_killed_writer_is_compacted_and_restored() {
    let (world, whole) = (killed(), World::new());
    let before =
        text(&epitome::storage::load(&whole.address("ses_a"), None).expect("a session").source);
    let archive = Archive::new(&world.dir.path().join("home"));
    let file = world.open();
    let loaded = Loaded::read(file.source(), None).expect("OpenCode's");
    let recipe = built_in("transcript").expect("a recipe");
    let planned =
        PreparedCompaction::in_way(Way::Native, &loaded, &recipe, &Estimate).expect("a plan");
    apply(&planned, &file, &archive, &Estimate, jiff::Timestamp::UNIX_EPOCH).expect("done");
    let key = epitome::storage::key_of(&loaded, file.path());
    drop(file);
    assert_eq!(names(world.dir.path()), ["home", "opencode.db"], "SQLite has rolled it back");
    let file = world.open();
    assert_ne!(text(file.source()), before);
    let generations = archive.generations(&key).expect("generations").whole;
    let blobs = archive.blobs(&key);
    let back =
        restore(file.source(), &generations, &blobs, RestoreTarget::Original).expect("a way back");
    let spliced = Spliced::new(file.source(), back.splices).expect("apart");
    file.replace(|out| spliced.copy_to(out)).expect("replaced");
    drop(file);
    assert_eq!(text(world.open().source()), before);
}

#[cfg(unix)]
#[test]
fn what_is_no_file_next_to_a_database_is_refused_and_named() {
    for name in ["opencode.db", "opencode.db-journal", "opencode.db-wal", "opencode.db-shm"] {
        let world = World::new();
        world.connection().execute_batch("PRAGMA journal_mode = DELETE").expect("no log");
        let path = world.dir.path().join(name);
        fs::remove_file(&path).ok();
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo");
        assert!(made.success());
        let found = agents::all(&config(&world).agents, Some("opencode"));
        assert_eq!(found.sessions, [], "{name}");
        let [err] = &found.unread[..] else { panic!("{name}: {:?}", found.unread) };
        assert_eq!((err.kind(), err.path()), (ErrorKind::NotAFile, Some(&*path)));
    }
}
