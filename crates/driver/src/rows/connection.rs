//! Connections to databases that belong to others.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{Error, ErrorKind, Result};

/// How long we wait for a program that is writing.
const PATIENCE: Duration = Duration::from_secs(10);

/// Files that stand beside a database while somebody uses it, or after somebody was killed.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Reads a database.
///
/// Nothing is left beside one that nobody uses: SQLite would leave two files there to read one
/// with a write-ahead log. So it is read as a file that does not change, and once more, as any
/// other program would, if it did change. `work` may run twice.
pub(super) fn reading<T>(database: &Path, work: impl Fn(&Connection) -> Result<T>) -> Result<T> {
    let failed = |err| cannot_read(err, database);
    if let Some(before) = Still::of(database)
        && let Some(uri) = uri(database)
    {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(uri, flags).map_err(failed)?;
        let done = work(&connection);
        if Still::of(database) == Some(before) {
            return done;
        }
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    work(&connection)
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
    len: u64,
    modified: Option<SystemTime>,
}

impl Still {
    fn of(database: &Path) -> Option<Still> {
        if BESIDE.iter().any(|end| beside(database, end).exists()) {
            return None;
        }
        let meta = fs::metadata(database).ok()?;
        Some(Still { len: meta.len(), modified: meta.modified().ok() })
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
