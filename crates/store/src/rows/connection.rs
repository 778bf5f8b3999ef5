//! Opens connections to databases of other programs.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::regular;
use epitome_error::{Error, ErrorKind, FULL_DISK_HINT, Result};

/// How long to wait for another program that is writing.
const PATIENCE: Duration = Duration::from_secs(10);

/// The suffix of the write-ahead log: the file exists next to a database while a program uses it,
/// or after a program was killed, and contains changes that are not in the database yet.
const LOG: &str = "-wal";

/// The suffix of the index of the write-ahead log: a file that exists together with the log.
const INDEX: &str = "-shm";

/// The suffix of the rollback journal: the file exists while a program writes, or after a program
/// was killed. It contains the old pages of the database, with which an unfinished change is
/// undone.
const JOURNAL: &str = "-journal";

/// How many times a database is copied at most, if it changes while it is copied.
const COPIES: usize = 5;

/// Opens a database and runs `work` with the connection. `work` may run several times: if the
/// database changes in the meantime, the result is dropped.
///
/// SQLite would leave two files next to a database with a write-ahead log after reading it. To
/// avoid this, a database that is not in use is opened as immutable or, if its log is not empty,
/// copied first. If such a database changes in the meantime, it is opened again in the usual way. A
/// database that a killed program left in the middle of a commit is recovered in a copy.
///
/// # Errors
///
/// `NotAFile`, also if a log, index or journal next to the database is not a regular file;
/// `Locked`, `NoPermission` or `Unreadable` if the database cannot be opened; `Changed` if other
/// programs keep changing it while it is copied; `Disk` if the copy cannot be written; the errors
/// of `work`.
pub(super) fn reading<T>(database: &Path, work: impl Fn(&Connection) -> Result<T>) -> Result<T> {
    only_files(database)?;
    if let Some(before) = QuietDatabase::read(database) {
        let done = match before.log {
            None => uri(database).map(|uri| {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                    | OpenFlags::SQLITE_OPEN_URI
                    | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                work(&connect(uri.as_ref(), flags).map_err(|err| cannot_read(err, database))?)
            }),
            Some(_) => Some(reading_copy(database, &[LOG], &work)),
        };
        if let (Some(done), true) = (done, QuietDatabase::read(database) == Some(before)) {
            return done;
        }
    }
    match connected(database) {
        Ok(connection) => work(&connection),
        Err(err) if wants_recovery(&err) => recovered(database, &work),
        Err(err) => Err(cannot_read(err, database)),
    }
}

