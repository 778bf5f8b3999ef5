//! Connections to databases that belong to others.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{Error, ErrorKind, Result};

/// How long we wait for a program that is writing.
const PATIENCE: Duration = Duration::from_secs(10);

/// What stands beside a database while somebody uses it, or after somebody was killed: the log of
/// what is not in the database yet.
const LOG: &str = "-wal";

/// What stands there while somebody uses it: the index of the log, and what a transaction may have
/// to put back.
const USED: [&str; 2] = ["-shm", "-journal"];

/// Reads a database.
///
/// Nothing is left beside one that nobody uses: SQLite would leave two files there to read one
/// with a write-ahead log. So it is read as a file that does not change, and one that was left with
/// its log as a copy; and once more, as any other program would, if it did change. `work` may run
/// twice.
pub(super) fn reading<T>(database: &Path, work: impl Fn(&Connection) -> Result<T>) -> Result<T> {
    let failed = |err| cannot_read(err, database);
    if let Some(before) = Still::of(database) {
        let done = match before.log {
            None => uri(database).map(|uri| {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                    | OpenFlags::SQLITE_OPEN_URI
                    | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                work(&Connection::open_with_flags(uri, flags).map_err(failed)?)
            }),
            Some(_) => Some(reading_copy(database, &work)),
        };
        if let (Some(done), true) = (done, Still::of(database) == Some(before)) {
            return done;
        }
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    work(&connection)
}

/// Reads a database and its log elsewhere: the index of the log is made anew, which is a file.
fn reading_copy<T>(database: &Path, work: impl Fn(&Connection) -> Result<T>) -> Result<T> {
    let copying = |err| Error::writing(err, "a copy of the database", database);
    let folder = tempfile::tempdir().map_err(copying)?;
    let copy = folder.path().join("copy");
    fs::copy(database, &copy).map_err(copying)?;
    fs::copy(beside(database, LOG), beside(&copy, LOG)).map_err(copying)?;
    work(&Connection::open(&copy).map_err(|err| cannot_read(err, database))?)
}

/// When a database was last written: it, or the log beside it.
pub(super) fn written(database: &Path) -> SystemTime {
    let files = [database.to_owned(), beside(database, LOG)];
    let times =
        files.iter().filter_map(|path| fs::metadata(path).and_then(|it| it.modified()).ok());
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Opens a database to change it; one that is not there is not made.
pub(super) fn open_to_write(database: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let failed = |err| cannot_write(err, database);
    let connection = Connection::open_with_flags(database, flags).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    Ok(connection)
}

/// A database that nobody uses, as it is now.
#[derive(Debug, PartialEq, Eq)]
struct Still {
    database: Stamp,
    /// Of a log with something in it.
    log: Option<Stamp>,
}

/// What tells that a file is what it was.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
}

impl Still {
    fn of(database: &Path) -> Option<Still> {
        if USED.iter().any(|end| beside(database, end).exists()) {
            return None;
        }
        let log = Stamp::of(&beside(database, LOG)).filter(|log| log.len > 0);
        Some(Still { database: Stamp::of(database)?, log })
    }
}

impl Stamp {
    fn of(path: &Path) -> Option<Stamp> {
        let meta = fs::metadata(path).ok()?;
        Some(Stamp { len: meta.len(), modified: meta.modified().ok() })
    }
}

fn beside(database: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(end);
    PathBuf::from(name)
}

/// As <https://www.sqlite.org/uri.html> has it.
fn uri(database: &Path) -> Option<String> {
    let absolute = std::path::absolute(database).ok()?;
    let path = absolute.to_str()?.replace('\\', "/");
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "file:///" });
    for byte in path.bytes() {
        match byte {
            b'/' | b':' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    Some(uri)
}

pub(super) fn cannot_read(err: rusqlite::Error, database: &Path) -> Error {
    let kind = kind_of(&err).unwrap_or(ErrorKind::Unreadable);
    told(Error::new(kind, "cannot read the database").at(database), err)
}

pub(super) fn cannot_write(err: rusqlite::Error, database: &Path) -> Error {
    let kind = kind_of(&err).unwrap_or(ErrorKind::Disk);
    told(Error::new(kind, "cannot write the database").at(database), err)
}

fn told(error: Error, cause: rusqlite::Error) -> Error {
    let error = match error.kind() {
        ErrorKind::Locked => error.with_hint("another program writes to it; nothing was changed"),
        _ => error,
    };
    error.because(cause)
}

fn kind_of(err: &rusqlite::Error) -> Option<ErrorKind> {
    match err.sqlite_error_code()? {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Some(ErrorKind::Locked),
        ErrorCode::PermissionDenied
        | ErrorCode::ReadOnly
        | ErrorCode::AuthorizationForStatementDenied => Some(ErrorKind::NoPermission),
        ErrorCode::DiskFull | ErrorCode::SystemIoFailure => Some(ErrorKind::Disk),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::CannotOpen => {
            Some(ErrorKind::Unreadable)
        }
        _ => None,
    }
}
