//! Connections to databases that belong to others.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::regular;
use epitome_error::{Error, ErrorKind, Result};

/// How long we wait for a program that is writing.
const PATIENCE: Duration = Duration::from_secs(10);

/// What stands beside a database while somebody uses it, or after somebody was killed: the log of
/// what is not in the database yet.
const LOG: &str = "-wal";

/// What is there while a program uses it: the index of the log.
const INDEX: &str = "-shm";

/// What is there while a program writes, or after one was killed: what a transaction may have to
/// put back.
const JOURNAL: &str = "-journal";

/// How often a database that changes meanwhile is copied.
const COPIES: usize = 5;

/// Reads a database.
///
/// Nothing is left next to one that no program uses: SQLite would leave two files there to read one
/// with a write-ahead log. So it is read as a file that does not change, and one that was left with
/// its log as a copy; and once more, as any other program would, if it did change. A database that
/// a killed program left in the middle of a commit is recovered in a copy. `work` may run twice.
///
/// # Errors
///
/// `NotAFile`, also when what is next to the database is no file; `Locked`, `NoPermission`,
/// `Unreadable`; `Changed` when other programs do not let it rest; what `work` returns.
pub(super) fn reading<T>(database: &Path, work: impl Fn(&Connection) -> Result<T>) -> Result<T> {
    only_files(database)?;
    let failed = |err| cannot_read(err, database);
    if let Some(before) = QuietDatabase::read(database) {
        let done = match before.log {
            None => uri(database).map(|uri| {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                    | OpenFlags::SQLITE_OPEN_URI
                    | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                work(&connect(uri.as_ref(), flags).map_err(failed)?)
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
        Err(err) => Err(failed(err)),
    }
}

/// A connection that has read something.
fn connected(database: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = connect(database, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
    Ok(connection)
}

/// Whether SQLite would have to write to the database before it can be read: a program was killed
/// while it wrote to it.
fn wants_recovery(err: &rusqlite::Error) -> bool {
    const CODES: [i32; 3] = [
        rusqlite::ffi::SQLITE_READONLY_ROLLBACK,
        rusqlite::ffi::SQLITE_READONLY_RECOVERY,
        rusqlite::ffi::SQLITE_READONLY_CANTINIT,
    ];
    err.sqlite_error().is_some_and(|err| CODES.contains(&err.extended_code))
}

/// Reads a copy of a database that SQLite recovers there. The database itself stays as it is.
fn recovered<T>(database: &Path, work: impl Fn(&Connection) -> Result<T>) -> Result<T> {
    for _ in 0..COPIES {
        let before = files(database);
        let done = reading_copy(database, &[LOG, JOURNAL], &work);
        // A copy made while a program wrote is of no state that the database ever had.
        if files(database) == before {
            return done;
        }
    }
    Err(Error::new(ErrorKind::Changed, "the database changed while it was copied").at(database))
}

/// Reads a copy of a database and of those files next to it that are there.
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

/// Refuses a database that is no file, or next to which SQLite would open what is none.
fn only_files(database: &Path) -> Result<()> {
    let paths = [LOG, INDEX, JOURNAL].map(|end| sibling(database, end));
    for path in std::iter::once(database).chain(paths.iter().map(PathBuf::as_path)) {
        if let Ok(meta) = fs::metadata(path) {
            regular::check(&meta, path)?;
        }
    }
    Ok(())
}

/// The one place where a connection is made; [`only_files`] has looked at what it opens.
#[cfg_attr(not(test), expect(clippy::disallowed_methods, reason = "only files are opened"))]
fn connect(database: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(database, flags)
}

/// When a database was last written: it, or the log beside it.
pub(super) fn written(database: &Path) -> SystemTime {
    let files = [database.to_owned(), sibling(database, LOG)];
    let times =
        files.iter().filter_map(|path| fs::metadata(path).and_then(|it| it.modified()).ok());
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Opens a database to change it; one that is not there is not made. SQLite recovers one that a
/// killed program left in the middle of a commit.
pub(super) fn open_to_write(database: &Path) -> Result<Connection> {
    only_files(database)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let failed = |err| cannot_write(err, database);
    let connection = connect(database, flags).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    Ok(connection)
}

/// A database that nobody uses, as it is now.
#[derive(Debug, PartialEq, Eq)]
struct QuietDatabase {
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

impl QuietDatabase {
    fn read(database: &Path) -> Option<QuietDatabase> {
        if [INDEX, JOURNAL].iter().any(|end| sibling(database, end).exists()) {
            return None;
        }
        let log = Stamp::read(&sibling(database, LOG)).filter(|log| log.len > 0);
        Some(QuietDatabase { database: Stamp::read(database)?, log })
    }
}

/// What tells that a database and the files next to it are what they were.
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
    with_cause(Error::new(kind, "cannot read the database").at(database), err)
}

pub(super) fn cannot_write(err: rusqlite::Error, database: &Path) -> Error {
    let kind = kind_of(&err).unwrap_or(ErrorKind::Disk);
    with_cause(Error::new(kind, "cannot write the database").at(database), err)
}

fn with_cause(error: Error, cause: rusqlite::Error) -> Error {
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
