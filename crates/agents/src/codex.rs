//! Codex: its session files, called rollouts, compressed or not, in
//! `sessions/<year>/<month>/<day>/` and `archived_sessions/`, and the lock that Codex holds while
//! it writes a rollout.
//!
//! `thread-writer-locks/<id>.lock` exists while Codex has the session open, with a `flock` on it; a
//! Codex that was killed leaves the file, but not the lock.

use std::collections::HashSet;
use std::fs::{self, TryLockError};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::Format;
use epitome_formats::codex::{self, Origin, origin};
use epitome_store::store::{User, users_of};
use epitome_store::{regular, rows};
use rayon::prelude::*;

use crate::agent::{
    AdditionTarget, AddressTarget, Agent, AgentLock, HookTarget, NewSession, Resume,
};
use crate::environment::Environment;
use crate::model_address::{self, ModelAddress};
use crate::session_file::{SessionFile, is_jsonl, stem};
use crate::unread::UnreadErrors;

/// Codex, as an [`Agent`].
pub(crate) struct Codex;

impl Agent for Codex {
    fn format(&self) -> &'static Format {
        &codex::FORMAT
    }

    fn variables(&self) -> &'static [&'static str] {
        &["CODEX_HOME"]
    }

    fn model_address(&self) -> Option<ModelAddress> {
        Some(model_address::CODEX)
    }

    fn address_settings(&self) -> Option<AddressTarget> {
        Some(AddressTarget {
            settings: &codex::ADDRESS,
            folder: |environment| Codex.folder(environment),
        })
    }

    fn folder(&self, environment: &Environment) -> PathBuf {
        environment.folder("CODEX_HOME", environment.home.join(".codex"))
    }

    /// All rollouts, except those of sub-agents whose parent is one of the rollouts found.
    fn sessions(&self, environment: &Environment, unread: &mut UnreadErrors) -> Vec<SessionFile> {
        let mut found = files(&self.folder(environment), unread);
        let ids: HashSet<String> = found.iter().map(|path| id(&stem(path)).to_owned()).collect();
        // A rollout whose first line cannot be read is listed. Opening it later gives the error.
        let origins = found.par_iter().map(|path| origin_of(path).ok().flatten());
        let origins: Vec<Option<Origin>> = origins.collect();
        let mut origins = origins.into_iter();
        found.retain(|_| {
            let parent = origins.next().flatten().and_then(|origin| origin.parent);
            !parent.is_some_and(|parent| ids.contains(&*parent))
        });
        SessionFile::of_files(found, self.name(), id, unread)
    }

    fn sub_agent_sessions(
        &self,
        environment: &Environment,
        unread: &mut UnreadErrors,
    ) -> Vec<SessionFile> {
        let found = files(&self.folder(environment), unread);
        SessionFile::of_files(found, self.name(), id, unread)
    }

    fn sub_agents(&self, session: &Path, unread: &mut UnreadErrors) -> Vec<PathBuf> {
        sub_agents(session, unread)
    }

    fn part_id(&self, _: &str, part: &Path) -> String {
        id(&stem(part)).to_owned()
    }

    fn users(&self, environment: &Environment, session: &Path) -> Vec<User> {
        users(&self.folder(environment), session)
    }

    fn lock(
        &self,
        environment: &Environment,
        session: &Path,
    ) -> std::result::Result<Option<AgentLock>, Vec<User>> {
        match lock_of(&self.folder(environment), session) {
            Some(path) => AgentLock::take(path).map_err(|path| holders(&path)),
            None => Ok(None),
        }
    }

    fn forget(&self, environment: &Environment, session: &Path) -> Result<()> {
        forget(&self.folder(environment), session)
    }

    fn check_places(&self, session: &Path, from: u64) -> Result<()> {
        check_places(session, from)
    }

    fn hook(&self) -> Option<HookTarget> {
        Some(HookTarget { hook: &codex::HOOK, settings: |environment| Codex.folder(environment) })
    }

    fn mcp(&self) -> Option<AdditionTarget> {
        Some(AdditionTarget {
            addition: &codex::MCP,
            settings: |environment| Codex.folder(environment),
        })
    }

    fn command(&self) -> Option<AdditionTarget> {
        Some(AdditionTarget {
            addition: &codex::COMMAND,
            settings: |environment| Codex.folder(environment),
        })
    }

    fn resume(&self) -> Option<Resume> {
        Some(Resume { command: &["codex", "resume"], place })
    }
}

