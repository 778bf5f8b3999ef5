//! Conversations of Cursor are found, and reading them leaves no trace.

use std::fs;
use std::path::{Path, PathBuf};

use epitome::Config;
use epitome::agents::{self, SessionFile, SessionMatch};
use epitome::storage::SessionRow;
use epitome_model::{Source, Tokens};
use rusqlite::Connection;
use tempfile::TempDir;

const COMPOSER: &str = "d17e5a00-0000-4000-8000-000000000017";
const OLDER: &str = "90ad5c00-0000-4000-8000-000000000010";
const CHAT: &str = "5ce2be00-0000-4000-8000-000000000001";

/// A home folder.
struct World {
    dir: TempDir,
    config: Config,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().expect("a folder");
        let mut config = Config::from_home(dir.path());
        config.agents.config = dir.path().to_owned();
        World { dir, config }
    }

    fn path(&self, name: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        path
    }

    /// The editor's database with these documents.
    fn editor(&self, names: &[&str]) -> PathBuf {
        let path = self.path("Cursor/User/globalStorage/state.vscdb");
        let composers: Vec<Vec<u8>> = names.iter().map(|name| made(name)).collect();
        fixtures::stores::cursor_editor(&path, &composers);
        path
    }

    fn chat(&self) -> PathBuf {
        let path = self.path(&format!(".cursor/chats/0f0f/{CHAT}/store.db"));
        fixtures::stores::cursor_chat(&path, &made("chat"));
        path
    }

    fn transcript(&self, name: &str, of: &str) {
        let path =
            self.path(&format!(".cursor/projects/home-dev-project/agent-transcripts/{name}"));
        fs::write(path, made(of)).expect("a file");
    }

    fn sessions(&self) -> Vec<SessionFile> {
        agents::sessions(&self.config.agents, Some("cursor"))
    }

    fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.sessions().into_iter().map(|it| it.id).collect();
        ids.sort();
        ids
    }
}

fn made(name: &str) -> Vec<u8> {
    fixtures::case("cursor", name).bytes()
}

fn address(database: &Path, id: &str) -> PathBuf {
    PathBuf::from(format!("{}#{id}", database.display()))
}

fn bytes(address: &Path) -> String {
    let source = epitome::open(address).expect("a session");
    String::from_utf8(source.read(0..source.len()).into_owned()).expect("text")
}

