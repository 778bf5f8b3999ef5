//! Where a session stands: a file of its own, or rows of a database.
//!
//! Either is named by an address, which is a path: `FILE`, or `DATABASE#SESSION`, or a database
//! that holds one session alone.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::compressed;
use crate::regular;
use crate::rows::{self, Rows};
use crate::source::FileSource;
use crate::spread::Spread;
use epitome_error::{Error, ErrorKind, Result};

/// What an SQLite database begins with: <https://www.sqlite.org/fileformat.html>.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Where a session stands.
#[derive(Clone, Debug)]
pub enum Place {
    /// A file.
    File(PathBuf),
    /// Rows of a database.
    Rows(Rows),
    /// Many files, which are only read.
    Spread(Spread),
}

impl Place {
    /// What an address means. A file of that very name goes before rows.
    pub fn of(address: &Path) -> Place {
        let rows = match rows::split(address) {
            Some((database, name)) if !address.exists() && is_database(&database) => {
                Rows::named(&database, name)
            }
            Some(_) | None if is_database(address) => Rows::alone(address),
            Some(_) | None => None,
        };
        match (rows, Spread::of(address)) {
            (Some(rows), _) => Place::Rows(rows),
            (None, Some(spread)) => Place::Spread(spread),
            (None, None) => Place::File(address.to_owned()),
        }
    }

    /// The address, by the real path of the file or the database.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NoPermission` and what else a system says of paths.
    pub fn real(&self) -> Result<PathBuf> {
        let real = |path: &Path| {
            path.canonicalize().map_err(|err| Error::reading(err, "the session", path))
        };
        match self {
            Place::File(path) => real(path),
            Place::Rows(rows) => Ok(rows.at(&real(rows.database())?).address()),
            Place::Spread(spread) => real(spread.session()),
        }
    }

    /// Opens the session to read it: the file; its rows, or what a compressed file holds, as a
    /// file without a name.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotAFile`, `NoPermission`; `Unreadable`, also when what is compressed holds
    /// more than a gibibyte; `UnknownFormat` for a database of which no session is named.
    pub fn open(&self) -> Result<FileSource> {
        match self {
            Place::File(path) => {
                let source = FileSource::open(path)?;
                if is_database(path) {
                    return Err(rows::not_one(path));
                }
                match compressed::is_compressed(&source) {
                    true => Ok(compressed::open(&source, compressed::LIMIT)?.0),
                    false => Ok(source),
                }
            }
            Place::Rows(rows) => rows.open(),
            Place::Spread(spread) => spread.open(),
        }
    }

    /// Whether it is what was said, and not a log beside it.
    pub fn is_conversation(&self) -> bool {
        match self {
            Place::File(_) | Place::Spread(_) => true,
            Place::Rows(rows) => rows.is_conversation(),
        }
    }

    /// Whether sessions are written there; what they are is another question.
    ///
    /// # Errors
    ///
    /// `ReadOnly`: the error says why.
    pub fn check_writable(&self) -> Result<()> {
        match self {
            Place::File(_) | Place::Rows(_) => Ok(()),
            Place::Spread(spread) => Err(spread.only_read()),
        }
    }

    /// Whether it is there. What cannot be asked is taken to be.
    pub fn exists(&self) -> bool {
        match self {
            Place::File(path) => path.exists(),
            Place::Rows(rows) => rows.exists(),
            Place::Spread(spread) => spread.session().exists(),
        }
    }
}

/// Opens the session at an address to read it.
///
/// # Errors
///
/// As [`Place::open`].
pub fn open(address: &Path) -> Result<FileSource> {
    Place::of(address).open().map_err(|err| match err.kind() {
        ErrorKind::NotFound => named_or_not(address).unwrap_or(err),
        _ => err,
    })
}

/// Whether the session at an address is there.
pub fn exists(address: &Path) -> bool {
    Place::of(address).exists()
}

/// An address of rows of which the database is there, and the session is not.
fn named_or_not(address: &Path) -> Option<Error> {
    let (database, name) = rows::split(address)?;
    let what = format!("the database holds no session `{name}`");
    is_database(&database).then(|| Error::new(ErrorKind::NotFound, what).at(&database))
}

/// Whether a file is an SQLite database.
pub fn is_database(path: &Path) -> bool {
    let mut head = [0; MAGIC.len()];
    regular::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == *MAGIC
}