fn place(environment: &Environment, new: &NewSession<'_>) -> Result<PathBuf> {
    let day = new.time.strftime("%Y/%m/%d").to_string();
    let name = format!("rollout-{}-{}.jsonl", new.time.strftime("%Y-%m-%dT%H-%M-%S"), new.id);
    Ok(Codex.folder(environment).join("sessions").join(day).join(name))
}

/// The rollouts in the folders `sessions/<year>/<month>/<day>` and `archived_sessions` of an
/// installation of Codex.
fn files(home: &Path, unread: &mut UnreadErrors) -> Vec<PathBuf> {
    let mut found = unread.files_in(&home.join("archived_sessions"));
    let mut folders = vec![home.join("sessions")];
    for _ in 0..3 {
        folders = folders.iter().flat_map(|folder| unread.files_in(folder)).collect();
    }
    found.extend(folders.iter().flat_map(|folder| unread.files_in(folder)));
    found.retain(|path| stem(path).starts_with("rollout-") && is_rollout(path));
    found
}

/// Whether a file is a rollout: `….jsonl`, or `….jsonl.zst`, because Codex compresses rollouts that
/// were not used for a while. Codex reads the plain file if both exist, so then only that is a
/// rollout.
fn is_rollout(path: &Path) -> bool {
    let plain = path.with_extension("");
    is_jsonl(path)
        || path.extension().is_some_and(|it| it == "zst") && is_jsonl(&plain) && !plain.exists()
}

/// The id of a rollout: the part of its name after the time.
fn id(stem: &str) -> &str {
    const TIME: usize = "rollout-2026-11-20T23-12-03-".len();
    let stem = stem.strip_suffix(".jsonl").unwrap_or(stem);
    stem.get(TIME..).unwrap_or(stem)
}

/// The rollouts of the sub-agents of a rollout, and of their sub-agents. The installation of Codex
/// that contains the rollout is searched; for a rollout outside of an installation, its folder.
fn sub_agents(session: &Path, unread: &mut UnreadErrors) -> Vec<PathBuf> {
    let name = stem(session).into_owned();
    if !name.starts_with("rollout-") {
        return Vec::new();
    }
    // Only rollouts from the day in this rollout's name to the day after its last write are
    // searched. If the last write is before the day in the name, the modification time is wrong,
    // and there is no last day.
    let written = fs::metadata(session).and_then(|meta| meta.modified()).ok();
    let last = written.and_then(day_after).filter(|last| **last >= *day(&name));
    let origins: Vec<(PathBuf, Result<Option<Origin>>)> = around(session, unread)
        .into_par_iter()
        .filter(|path| stem(path) != name)
        .filter(|path| {
            let stem = stem(path);
            day(&stem) >= day(&name) && last.as_deref().is_none_or(|last| day(&stem) <= last)
        })
        .map(|path| {
            let origin = origin_of(&path);
            (path, origin)
        })
        .collect();
    let mut others: Vec<(PathBuf, Box<str>)> = Vec::new();
    for (path, origin) in origins {
        match origin {
            Ok(origin) => others.extend(origin.and_then(|it| it.parent).map(|it| (path, it))),
            Err(err) => unread.add(err),
        }
    }
    others.sort();
    let mut known = HashSet::from([id(&name).to_owned()]);
    let mut found = Vec::new();
    loop {
        let (ours, rest): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|(_, parent)| known.contains(&**parent));
        if ours.is_empty() {
            return found;
        }
        known.extend(ours.iter().map(|(path, _)| id(&stem(path)).to_owned()));
        found.extend(ours.into_iter().map(|(path, _)| path));
        others = rest;
    }
}