/// The files of a folder, with the hashes of their bytes.
fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut files: Vec<(PathBuf, String)> = entries
        .map(|entry| entry.expect("an entry").path())
        .map(|path| {
            let bytes = fs::read(&path).expect("a file");
            (path, blake3::hash(&bytes).to_string())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn rows_of_every_version_are_read_to_the_byte() {
    let world = World::new();
    let chat = world.chat();
    assert_eq!(bytes(&chat), String::from_utf8(made("chat")).expect("text"));
    for (name, id) in [
        ("composer", COMPOSER),
        ("composer-summary", OLDER),
        ("composer-inline", "70b1f300-0000-4000-8000-000000000003"),
    ] {
        let world = World::new();
        let database = world.editor(&[name]);
        let expect = String::from_utf8(made(name)).expect("text");
        assert_eq!(bytes(&address(&database, id)), expect, "{name}");
        let session = epitome::storage::load(&address(&database, id), None).expect("Cursor's");
        assert_eq!((session.format.name, session.faults), ("cursor", Vec::new()), "{name}");
    }
}

#[test]
fn composers_from_before_the_table_of_headers_are_found_beside_those_in_it() {
    let world = World::new();
    let all = ["composer", "sub-agent", "composer-summary", "composer-inline"];
    let database = world.editor(&all);
    let found = world.sessions();
    let found_rows: Vec<(&str, Option<SessionRow>)> =
        found.iter().map(|it| (it.id.as_str(), it.row.clone())).collect();
    let tell = |title: &str, cwd: Option<&str>, context: Option<u64>| {
        let (title, cwd) = (Some(title.to_owned()), cwd.map(str::to_owned));
        Some(SessionRow { title, cwd, context: context.map(Tokens) })
    };
    let expect = [
        ("70b1f300-0000-4000-8000-000000000003", tell("Add a price for Mondays.", None, None)),
        (OLDER, tell("Read price.rs", None, None)),
        (COMPOSER, tell("Prices on Sundays", Some("/home/dev/project"), Some(18_422))),
    ];
    assert_eq!(found_rows, expect);
    let written = |it: &SessionFile| {
        let since = it.modified.duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        i64::try_from(since.as_millis()).expect("soon")
    };
    let times: Vec<i64> = found.iter().map(written).collect();
    assert_eq!(times, [1_735_000_000_000, 1_760_000_500_000, fixtures::stores::WRITTEN]);
    let sizes: Vec<u64> = found.iter().map(|it| it.size.0).collect();
    let size = |name: &str| {
        let text = String::from_utf8(made(name)).expect("text");
        let rows = text.lines().filter(|line| !line.contains("composerHeaders:"));
        let data = rows.map(|line| line.split_once(",\"data\":").expect("a row").1.len() - 1);
        data.sum::<usize>() as u64
    };
    let expect = ["composer-inline", "composer-summary", "composer"].map(size);
    assert_eq!(sizes, expect, "all of it, and no more");
    let part = address(&database, "task-toolu_07");
    assert_eq!(agents::companions(&address(&database, COMPOSER)), std::slice::from_ref(&part));
    assert_eq!(bytes(&part), String::from_utf8(made("sub-agent")).expect("text"));
}

#[test]
fn composers_of_which_nothing_was_said_are_no_sessions() {
    let world = World::new();
    let database = world.editor(&["composer-summary"]);
    let connection = Connection::open(&database).expect("a database");
    let insert = "INSERT INTO cursorDiskKV VALUES (?1, ?2)";
    for (key, value) in [
        ("composerData:empty", r#"{"fullConversationHeadersOnly":[],"conversation":[]}"#),
        ("composerData:broken", "{"),
        ("composerData:", "{}"),
        ("composerData", "{}"),
        ("bubbleId:nobody:1", "{}"),
    ] {
        connection.execute(insert, (key, value)).expect("a row");
    }
    assert_eq!(world.ids(), [OLDER]);
}

#[test]
fn damaged_rows_hide_no_other_session() {
    let world = World::new();
    let database = world.editor(&["composer", "composer-summary"]);
    let connection = Connection::open(&database).expect("a database");
    connection
        .execute_batch(
            "INSERT INTO cursorDiskKV VALUES ('composerData:torn', '{\"name\":');
            INSERT INTO cursorDiskKV VALUES ('bubbleId:torn:1', x'ff00');
            INSERT INTO cursorDiskKV VALUES ('composerData:odd',
                '{\"name\":7,\"lastUpdatedAt\":\"x\",\"contextTokensUsed\":\"many\",
                \"workspaceIdentifier\":{\"uri\":[]}}');
            INSERT INTO cursorDiskKV VALUES ('bubbleId:odd:1', '{');
            INSERT INTO composerHeaders (composerId, value) VALUES ('odd', '{');
            INSERT INTO cursorDiskKV VALUES ('composerData:null', NULL);
            INSERT INTO cursorDiskKV VALUES ('bubbleId:null:1', NULL);",
        )
        .expect("rows");
    assert_eq!(world.ids(), [OLDER, COMPOSER, "null", "odd", "torn"]);
    for id in ["null", "odd", "torn"] {
        let session = epitome::storage::load(&address(&database, id), None).expect("Cursor's");
        assert_eq!(session.transcript.context, [] as [usize; 0], "{id}");
    }
    assert_eq!(bytes(&address(&database, OLDER)).lines().count(), 8);
}

#[test]
fn a_transcript_is_found_where_nothing_says_more() {
    let world = World::new();
    world.chat();
    world.editor(&["composer"]);
    world.transcript(&format!("{CHAT}/{CHAT}.jsonl"), "transcript");
    world.transcript(&format!("{COMPOSER}/{COMPOSER}.jsonl"), "transcript");
    world.transcript("one/one.jsonl", "transcript");
    world.transcript("one/subagents/part.jsonl", "transcript");
    world.transcript("one.txt", "transcript-text");
    world.transcript("two.txt", "transcript-text");
    assert_eq!(world.ids(), [CHAT, COMPOSER, "one", "two"]);
    let found = world.sessions();
    let one = found.iter().find(|it| it.id == "one").expect("it is there");
    assert!(one.path.ends_with("one/one.jsonl"), "{}", one.path.display());
    let SessionMatch::File(two) = agents::find_session(&world.config.agents, "two", None) else {
        panic!("two")
    };
    assert_eq!(epitome::storage::load(&two, None).expect("Cursor's").format.name, "cursor");
}

#[test]
fn a_chat_is_meant_by_its_id_and_its_file() {
    let world = World::new();
    let chat = world.chat();
    let expect = SessionMatch::File(address(&chat, CHAT));
    for text in [CHAT, "5ce2be00", &chat.display().to_string()] {
        assert_eq!(agents::find_session(&world.config.agents, text, None), expect, "{text}");
    }
    let found = world.sessions();
    assert_eq!(found[0].row, None, "it is read for a list");
    let written = fs::metadata(&chat).and_then(|meta| meta.modified()).expect("a time");
    assert_eq!(found[0].modified, written);
}

#[test]
fn reading_changes_and_leaves_nothing() {
    let world = World::new();
    let (database, chat) = (world.editor(&["composer"]), world.chat());
    for path in [&database, &chat] {
        let folder = path.parent().expect("it has one");
        let before = files(folder);
        assert_eq!(before.len(), 1, "nobody uses it");
        world.sessions();
        let id = if path == &chat { CHAT } else { COMPOSER };
        bytes(&address(path, id));
        agents::companions(&address(path, id));
        assert_eq!(files(folder), before);
    }
}

#[test]
fn what_a_running_cursor_wrote_is_read_and_its_files_stay() {
    let world = World::new();
    let database = world.editor(&["composer"]);
    let cursor = Connection::open(&database).expect("a database");
    let write =
        "UPDATE cursorDiskKV SET value = replace(CAST(value AS TEXT), 'Sundays', 'Mondays')";
    cursor.execute(write, []).expect("an update");
    // Cursor is in the middle of a transaction.
    cursor.execute_batch("BEGIN IMMEDIATE; DELETE FROM cursorDiskKV").expect("a transaction");
    let folder = database.parent().expect("it has one");
    let kept = |files: Vec<(PathBuf, String)>| -> Vec<(PathBuf, String)> {
        // Readers coordinate in `-shm`; it holds no data.
        files
            .into_iter()
            .filter(|(path, _)| !path.display().to_string().ends_with("-shm"))
            .collect()
    };
    let before = files(folder);
    let lines = bytes(&address(&database, COMPOSER));
    assert!(lines.contains("Why are Mondays cheap?"), "{lines}");
    assert_eq!(world.ids(), [COMPOSER]);
    let after = files(folder);
    assert_eq!(after.len(), before.len(), "no file more");
    assert_eq!(kept(after), kept(before));
}

#[test]
fn what_a_killed_cursor_left_in_the_log_is_read_and_stays_there() {
    let world = World::new();
    let database = world.editor(&["composer"]);
    let cursor = Connection::open(&database).expect("a database");
    let write =
        "UPDATE cursorDiskKV SET value = replace(CAST(value AS TEXT), 'Sundays', 'Mondays')";
    cursor.execute(write, []).expect("an update");
    // The files on disk at this moment: the database and its log, but not the index of the log.
    let left = tempfile::tempdir().expect("a folder");
    for end in ["", "-wal"] {
        let from = format!("{}{end}", database.display());
        fs::copy(from, left.path().join(format!("state.vscdb{end}"))).expect("a copy");
    }
    let before = files(left.path());
    let lines = bytes(&address(&left.path().join("state.vscdb"), COMPOSER));
    assert!(lines.contains("Why are Mondays cheap?"), "{lines}");
    assert_eq!(files(left.path()), before);
}
