//! Where Codex keeps rollouts, and the lock by which it says that it writes one.
//!
//! `thread-writer-locks/<id>.lock` stands as long as Codex has the thread open, with a `flock` on
//! it; a Codex that was killed leaves the file, but not the lock.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use super::{files_in, is_jsonl, stem};
use crate::store::{User, users_of};

/// `sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`, and `archived_sessions/` with none of
/// the folders.
pub(super) fn files(home: &Path) -> Vec<PathBuf> {
    let mut found = files_in(&home.join("archived_sessions"));
    let mut folders = vec![home.join("sessions")];
    for _ in 0..3 {
        folders = folders.iter().flat_map(|folder| files_in(folder)).collect();
    }
    found.extend(folders.iter().flat_map(|folder| files_in(folder)));
    found.retain(|path| is_jsonl(path) && stem(path).starts_with("rollout-"));
    found
}

/// The id in the name of a rollout: what follows the time, `2026-11-20T23-12-03`.
pub(super) fn id(stem: &str) -> &str {
    const TIME: usize = "rollout-2026-11-20T23-12-03-".len();
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
pub(super) fn hold(home: &Path, session: &Path) -> Result<Option<Held>, Vec<User>> {
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

fn holders(path: &Path) -> Vec<User> {
    let mut users = users_of(path);
    if users.is_empty() {
        // It may run as someone else, whose files are hidden from us.
        users.push(User { pid: 0, name: "codex".to_owned() });
    }
    users
}

fn lock_of(home: &Path, session: &Path) -> Option<PathBuf> {
    let (real, home) = (session.canonicalize().ok()?, home.canonicalize().ok()?);
    let locks = home.join("thread-writer-locks");
    // A copy elsewhere bears the same id and is nobody's.
    let below = ["sessions", "archived_sessions"].iter().any(|it| real.starts_with(home.join(it)));
    let name = stem(&real);
    (below && name.starts_with("rollout-") && locks.is_dir())
        .then(|| locks.join(format!("{}.lock", id(&name))))
}
