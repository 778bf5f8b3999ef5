//! An index on disk: a folder with an SQLite database and its checksum.
//!
//! The name of the folder ends in a number, which grows whenever the index is replaced. So a
//! process that has the old index open does not find a file of the new one under the same name. The
//! database has a write-ahead log: processes can read while another one writes, and if a process is
//! killed, what it last committed is not lost.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use epitome::Config;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{Result, SearchError, tables};

const DATABASE: &str = "index.db";
const CHECKSUM: &str = "checksum";
/// How long a process waits for a lock of SQLite, for example while another process recovers the
/// write-ahead log of a killed one.
const BUSY: Duration = Duration::from_secs(10);

/// The folder for the indexes of one scope, and the version that an index must have.
#[derive(Clone, Debug)]
pub(super) struct IndexLocation {
    /// The path of the folder, relative to epitome's cache folder. `folder` is the full path.
    name: String,
    folder: PathBuf,
    /// A hash of what an index depends on: the version of its tables, the version of epitome, and
    /// the rules for secrets.
    version: String,
}

/// An index on disk: its folder, and the number in the folder's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Index {
    folder: PathBuf,
    number: u64,
}

/// The lock for writing. It is released when this value is dropped, and when the process ends, even
/// if it is killed.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl IndexLocation {
    /// Makes the folder `name` in epitome's cache. On Unix, only its owner can read it.
    pub(super) fn new(config: &Config, name: String, version: String) -> Result<IndexLocation> {
        let folder = config.cache(&name)?;
        Ok(IndexLocation { name, folder, version })
    }

    /// Takes the lock; `None` if another process or thread has it.
    pub(super) fn lock(&self) -> Result<Option<Lock>> {
        let lock = private().create(true).open(self.folder.join("lock"));
        let file = lock.map_err(SearchError::Folder)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(err)) => Err(SearchError::Folder(err)),
        }
    }

    /// The newest index of this version; `None` if there is none.
    pub(super) fn index(&self) -> Result<Option<Index>> {
        let entries = fs::read_dir(&self.folder).map_err(SearchError::Folder)?;
        let indexes = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let number = name.strip_prefix(&self.version)?.strip_prefix('-')?.parse().ok()?;
            Some(Index { folder: entry.path(), number })
        });
        Ok(indexes.max_by_key(|index| index.number))
    }

    /// Deletes all indexes in this folder, of other versions, too, and makes an empty one. But if
    /// there is an index of this version that is not `old`, another process has already replaced
    /// `old`: then that index is returned.
    ///
    /// # Errors
    ///
    /// `Busy` if another process or thread has the lock; the errors of the disk.
    pub(super) fn replace(&self, config: &Config, old: Option<&Index>) -> Result<Index> {
        let _lock = self.lock()?.ok_or(SearchError::Busy)?;
        let current = self.index()?;
        if let Some(current) = &current
            && old != Some(current)
        {
            return Ok(current.clone());
        }
        let number = current.map_or(1, |current| current.number + 1);
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                fs::remove_dir_all(entry.path()).map_err(SearchError::Folder)?;
            }
        }
        let folder = config.cache(&format!("{}/{}-{number}", self.name, self.version))?;
        let index = Index { folder, number };
        index.create()?;
        Ok(index)
    }
}

impl Index {
    fn create(&self) -> Result<()> {
        // SQLite gives its other files the permissions of the database.
        let file = private().create_new(true).open(self.folder.join(DATABASE));
        file.map_err(SearchError::Folder)?;
        let connection = self.connect()?;
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        Ok(tables::create(&connection)?)
    }