/// A connection that has read something, so that errors of opening appear here.
fn connected(database: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = connect(database, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
    Ok(connection)
}

/// Whether SQLite must write to the database before it can be read, because a program was killed
/// while writing to it.
fn wants_recovery(err: &rusqlite::Error) -> bool {
    const CODES: [i32; 3] = [
        rusqlite::ffi::SQLITE_READONLY_ROLLBACK,
        rusqlite::ffi::SQLITE_READONLY_RECOVERY,
        rusqlite::ffi::SQLITE_READONLY_CANTINIT,
    ];
    err.sqlite_error().is_some_and(|err| CODES.contains(&err.extended_code))
}

/// Copies a database, lets SQLite recover the copy, and runs `work` on the copy. The database
/// itself is unchanged.
fn recovered<T>(database: &Path, work: impl Fn(&Connection) -> Result<T>) -> Result<T> {
    for _ in 0..COPIES {
        let before = files(database);
        let done = reading_copy(database, &[LOG, JOURNAL], &work);
        // A copy that was made while a program wrote may mix two states: it is used only if nothing
        // changed.
        if files(database) == before {
            return done;
        }
    }
    Err(Error::new(ErrorKind::Changed, "the database changed while it was copied").at(database))
}

/// Copies a database, and those of its files with the suffixes `ends` that exist, and runs `work`
/// on the copy.
fn reading_copy<T>(
    database: &Path,
    ends: &[&str],
    work: impl Fn(&Connection) -> Result<T>,
) -> Result<T> {
    let copying = |err| Error::writing(err, "a copy of the database", database);
    let folder = tempfile::tempdir().map_err(copying)?;
    let copy = folder.path().join("copy");
    copied(database, &copy).map_err(copying)?;
    for end in ends {
        match copied(&sibling(database, end), &sibling(&copy, end)) {
            Err(err) if err.kind() == io::ErrorKind::NotFound => {}
            done => done.map_err(copying)?,
        }
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    work(&connect(&copy, flags).map_err(|err| cannot_read(err, database))?)
}

fn copied(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = regular::open(from)?;
    let mut to = regular::open_with(OpenOptions::new().write(true).create_new(true), to)?;
    io::copy(&mut from, &mut to).map(drop)
}

/// Returns an error if the database, its log, its index or its journal is not a regular file.
fn only_files(database: &Path) -> Result<()> {
    let paths = [LOG, INDEX, JOURNAL].map(|end| sibling(database, end));
    for path in std::iter::once(database).chain(paths.iter().map(PathBuf::as_path)) {
        if let Ok(meta) = fs::metadata(path) {
            regular::check(&meta, path)?;
        }
    }
    Ok(())
}

/// Opens a connection. No other function may do this, and [`only_files`] must have checked the
/// files before.
#[cfg_attr(not(test), expect(clippy::disallowed_methods, reason = "only files are opened"))]
fn connect(database: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(database, flags)
}

/// The time of the last write to a database or to the log next to it.
pub(super) fn written(database: &Path) -> SystemTime {
    let files = [database.to_owned(), sibling(database, LOG)];
    let times =
        files.iter().filter_map(|path| fs::metadata(path).and_then(|it| it.modified()).ok());
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Opens an existing database for writing. If a killed program left the database in the middle of a
/// commit, SQLite recovers it.
pub(super) fn open_to_write(database: &Path) -> Result<Connection> {
    only_files(database)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let failed = |err| cannot_write(err, database);
    let connection = connect(database, flags).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    Ok(connection)
}

/// The state of a database that no program is using.
#[derive(Debug, PartialEq, Eq)]
struct QuietDatabase {
    database: Stamp,
    /// The stamp of the write-ahead log, if that is not empty.
    log: Option<Stamp>,
}

/// The length and the time of modification of a file, by which a change is noticed.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
}

impl QuietDatabase {
    fn read(database: &Path) -> Option<QuietDatabase> {
        if [INDEX, JOURNAL].iter().any(|end| sibling(database, end).exists()) {
            return None;
        }
        let log = Stamp::read(&sibling(database, LOG)).filter(|log| log.len > 0);
        Some(QuietDatabase { database: Stamp::read(database)?, log })
    }
}

/// The stamps of a database, its log and its journal.
fn files(database: &Path) -> [Option<Stamp>; 3] {
    ["", LOG, JOURNAL].map(|end| Stamp::read(&sibling(database, end)))
}

impl Stamp {
    fn read(path: &Path) -> Option<Stamp> {
        let meta = fs::metadata(path).ok()?;
        Some(Stamp { len: meta.len(), modified: meta.modified().ok() })
    }
}

fn sibling(database: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(end);
    PathBuf::from(name)
}

/// The address of a database as an SQLite URI, to be opened as immutable; `None` if its path is not
/// Unicode: <https://www.sqlite.org/uri.html>.
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
    with_cause(Error::new(kind, "cannot read the database").at(database), err)
}

pub(super) fn cannot_write(err: rusqlite::Error, database: &Path) -> Error {
    let kind = kind_of(&err).unwrap_or(ErrorKind::Disk);
    with_cause(Error::new(kind, "cannot write the database").at(database), err)
}

fn with_cause(error: Error, cause: rusqlite::Error) -> Error {
    let error = match (error.kind(), cause.sqlite_error_code()) {
        (ErrorKind::Locked, _) => {
            error.with_hint("another program writes to it; nothing was changed")
        }
        (_, Some(ErrorCode::DiskFull)) => error.with_hint(FULL_DISK_HINT),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_disk_is_a_reason_to_free_space() {
        let hint = |code: i32| {
            let cause = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
            let err = cannot_write(cause, Path::new("/a.db"));
            (err.kind(), err.hint().map(str::to_owned))
        };
        let full = hint(rusqlite::ffi::SQLITE_FULL);
        assert_eq!(full, (ErrorKind::Disk, Some(FULL_DISK_HINT.to_owned())));
        assert_eq!(hint(rusqlite::ffi::SQLITE_IOERR), (ErrorKind::Disk, None));
    }
}
