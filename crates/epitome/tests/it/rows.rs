//! Sessions that are rows of a database: read as lines, replaced in one transaction.

mod opened;
mod recovered;
mod summaries;

use std::fs;
use std::path::{Path, PathBuf};

use epitome::archive::Archive;
use epitome::compaction::{PreparedCompaction, Way, apply};
use epitome::storage::{LockedSession, ReplaceReport, RestoreTarget, Spliced, Store, restore};
use epitome::{Config, ErrorKind, Loaded, agents};
use epitome_model::{Bytes, Source};
use epitome_passes::built_in;
use epitome_tokens::Estimate;
use rusqlite::Connection;
use tempfile::TempDir;

/// The tables of OpenCode 1.18.33, without the columns that are not used here.
const TABLES: &str = "
    PRAGMA journal_mode = WAL;
    CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text NOT NULL,
        title text NOT NULL, version text NOT NULL, revert text, time_created integer NOT NULL,
        time_updated integer NOT NULL);
    CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,
        time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
    CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
        time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
    CREATE TABLE event (id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL,
        type text NOT NULL, data text NOT NULL);
    INSERT INTO session VALUES ('ses_a', NULL, '/p', 'One', '1.18.33', NULL, 1, 5);
    INSERT INTO message VALUES ('msg_2', 'ses_a', 20, 21, '{\"role\":\"assistant\"}');
    INSERT INTO message VALUES ('msg_1', 'ses_a', 10, 11, '{\"role\": \"user\"}');
    INSERT INTO part VALUES
        ('prt_1', 'msg_1', 'ses_a', 1, 2, '{\"type\":\"text\",\"text\":\"Go\"}');
";

/// A database with one session, in a temporary folder.
struct World {
    dir: TempDir,
}

impl World {
    fn new() -> World {
        let world = World { dir: tempfile::tempdir().expect("a folder") };
        let connection = world.connection();
        connection.execute_batch(TABLES).expect("tables");
        for (id, tool) in [("prt_3", "bash"), ("prt_2", "read")] {
            let state = format!(
                r#""state":{{"status":"completed","input":{{"n" : 1.0}},"output":"{}","title":"t",
                "metadata":{{"preview":"{}"}},"time":{{}}}}"#,
                "a line of a file\\n".repeat(40),
                "shown".repeat(30),
            );
            let data = format!(r#"{{"type":"tool","tool":"{tool}","callID":"{id}",{state}}}"#);
            let data = data.replace('\n', " ");
            connection
                .execute("INSERT INTO part VALUES (?1, 'msg_2', 'ses_a', 3, 4, ?2)", [id, &data])
                .expect("a part");
        }
        let log = r#"{"part":{"type":"text","text":"Go, and all that was said"}}"#;
        connection
            .execute("INSERT INTO event VALUES ('e', 'ses_a', 0, 't', ?1)", [log])
            .expect("e");
        world
    }

    /// Adds another session with one message.
    fn with_session(self, id: &str, parent: Option<&str>) -> World {
        let connection = self.connection();
        let insert = "INSERT INTO session VALUES (?1, ?2, '/q', 'Two', '1', NULL, 2, 6)";
        connection.execute(insert, (id, parent)).expect("a session");
        self
    }

    fn database(&self) -> PathBuf {
        self.dir.path().join("opencode.db")
    }

    fn address(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("{}#{name}", self.database().display()))
    }

    fn connection(&self) -> Connection {
        Connection::open(self.database()).expect("a database")
    }

    fn store(&self) -> Store {
        Store::new(&self.dir.path().join("home"))
    }

    fn open(&self) -> LockedSession {
        self.store().open_for_edit(&self.database()).expect("a session")
    }

    /// The content of all tables, in order.
    fn all(&self) -> Vec<String> {
        let connection = self.connection();
        let mut all = Vec::new();
        for table in ["session", "message", "part", "event"] {
            let sql = format!("SELECT * FROM {table} ORDER BY id");
            let mut statement = connection.prepare(&sql).expect("a table");
            let columns = statement.column_count();
            let mut rows = statement.query([]).expect("rows");
            while let Some(row) = rows.next().expect("a row") {
                let values = (0..columns).map(|idx| format!("{:?}", row.get_ref(idx).expect("v")));
                all.push(values.collect::<Vec<_>>().join("|"));
            }
        }
        all
    }

    fn part(&self, id: &str) -> String {
        let sql = "SELECT data FROM part WHERE id = ?1";
        self.connection().query_row(sql, [id], |row| row.get(0)).expect("a part")
    }
}