    /// Opens a connection to the index.
    ///
    /// # Errors
    ///
    /// An error that becomes [`SearchError::Damaged`] if the file is missing or no valid index.
    pub(super) fn open(&self) -> rusqlite::Result<Connection> {
        let connection = self.connect()?;
        let sql = "SELECT 1 FROM pragma_user_version WHERE user_version = ?";
        connection.query_row(sql, [tables::VERSION], |_| Ok(()))?;
        Ok(connection)
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(self.folder.join(DATABASE), flags)?;
        connection.busy_timeout(BUSY)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        // A damaged file may contain anything, so SQLite must not trust its schema and must check
        // its pages. Temporary data and up to 8 MB of the index are kept in memory.
        connection.execute_batch(
            "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;
             PRAGMA temp_store = MEMORY; PRAGMA synchronous = NORMAL;
             PRAGMA cache_size = -8000;",
        )?;
        Ok(connection)
    }

    /// Deletes the checksum, because the index is about to be written.
    pub(super) fn unseal(&self) -> Result<()> {
        match fs::remove_file(self.folder.join(CHECKSUM)) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => Err(SearchError::Folder(err)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Writes the checksum of the index, after the last write. If another connection is reading, no
    /// checksum is written, because SQLite then cannot merge the write-ahead log into the database.
    pub(super) fn seal(&self, connection: Connection) -> Result<()> {
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let is_read = connection.query_row(sql, [], |row| row.get::<_, bool>(0))?;
        drop(connection);
        if is_read {
            return Ok(());
        }
        let sealed = self.checksum().and_then(|sum| {
            let new = self.folder.join("checksum.new");
            let mut file = private().create(true).truncate(true).open(&new)?;
            file.write_all(sum.as_bytes())?;
            fs::rename(new, self.folder.join(CHECKSUM))
        });
        sealed.map_err(SearchError::Folder)
    }

    fn checksum(&self) -> io::Result<String> {
        let file = File::open(self.folder.join(DATABASE))?;
        let sum = blake3::Hasher::new().update_reader(file)?.finalize();
        Ok(sum.to_hex().to_string())
    }

    /// Whether the index is undamaged, as its checksum shows. If there is no checksum, for example
    /// because the last update was killed, SQLite checks the database.
    pub(super) fn is_whole(&self) -> Result<bool> {
        match fs::read(self.folder.join(CHECKSUM)) {
            Ok(sealed) => Ok(sealed == self.checksum().map_err(SearchError::Folder)?.as_bytes()),
            Err(err) if err.kind() == io::ErrorKind::NotFound => {
                match self.passes_integrity_check() {
                    Ok(passes) => Ok(passes),
                    Err(err) if is_damage(&err) => Ok(false),
                    Err(err) => Err(err.into()),
                }
            }
            Err(err) => Err(SearchError::Folder(err)),
        }
    }

    /// Whether SQLite finds no damage in the database.
    fn passes_integrity_check(&self) -> rusqlite::Result<bool> {
        let sql = "PRAGMA integrity_check(1)";
        let result: String = self.open()?.query_row(sql, [], |row| row.get(0))?;
        Ok(result == "ok")
    }
}

/// Options to open a file for writing. On Unix, a file that they create can be read only by its
/// owner.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

impl From<rusqlite::Error> for SearchError {
    fn from(err: rusqlite::Error) -> SearchError {
        if is_damage(&err) { SearchError::Damaged } else { SearchError::Index(err) }
    }
}

/// Whether an error is taken as a sign that the index is damaged or missing.
fn is_damage(err: &rusqlite::Error) -> bool {
    use rusqlite::Error;

    match err {
        Error::FromSqlConversionFailure(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::InvalidColumnType(..)
        | Error::QueryReturnedNoRows
        | Error::SqlInputError { .. }
        | Error::Utf8Error(..) => true,
        err => matches!(
            err.sqlite_error_code(),
            // `Unknown`: a statement is not valid, for example because a table is missing. For an
            // undamaged index, all statements are valid.
            Some(
                ErrorCode::DatabaseCorrupt
                    | ErrorCode::NotADatabase
                    | ErrorCode::CannotOpen
                    | ErrorCode::Unknown
            )
        ),
    }
}
