//! The sessions for which faults are injected: recorded sessions of several agents, in their usual
//! places.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};

use crate::machine::Machine;

/// The maximum size of a session in bytes. Larger ones take more time and find no more violations.
const LARGEST: usize = 70_000;

/// A session with all its files.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    /// The session's files: the path below the home, and the content, of each. The first is the
    /// session's own file; others are files of sub-agents.
    pub(crate) files: Vec<(String, Vec<u8>)>,
    /// The argument of commands: a path below the home, or an id.
    pub(crate) target: String,
    /// Additional arguments of `compact`.
    pub(crate) more: &'static [&'static str],
}

/// The content of a session's files: the rows of a database, the bytes of another file; `None` for
/// a file that does not exist.
pub(crate) type State = BTreeMap<String, Option<Vec<u8>>>;

/// All subjects.
pub(crate) fn subjects() -> anyhow::Result<Vec<Subject>> {
    Ok(vec![
        pi("pi", &[]),
        pi("pi with a backup", &["--keep-backup"]),
        claude()?,
        codex("codex", &["--rewrite"]),
        codex("codex native", &["--native"]),
        compressed()?,
        gemini()?,
        opencode()?,
    ])
}

fn pi(name: &'static str, more: &'static [&'static str]) -> Subject {
    let path = concat!(
        ".pi/agent/sessions/--home-dev-project--/",
        "2026-11-21T01-33-56-752Z_01a1fbbd-1a90-75a1-9b38-7d1e8576fdb5.jsonl"
    );
    one(name, path, beginning("pi", "pricing"), more)
}

fn claude() -> anyhow::Result<Subject> {
    let fixture = fixtures::get("claude", "pricing");
    let id = "01194376-708b-4dbc-a469-b0821ec784c3";
    let path = format!(".claude/projects/-home-dev-project/{id}.jsonl");
    let mut subject = one("claude with a sub-agent", &path, beginning("claude", "pricing"), &[]);
    for path in fixture.sub_agents() {
        let name = path.file_name().context("a name")?.to_string_lossy();
        let name = format!(".claude/projects/-home-dev-project/{id}/subagents/{name}");
        subject.files.push((name, cut(&fs::read(&path)?)));
    }
    Ok(subject)
}

fn codex(name: &'static str, more: &'static [&'static str]) -> Subject {
    one(name, &format!("{ROLLOUT}.jsonl"), beginning("codex", "pricing"), more)
}

const ROLLOUT: &str = concat!(
    ".codex/sessions/2026/11/21/",
    "rollout-2026-11-21T05-37-06-01a1fc9b-bb93-70a1-b7c3-6fcf53d36849"
);

fn compressed() -> anyhow::Result<Subject> {
    let bytes = zstd::encode_all(&beginning("codex", "pricing")[..], 3)?;
    Ok(one("codex compressed", &format!("{ROLLOUT}.jsonl.zst"), bytes, &[]))
}

fn gemini() -> anyhow::Result<Subject> {
    // The path is split into pieces, because the source must not contain what looks like a folder
    // of this machine.
    let chats = concat!(".gemini/", "tmp", "/project/chats");
    let path = format!("{chats}/session-2026-11-21T05-39-dd0e649e.jsonl");
    let mut subject = one("gemini with a sub-agent", &path, beginning("gemini", "pricing"), &[]);
    for path in fixtures::get("gemini", "pricing").sub_agents() {
        let name = path.file_name().context("a name")?.to_string_lossy();
        let name = format!("{chats}/dd0e649e-4019-421d-822b-3c6e3a86a759/{name}");
        subject.files.push((name, fs::read(&path)?));
    }
    Ok(subject)
}

fn opencode() -> anyhow::Result<Subject> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("opencode.db");
    let mut session = beginning("opencode", "pricing");
    // A row is a whole line, so an incomplete line at the end is dropped.
    session.truncate(session.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1));
    fixtures::stores::opencode(&path, &session);
    let name = ".local/share/opencode/opencode.db";
    let mut subject = one("opencode", name, fs::read(&path)?, &["--rewrite"]);
    subject.target = "ses_e035190a9ffeoZdMFFuXIgg9wm".to_owned();
    Ok(subject)
}

