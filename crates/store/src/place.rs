//! Where a session is stored: a file of its own, rows of a database, or many files.
//!
//! The address of a session is a path: `FILE` (for many files, the main file), `DATABASE#SESSION`,
//! or `DATABASE` if the database contains only one session.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::compressed;
use crate::file_tree::FileTreeSession;
use crate::regular;
use crate::rows::{self, Rows};
use crate::source::FileSource;
use tracing::trace_span;

use epitome_error::{Error, ErrorKind, Result};

/// The magic number of an SQLite database: <https://www.sqlite.org/fileformat.html>.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// The storage of a session.
#[derive(Clone, Debug)]
pub enum Place {
    /// A file.
    File(PathBuf),
    /// Rows of a database.
    Rows(Rows),
    /// Many files, which are only read, never written.
    Spread(FileTreeSession),
}

impl Place {
    /// Parses an address. If a file with exactly this path exists, the address refers to that file,
    /// even if the address contains a `#`.
    pub fn parse(address: &Path) -> Place {
        let _span = trace_span!("place.resolve").entered();
        let rows = match rows::split(address) {
            Some((database, name)) if !address.exists() && is_database(&database) => {
                Rows::find(&database, name)
            }
            Some(_) | None if is_database(address) => Rows::only_session(address),
            Some(_) | None => None,
        };
        match (rows, FileTreeSession::from_path(address)) {
            (Some(rows), _) => Place::Rows(rows),
            (None, Some(spread)) => Place::Spread(spread),
            (None, None) => Place::File(address.to_owned()),
        }
    }

    /// The address with the canonical path of the file or the database.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NoPermission` and other errors of the operating system.
    pub fn real(&self) -> Result<PathBuf> {
        match self {
            Place::File(path) => real(path),
            Place::Rows(rows) => Ok(rows.real()?.address()),
            Place::Spread(spread) => real(spread.session()),
        }
    }

    /// Opens the session for reading. Rows, the many files of a session and compressed files are
    /// copied into one unnamed temporary file.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotAFile`, `NoPermission` or `Unreadable` if the session cannot be read;
    /// `Unreadable` also if its decompressed length is more than 1 GiB; `Locked` if a program is
    /// writing to its database; `UnknownFormat` for a database if the address names no session;
    /// `Unsupported` for a database in a build without SQLite; `Disk` if the temporary file cannot
    /// be written.
    pub fn open(&self) -> Result<FileSource> {
        match self {
            Place::File(path) => {
                let source = FileSource::open(path).map_err(|err| match err.kind() {
                    ErrorKind::NotFound => why_no_rows(path).unwrap_or(err),
                    _ => err,
                })?;
                if is_database(path) {
                    return Err(rows::several_sessions_error(path));
                }
                if compressed::is_compressed(&source)? {
                    Ok(compressed::open(&source, compressed::LIMIT)?.0)
                } else {
                    Ok(source)
                }
            }
            Place::Rows(rows) => rows.open(),
            Place::Spread(spread) => spread.open(),
        }
    }

    /// Whether the place contains a conversation, and not a log that is stored with one.
    pub fn is_conversation(&self) -> bool {
        match self {
            Place::File(_) | Place::Spread(_) => true,
            Place::Rows(rows) => rows.is_conversation(),
        }
    }

    /// Checks that sessions at this place can be written. Whether their format can be written is
    /// checked elsewhere.
    ///
    /// # Errors
    ///
    /// `ReadOnly`, with the reason.
    pub fn check_writable(&self) -> Result<()> {
        match self {
            Place::File(_) | Place::Rows(_) => Ok(()),
            Place::Spread(spread) => Err(spread.only_read()),
        }
    }

    /// Whether the session exists. False if a path cannot be checked, true if a database cannot be
    /// read.
    pub fn exists(&self) -> bool {
        match self {
            Place::File(path) => path.exists(),
            Place::Rows(rows) => rows.exists(),
            Place::Spread(spread) => spread.session().exists(),
        }
    }
}

/// A path without symbolic links.
fn real(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|err| Error::reading(err, "the session", path))
}

/// Opens the session at an address for reading.
///
/// # Errors
///
/// The errors of [`Place::open`].
pub fn open(address: &Path) -> Result<FileSource> {
    Place::parse(address).open()
}

/// Whether the session at an address exists.
pub fn exists(address: &Path) -> bool {
    Place::parse(address).exists()
}

/// The error for an address of rows that were not found although the database exists: the database
/// does not contain them, it cannot be read, or it could not be read a moment ago. `None` if the
/// address names no rows, or if there is no database.
fn why_no_rows(address: &Path) -> Option<Error> {
    let (database, name) = rows::split(address)?;
    let err = match begins_as_database(&database) {
        Ok(false) => return None,
        Err(err) => {
            let err = Error::reading(err, "the database", &database);
            let is_none = matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotAFile);
            return (!is_none).then_some(err);
        }
        Ok(true) => match rows::sessions(&database) {
            Ok((_, sessions)) if sessions.iter().any(|it| it.id == *root_of(name)) => {
                Error::new(ErrorKind::Unreadable, "the session could not be read a moment ago")
            }
            Ok(_) => {
                let what = format!("the database holds no session `{name}`");
                Error::new(ErrorKind::NotFound, what)
            }
            Err(err) => err,
        },
    };
    Some(err.with_default_path(&database))
}

/// The id of the session in the name of rows: `ID` in `ID.events`.
fn root_of(name: &str) -> &str {
    name.split_once('.').map_or(name, |(id, _)| id)
}

/// Whether a file is an SQLite database; false if it cannot be read.
pub fn is_database(path: &Path) -> bool {
    begins_as_database(path).unwrap_or(false)
}

fn begins_as_database(path: &Path) -> io::Result<bool> {
    let mut head = [0; MAGIC.len()];
    match regular::open(path)?.read_exact(&mut head) {
        Ok(()) => Ok(head == *MAGIC),
        Err(err) if err.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(err) => Err(err),
    }
}
