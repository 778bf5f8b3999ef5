//! Where Codex keeps rollouts, compressed or not, and the lock by which it says that it writes one.
//!
//! `thread-writer-locks/<id>.lock` stands as long as Codex has the thread open, with a `flock` on
//! it; a Codex that was killed leaves the file, but not the lock.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::{files_in, is_jsonl, stem};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{User, users_of};

/// Another program may be writing to the database for so long.
const PATIENCE: Duration = Duration::from_secs(5);

/// `sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`, and `archived_sessions/` with none of
/// the folders.
pub(super) fn files(home: &Path) -> Vec<PathBuf> {
    let mut found = files_in(&home.join("archived_sessions"));
    let mut folders = vec![home.join("sessions")];
    for _ in 0..3 {
        folders = folders.iter().flat_map(|folder| files_in(folder)).collect();
    }
    found.extend(folders.iter().flat_map(|folder| files_in(folder)));
    found.retain(|path| stem(path).starts_with("rollout-") && is_rollout(path));
    found
}

/// `….jsonl`, or `….jsonl.zst`: Codex compresses what nobody has used for a while. Of both it reads
/// the plain one.
fn is_rollout(path: &Path) -> bool {
    let plain = path.with_extension("");
    is_jsonl(path)
        || path.extension().is_some_and(|it| it == "zst") && is_jsonl(&plain) && !plain.exists()
}

/// The id in the name of a rollout: what follows the time, `2026-11-20T23-12-03`.
pub(super) fn id(stem: &str) -> &str {
    const TIME: usize = "rollout-2026-11-20T23-12-03-".len();
    let stem = stem.strip_suffix(".jsonl").unwrap_or(stem);
    stem.get(TIME..).unwrap_or(stem)
}

/// Codex's own lock of a rollout, held by us while this lives.
#[derive(Debug)]
pub struct Held {
    path: PathBuf,
    _lock: File,
}

impl Drop for Held {
    fn drop(&mut self) {
        // As Codex does when it is done with a thread. What stays is an empty file.
        fs::remove_file(&self.path).ok();
    }
}

/// Takes the lock. Nothing when there is none to take: the file is no rollout below `home`, or
/// this Codex knows no such locks.
///
/// # Errors
///
/// Who has it.
pub(super) fn hold(home: &Path, session: &Path) -> std::result::Result<Option<Held>, Vec<User>> {
    let Some(path) = lock_of(home, session) else { return Ok(None) };
    let Ok(lock) = File::options().create(true).truncate(false).write(true).open(&path) else {
        return Ok(None);
    };
    match lock.try_lock() {
        Ok(()) => Ok(Some(Held { path, _lock: lock })),
        Err(TryLockError::WouldBlock) => {
            drop(lock);
            Err(holders(&path))
        }
        // A disk without locks has none of Codex's either.
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Who writes a rollout at this moment.
pub(super) fn users(home: &Path, session: &Path) -> Vec<User> {
    let Some(path) = lock_of(home, session) else { return Vec::new() };
    let Ok(lock) = File::open(&path) else { return Vec::new() };
    match lock.try_lock() {
        Err(TryLockError::WouldBlock) => {
            drop(lock);
            holders(&path)
        }
        Ok(()) | Err(TryLockError::Error(_)) => Vec::new(),
    }
}

/// What Codex shows of threads, with places in their rollouts.
const SHOWN: &str = "thread_history_1.sqlite";

/// Its tables, each with a column `thread_id`.
const TABLES: [&str; 4] =
    ["thread_turns", "thread_items", "thread_realtime_items", "thread_history_projection_state"];

/// Takes what Codex has made of a rollout out of the database that its screen shows. It knows
/// places in the file, and would wait for new turns behind the end of a shorter one; without it,
/// Codex reads the rollout again.
///
/// # Errors
///
/// `Disk` when the database cannot be written.
pub(super) fn forget(home: &Path, session: &Path) -> Result<()> {
    let Some(real) = rollout_below(home, session) else { return Ok(()) };
    let database = home.join(SHOWN);
    if !database.is_file() {
        return Ok(());
    }
    delete(&database, id(&stem(&real))).map_err(|err| {
        Error::new(ErrorKind::Disk, "cannot change what Codex shows of the session")
            .at(&database)
            .because(err)
            .with_hint("nothing was changed")
    })
}

fn delete(database: &Path, thread: &str) -> rusqlite::Result<()> {
    let mut connection = Connection::open_with_flags(
        database,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(PATIENCE)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for table in TABLES {
        let known = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1";
        if transaction.prepare(known)?.exists([table])? {
            let rows = format!("DELETE FROM {table} WHERE thread_id = ?1");
            transaction.execute(&rows, [thread])?;
        }
    }
    transaction.commit()
}

fn holders(path: &Path) -> Vec<User> {
    let mut users = users_of(path);
    if users.is_empty() {
        // It may run as someone else, whose files are hidden from us.
        users.push(User { pid: 0, name: "codex".to_owned() });
    }
    users
}

fn lock_of(home: &Path, session: &Path) -> Option<PathBuf> {
    let real = rollout_below(home, session)?;
    let locks = home.canonicalize().ok()?.join("thread-writer-locks");
    locks.is_dir().then(|| locks.join(format!("{}.lock", id(&stem(&real)))))
}

/// The rollout itself, if it is one of this Codex. A copy elsewhere bears the same id and is
/// nobody's.
fn rollout_below(home: &Path, session: &Path) -> Option<PathBuf> {
    let (real, home) = (session.canonicalize().ok()?, home.canonicalize().ok()?);
    let below = ["sessions", "archived_sessions"].iter().any(|it| real.starts_with(home.join(it)));
    (below && stem(&real).starts_with("rollout-")).then_some(real)
}

#[cfg(test)]
mod tests {
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
        // One table is missing, as it may be in another version.
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
        assert!(forget(home.path(), &copy).is_ok(), "a copy is nobody's");
    }
}