/// Returns an error if a change of a rollout from byte `from` on would change the beginning of a
/// fork: a fork records how many bytes of the rollout it begins with.
///
/// # Errors
///
/// `Refused`, with a message that names the fork; `NoPermission` or `Unreadable` if it is unknown
/// whether there is one.
fn check_places(session: &Path, from: u64) -> Result<()> {
    let name = stem(session).into_owned();
    if !name.starts_with("rollout-") {
        return Ok(());
    }
    let mut unread = UnreadErrors::default();
    let others = around(session, &mut unread);
    if let Some(err) = unread.into_errors().into_iter().next() {
        return Err(err);
    }
    let next = others.par_iter().find_map_any(|path| match origin_of(path) {
        Ok(origin) => {
            let base = origin.and_then(|origin| origin.base);
            let is_ours = base.is_some_and(|it| *it.rollout == *id(&name) && it.bytes > from);
            is_ours.then(|| Ok(path.clone()))
        }
        Err(err) => Some(Err(err)),
    });
    match next.transpose()? {
        Some(other) => {
            let what = format!("another session goes on from this one: {}", other.display());
            Err(Error::new(ErrorKind::Refused, what)
                .at(session)
                .with_hint("Codex finds its beginning by places in this file, which would change"))
        }
        None => Ok(()),
    }
}

/// All rollouts of the installation of Codex that contains a session. For a file outside of any
/// installation, the rollouts in the same folder.
fn around(session: &Path, unread: &mut UnreadErrors) -> Vec<PathBuf> {
    let real = session.canonicalize().unwrap_or_else(|_| session.to_owned());
    let root = real.ancestors().find(|path| {
        path.file_name().is_some_and(|name| name == "sessions" || name == "archived_sessions")
    });
    match root.and_then(Path::parent) {
        Some(home) => files(home, unread),
        None => {
            let mut rollouts =
                real.parent().map(|folder| unread.files_in(folder)).unwrap_or_default();
            rollouts.retain(|path| stem(path).starts_with("rollout-") && is_rollout(path));
            rollouts
        }
    }
}

/// The sessions that the first line of a rollout refers to: the one that started it as a sub-agent,
/// and the rollout that it continues. `None` if the file is missing or damaged, or if its first
/// line is not that of a rollout.
///
/// # Errors
///
/// `NoPermission` or `Unreadable` if the file cannot be read.
fn origin_of(path: &Path) -> Result<Option<Origin>> {
    let line = regular::open(path).and_then(|file| {
        if is_jsonl(path) {
            first_line(file)
        } else {
            zstd::Decoder::new(file).and_then(first_line)
        }
    });
    match line {
        Ok(line) => Ok(origin(&line)),
        Err(err) => {
            let is_damaged = is_compression_error(&err) && !is_jsonl(path);
            let err = Error::reading(err, "the file", path);
            let is_none = matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotAFile);
            if is_none || is_damaged { Ok(None) } else { Err(err) }
        }
    }
}

/// Whether an error means that the bytes are not valid zstd data. Such an error has no error number
/// of the operating system, and contains no [`Error`], as an error of [`regular::open`] does.
fn is_compression_error(err: &std::io::Error) -> bool {
    err.raw_os_error().is_none() && err.get_ref().is_none_or(|it| !it.is::<Error>())
}

/// The maximum number of bytes that are read of the first line of a rollout. The line is long,
/// because it contains Codex's instructions.
const FIRST_LINE: u64 = 4 << 20;

fn first_line(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut line = Vec::new();
    BufReader::new(from.take(FIRST_LINE)).read_until(b'\n', &mut line)?;
    Ok(line)
}

/// The beginning of a rollout's name, up to and including the day.
fn day(stem: &str) -> &str {
    stem.get(.."rollout-2026-11-20".len()).unwrap_or(stem)
}

/// The beginning of the name of a rollout from the day after `time`, in UTC. The days in the names
/// are local, and may be one day ahead of UTC.
fn day_after(time: SystemTime) -> Option<String> {
    let time = jiff::Timestamp::try_from(time).ok()?.to_zoned(jiff::tz::TimeZone::UTC);
    Some(format!("rollout-{}", time.tomorrow().ok()?.date()))
}