fn text(source: &impl Source) -> String {
    String::from_utf8(source.read(0..source.len()).into_owned()).expect("text")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    names
}

/// Replaces a text in the session, as a compaction does.
fn replaced(session: &LockedSession, from: &str, to: &str) -> epitome::Result<ReplaceReport> {
    let lines = text(session.source()).replace(from, to);
    session.replace(|out| Ok(out.write_all(lines.as_bytes())?))
}

#[test]
fn rows_are_lines_with_their_own_json_in_the_order_of_the_conversation() {
    let world = World::new();
    let lines = text(&epitome::open(&world.database()).expect("a session"));
    let [one, two, three] = ["prt_1", "prt_2", "prt_3"].map(|id| world.part(id));
    let of = "\"directory\":\"/p\",\"title\":\"One\",\"version\":\"1.18.33\",\"time_created\":1";
    let expect = [
        format!(r#"{{"table":"session","id":"ses_a","parent_id":null,{of},"data":null}}"#),
        r#"{"table":"message","id":"msg_1","time_created":10,"data":{"role": "user"}}"#.into(),
        format!(r#"{{"table":"part","id":"prt_1","message_id":"msg_1","data":{one}}}"#),
        r#"{"table":"message","id":"msg_2","time_created":20,"data":{"role":"assistant"}}"#.into(),
        format!(r#"{{"table":"part","id":"prt_2","message_id":"msg_2","data":{two}}}"#),
        format!(r#"{{"table":"part","id":"prt_3","message_id":"msg_2","data":{three}}}"#),
    ];
    let expect: String = expect.iter().flat_map(|line| [line, "\n"]).collect();
    assert_eq!(lines, expect);
}

#[test]
fn reading_leaves_nothing_beside_a_database_that_nobody_uses() {
    let world = World::new();
    epitome::open(&world.database()).expect("a session");
    assert_eq!(names(world.dir.path()), ["opencode.db"]);
}

#[test]
fn rows_that_are_only_in_the_log_are_read() {
    let world = World::new();
    let user = world.connection();
    user.execute(
        "UPDATE part SET data = '{\"type\":\"text\",\"text\":\"New\"}' WHERE id = 'prt_1'",
        [],
    )
    .expect("an update");
    let lines = text(&epitome::open(&world.database()).expect("a session"));
    assert!(lines.contains("\"New\""), "{lines}");
}

#[test]
fn a_session_is_compacted_and_every_row_comes_back() {
    let world = World::new().with_session("ses_b", None);
    let before = world.all();
    let address = world.address("ses_a");
    let file = world.store().open_for_edit(&address).expect("a session");
    let loaded = Loaded::read(file.source(), None).expect("OpenCode's");
    let recipe = built_in("transcript").expect("a recipe");
    let planned = PreparedCompaction::new(&loaded, &recipe, &Estimate).expect("a plan");
    let archive = Archive::new(&world.dir.path().join("home"));
    let generation = apply(&planned, &file, &archive, &Estimate, jiff::Timestamp::UNIX_EPOCH);
    let key = epitome::storage::key_of(&loaded, file.path());
    assert_eq!(generation.expect("done").path, file.path());
    assert!(world.part("prt_2").contains("[output: 40 lines]"), "{}", world.part("prt_2"));
    let changed = world.all().iter().zip(&before).filter(|(now, was)| now != was).count();
    assert_eq!(changed, 2, "what is not edited stays");

    drop(file);
    let file = world.store().open_for_edit(&address).expect("a session");
    let generations = archive.generations(&key).expect("generations").whole;
    let blobs = archive.blobs(&key);
    let back =
        restore(file.source(), &generations, &blobs, RestoreTarget::Original).expect("a way back");
    let spliced = Spliced::new(file.source(), back.splices).expect("apart");
    file.replace(|out| spliced.copy_to(out)).expect("replaced");
    assert_eq!(world.all(), before);
    let mode: String = world
        .connection()
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .expect("a mode");
    assert_eq!(mode, "wal");
}

#[test]
fn a_row_that_changed_since_refuses_and_nothing_is_written() {
    let world = World::new();
    let session = world.open();
    world.connection().execute("UPDATE part SET data = '{}' WHERE id = 'prt_3'", []).expect("one");
    let before = world.all();
    let err = replaced(&session, "Go", "No").expect_err("it changed");
    assert_eq!(err.kind(), ErrorKind::Changed);
    assert_eq!(world.all(), before);
}

#[test]
fn a_row_that_is_gone_refuses_and_nothing_is_written() {
    let world = World::new();
    let session = world.open();
    world.connection().execute("DELETE FROM part WHERE id = 'prt_3'", []).expect("one");
    let before = world.all();
    let err = replaced(&session, "Go", "No").expect_err("it changed");
    assert_eq!(err.kind(), ErrorKind::Changed);
    assert_eq!(world.all(), before);
}

#[test]
fn rows_that_were_added_since_stay() {
    let world = World::new();
    let session = world.open();
    let insert = "INSERT INTO message VALUES ('msg_9', 'ses_a', 90, 91, '{}')";
    world.connection().execute(insert, []).expect("one");
    let line = "{\"table\":\"message\",\"id\":\"msg_9\",\"time_created\":90,\"data\":{}}\n";
    let done = replaced(&session, "Go", "No").expect("replaced");
    assert_eq!(done, ReplaceReport { carried: Bytes(line.len() as u64) });
    assert_eq!(world.part("prt_1"), r#"{"type":"text","text":"No"}"#);
    assert!(text(&epitome::open(&world.database()).expect("it")).ends_with(line));
}

#[test]
fn what_no_row_can_hold_is_refused_and_nothing_is_written() {
    let world = World::new();
    let before = world.all();
    for (from, to) in [
        ("\"id\":\"prt_1\"", "\"id\":\"prt_0\""),
        ("\"title\":\"One\"", "\"title\":\"Two\""),
        ("\"data\":null}\n", ""),
        ("{\"table\":\"part\"", "{}\n{\"table\":\"part\""),
    ] {
        let session = world.open();
        // The change in `from` and `to` is made together with a valid change of another line.
        let lines = text(session.source()).replace("Go", "No").replace(from, to);
        let done = session.replace(|out| Ok(out.write_all(lines.as_bytes())?));
        assert_eq!(done.expect_err(to).kind(), ErrorKind::Broken);
        assert_eq!(world.all(), before, "{to}");
    }
}

#[test]
fn an_error_of_the_writer_writes_nothing() {
    let world = World::new();
    let before = world.all();
    let session = world.open();
    let full = std::io::ErrorKind::StorageFull;
    let err = session.replace(|_| Err(std::io::Error::from(full).into())).expect_err("it fails");
    assert_eq!(err.kind(), ErrorKind::Disk);
    assert_eq!(world.all(), before);
}

#[test]
fn a_session_is_replaced_while_another_program_has_the_database_open() {
    let world = World::new();
    let user = world.connection();
    let reading = user.unchecked_transaction().expect("a transaction");
    let read = |sql: &str| reading.query_row(sql, [], |row| row.get::<_, String>(0)).expect("it");
    let sql = "SELECT data FROM part WHERE id = 'prt_1'";
    let old = read(sql);
    let session = world.open();
    assert_eq!(session.users(), []);
    replaced(&session, "Go", "No").expect("replaced");
    assert_eq!(read(sql), old, "whoever reads sees one state");
    drop(reading);
    assert_eq!(world.part("prt_1"), r#"{"type":"text","text":"No"}"#);
}

#[test]
fn one_epitome_at_a_time_works_on_a_session_by_whatever_address() {
    let world = World::new();
    let _session = world.open();
    let err = world.store().open_for_edit(&world.address("ses_a")).expect_err("it is locked");
    assert_eq!(err.kind(), ErrorKind::Locked);
}

#[test]
fn a_database_of_several_sessions_wants_a_name() {
    let world = World::new().with_session("ses_b", None).with_session("ses_c", Some("ses_a"));
    let err = epitome::open(&world.database()).expect_err("two sessions");
    assert_eq!(err.kind(), ErrorKind::UnknownFormat);
    assert!(err.to_string().starts_with("this is a database of 2 sessions"), "{err}");
    epitome::open(&world.address("ses_b")).expect("the second");
    epitome::open(&world.address("ses_c")).expect("a sub-agent's");
    let err = epitome::open(&world.address("ses_x")).expect_err("no such session");
    assert_eq!(err.kind(), ErrorKind::NotFound);
}

#[test]
fn a_session_brings_its_log_and_its_sub_agents_along() {
    let world =
        World::new().with_session("ses_c", Some("ses_a")).with_session("ses_d", Some("ses_c"));
    let expect = ["ses_a.events", "ses_c", "ses_c.events", "ses_d", "ses_d.events"];
    assert_eq!(agents::companions(&world.address("ses_a")), expect.map(|name| world.address(name)));
    let log = text(&epitome::open(&world.address("ses_a.events")).expect("the log"));
    assert_eq!(
        log,
        "{\"table\":\"event\",\"id\":\"e\",\"session\":\"ses_a\",\"seq\":0,\"type\":\"t\",\"data\":\
         {\"part\":{\"type\":\"text\",\"text\":\"Go, and all that was said\"}}}\n"
    );
}

#[test]
fn a_database_of_others_is_no_session() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("cookies.db");
    Connection::open(&path).and_then(|it| it.execute_batch("CREATE TABLE a (b)")).expect("one");
    let err = epitome::open(&path).expect_err("no session");
    assert_eq!(err.kind(), ErrorKind::UnknownFormat);
    assert_eq!(err.path(), Some(path.as_path()));
}

#[test]
fn all_sessions_of_a_database_are_found_by_id() {
    let world = World::new().with_session("ses_b", None).with_session("ses_c", Some("ses_a"));
    let mut config = Config::from_home(world.dir.path());
    let database = world.dir.path().join("opencode.db");
    config.agents.variables.insert("OPENCODE_DB".to_owned(), database.into());
    let found = agents::sessions(&config.agents, None);
    let ids: Vec<&str> = found.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["ses_a", "ses_b"]);
    assert_eq!(found[1].path, world.address("ses_b"));
    assert_eq!((found[1].agent, found[1].size), ("opencode", Bytes(0)));
    let meant = |text: &str| agents::find_session(&config.agents, text, None);
    assert_eq!(meant("ses_b"), agents::SessionMatch::File(world.address("ses_b")));
    assert!(matches!(meant("ses_"), agents::SessionMatch::AnyOf(found) if found.len() == 2));
    assert_eq!(meant("opencode"), agents::SessionMatch::Nothing);
    let named = world.address("ses_c");
    assert_eq!(meant(&named.display().to_string()), agents::SessionMatch::File(named));
    assert_eq!(meant(&world.address("ses_x").display().to_string()), agents::SessionMatch::Nothing);
}

#[test]
fn marks_are_written_and_taken_back_and_nothing_else_changes() {
    let world = World::new();
    let before = world.all();
    let parts = ["prt_2", "prt_3"].map(|id| world.part(id));
    let file = world.open();
    let loaded = Loaded::read(file.source(), None).expect("OpenCode's");
    let recipe = built_in("transcript").expect("a recipe");
    let planned =
        PreparedCompaction::in_way(Way::Native, &loaded, &recipe, &Estimate).expect("a plan");
    assert_eq!(planned.violations, []);
    let archive = Archive::new(&world.dir.path().join("home"));
    apply(&planned, &file, &archive, &Estimate, jiff::Timestamp::UNIX_EPOCH).expect("done");
    let key = epitome::storage::key_of(&loaded, file.path());
    drop(file);
    for (id, part) in ["prt_2", "prt_3"].into_iter().zip(parts) {
        let marked = part.replace(r#""time":{}"#, r#""time":{"compacted":1}"#);
        assert_eq!((world.part(id), marked != part), (marked, true));
    }
    let changed = world.all().iter().zip(&before).filter(|(now, was)| now != was).count();
    assert_eq!(changed, 2, "what is not marked stays");
    let file = world.open();
    let generations = archive.generations(&key).expect("generations").whole;
    let blobs = archive.blobs(&key);
    let back =
        restore(file.source(), &generations, &blobs, RestoreTarget::Original).expect("a way back");
    let spliced = Spliced::new(file.source(), back.splices).expect("apart");
    file.replace(|out| spliced.copy_to(out)).expect("replaced");
    assert_eq!(world.all(), before);
}