fn one(name: &'static str, path: &str, bytes: Vec<u8>, more: &'static [&'static str]) -> Subject {
    Subject { name, files: vec![(path.to_owned(), bytes)], target: path.to_owned(), more }
}

/// The first records of a session, [`LARGEST`] bytes at most; at least one record.
fn beginning(agent: &str, name: &str) -> Vec<u8> {
    cut(&fixtures::get(agent, name).bytes())
}

fn cut(bytes: &[u8]) -> Vec<u8> {
    let mut taken = Vec::new();
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        if !taken.is_empty() && taken.len() + line.len() > LARGEST {
            break;
        }
        taken.extend_from_slice(line);
    }
    taken
}

impl Subject {
    /// Stores the session's files where its agent stores them.
    pub(crate) fn put(&self, machine: &Machine) -> anyhow::Result<()> {
        for (name, bytes) in &self.files {
            machine.write(name, bytes)?;
        }
        Ok(())
    }

    /// The command that compacts the session.
    pub(crate) fn compact(&self) -> Vec<&str> {
        let plain = ["--keep-turns=0", "--count=estimate", "--recipe=transcript"];
        let mut args = vec!["compact", &*self.target];
        args.extend(plain.iter().chain(self.more));
        args
    }

    /// The command that restores the session.
    pub(crate) fn restore(&self) -> Vec<&str> {
        // `--yes`: a session whose archive was imported is restored only after a confirmation.
        vec!["restore", &*self.target, "--yes"]
    }

    /// The current content of the session's files.
    pub(crate) fn state(&self, machine: &Machine) -> anyhow::Result<State> {
        let mut state = State::new();
        for (name, _) in &self.files {
            state.insert(name.clone(), content(&machine.home.join(name))?);
        }
        Ok(state)
    }
}

/// The content of a file: the rows of a database, the bytes of any other file; `None` if there is
/// no file.
pub(crate) fn content(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    if !path.exists() {
        Ok(None)
    } else if path.extension().is_some_and(|it| it == "db") {
        rows(path).map(Some)
    } else {
        Ok(Some(fs::read(path)?))
    }
}

/// Every row of every table, as text. Reading a database that a killed process left repairs it;
/// since epitome must do that itself, only a copy is read here.
fn rows(path: &Path) -> anyhow::Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join("copy.db");
    for end in ["", "-wal", "-journal"] {
        let from = format!("{}{end}", path.display());
        if Path::new(&from).exists() {
            fs::copy(from, folder.path().join(format!("copy.db{end}")))?;
        }
    }
    let connection = Connection::open_with_flags(&copy, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let mut text = String::new();
    for table in tables(&connection).unwrap_or_default() {
        // If the database is damaged, the rows before the damage are read. The error is written in
        // place of the other rows.
        if let Err(err) = table_rows(&connection, &table, &mut text) {
            text.push_str(&format!("{table}: {err}\n"));
        }
    }
    Ok(text.into_bytes())
}

fn tables(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let names = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name";
    connection.prepare(names)?.query_map([], |row| row.get(0))?.collect()
}

fn table_rows(connection: &Connection, table: &str, text: &mut String) -> rusqlite::Result<()> {
    let mut asked = connection.prepare(&format!("SELECT * FROM \"{table}\" ORDER BY 1"))?;
    let columns = asked.column_count();
    let mut found = asked.query([])?;
    while let Some(row) = found.next()? {
        let values = (0..columns).map(|column| row.get::<_, Value>(column));
        text.push_str(&format!("{table} {:?}\n", values.collect::<Result<Vec<_>, _>>()?));
    }
    Ok(())
}

/// A session that no task works on. Tasks need a second session in the archive: `collect` compacts
/// this one and then removes it.
pub(crate) fn gone() -> Subject {
    let path = concat!(
        ".pi/agent/sessions/--home-dev-other--/",
        "2026-11-21T01-37-31-614Z_01a1fbc0-61de-7264-983e-9d3840a59109.jsonl"
    );
    one("another session", path, beginning("pi", "own-compaction"), &[])
}