/// The processes that hold Codex's lock on a rollout.
fn users(home: &Path, session: &Path) -> Vec<User> {
    let Some(path) = lock_of(home, session) else { return Vec::new() };
    let Ok(lock) = regular::open(&path) else { return Vec::new() };
    match lock.try_lock() {
        Err(TryLockError::WouldBlock) => {
            drop(lock);
            holders(&path)
        }
        Ok(()) | Err(TryLockError::Error(_)) => Vec::new(),
    }
}

/// The database from which Codex displays sessions. It has offsets into their rollouts.
const SHOWN: &str = "thread_history_1.sqlite";

/// The tables of that database, each with a column `thread_id`.
const TABLES: [&str; 4] =
    ["thread_turns", "thread_items", "thread_realtime_items", "thread_history_projection_state"];

/// Deletes the rows of a rollout from [`SHOWN`]. The rows contain offsets into the file: after the
/// file was shortened, Codex would wait for new turns beyond its end. Without the rows, Codex reads
/// the rollout again.
///
/// # Errors
///
/// `Disk` when the database cannot be written.
fn forget(home: &Path, session: &Path) -> Result<()> {
    let Some(rollout) = rollout_below(home, session) else { return Ok(()) };
    let database = home.join(SHOWN);
    if !database.is_file() {
        return Ok(());
    }
    rows::delete(&database, &TABLES, "thread_id", id(&stem(&rollout))).map_err(|err| {
        Error::new(ErrorKind::Disk, "cannot change what Codex shows of the session")
            .at(&database)
            .with_hint("nothing was changed")
            .because(err)
    })
}

fn holders(path: &Path) -> Vec<User> {
    let mut users = users_of(path);
    if users.is_empty() {
        // There is a holder, which the system does not show if it is another user's process.
        users.push(User { pid: 0, name: "codex".to_owned(), writes: true });
    }
    users
}

fn lock_of(home: &Path, session: &Path) -> Option<PathBuf> {
    let real = rollout_below(home, session)?;
    let locks = home.canonicalize().ok()?.join("thread-writer-locks");
    locks.is_dir().then(|| locks.join(format!("{}.lock", id(&stem(&real)))))
}

/// The real path of a rollout of this installation; `None` for any other file. A copy elsewhere has
/// the same id, but Codex does not use it.
fn rollout_below(home: &Path, session: &Path) -> Option<PathBuf> {
    let real = session.canonicalize().ok()?;
    let home = home.canonicalize().ok()?;
    let below = ["sessions", "archived_sessions"].iter().any(|it| real.starts_with(home.join(it)));
    (below && stem(&real).starts_with("rollout-")).then_some(real)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn what_codex_shows_of_one_thread_is_forgotten() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("sessions/2026/01/01");
        fs::create_dir_all(&folder).expect("a folder");
        let rollout = folder.join("rollout-2026-01-01T00-00-00-one.jsonl");
        fs::write(&rollout, "").expect("a file");
        assert!(forget(home.path(), &rollout).is_ok(), "there is no database yet");
        let database = Connection::open(home.path().join(SHOWN)).expect("a database");
        // One table is missing, as in another version of Codex.
        for table in &TABLES[..3] {
            let made = format!(
                "CREATE TABLE {table} (thread_id TEXT, at INTEGER);
                 INSERT INTO {table} VALUES ('one', 1), ('other', 2), ('one', 3);"
            );
            database.execute_batch(&made).expect("a table");
        }
        forget(home.path(), &rollout).expect("it is written");
        for table in &TABLES[..3] {
            let left = format!("SELECT group_concat(thread_id || at) FROM {table}");
            let left: String = database.query_row(&left, [], |row| row.get(0)).expect("a row");
            assert_eq!(left, "other2", "{table}");
        }
        fs::write(home.path().join(SHOWN), "no database").expect("a file");
        let refused = forget(home.path(), &rollout).map_err(|err| err.kind());
        assert_eq!(refused, Err(ErrorKind::Disk));
        let copy = home.path().join("rollout-2026-01-01T00-00-00-one.jsonl");
        fs::write(&copy, "").expect("a file");
        assert!(forget(home.path(), &copy).is_ok(), "Codex does not use a copy");
    }
}
