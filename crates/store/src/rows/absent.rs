//! Rows of a database in a build without SQLite: they are known by their address, and each use is
//! an error that says what is missing.

mod replace;

use std::path::{Path, PathBuf};

use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::database::Database;

use super::{Stored, address};
use crate::source::FileSource;

/// The rows of one session.
#[derive(Clone, Debug)]
pub struct Rows {
    database: PathBuf,
    /// What is behind the `#` of the address, if there is one.
    name: Option<String>,
}

impl Rows {
    /// The rows that `name` means in a database, whether it holds them or not.
    #[expect(clippy::unnecessary_wraps, reason = "with SQLite it is known whether there are any")]
    pub fn named(database: &Path, name: &str) -> Option<Rows> {
        Some(Rows { database: database.to_owned(), name: Some(name.to_owned()) })
    }

    /// The only session of a database, whether it holds one session or more.
    #[expect(clippy::unnecessary_wraps, reason = "with SQLite it is known whether there is one")]
    pub fn alone(database: &Path) -> Option<Rows> {
        Some(Rows { database: database.to_owned(), name: None })
    }

    /// The file that the rows are in.
    pub fn database(&self) -> &Path {
        &self.database
    }

    /// Never: they cannot be written.
    pub fn are_written(&self) -> bool {
        false
    }

    /// The id of the session; empty if it is not known.
    pub fn session(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// The same rows of the database by another path.
    pub fn at(&self, database: &Path) -> Rows {
        Rows { database: database.to_owned(), ..self.clone() }
    }

    /// The same rows by the real path of their database.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NoPermission` and what else a system says of paths.
    pub fn real(&self) -> Result<Rows> {
        let database = self.database.canonicalize();
        let database =
            database.map_err(|err| Error::reading(err, "the session", &self.database))?;
        Ok(self.at(&database))
    }

    /// The address by which they are found again.
    pub fn address(&self) -> PathBuf {
        match &self.name {
            Some(name) => address(&self.database, name, ""),
            None => self.database.clone(),
        }
    }

    /// Not known: the name of no agent.
    pub fn agent(&self) -> &'static str {
        ""
    }

    /// Not known: none.
    pub fn companions(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Fails.
    ///
    /// # Errors
    ///
    /// `Unsupported`.
    pub fn parts(&self) -> Result<Vec<Rows>> {
        Err(absent(&self.address()))
    }

    /// Not known: they are taken for a conversation.
    pub fn is_conversation(&self) -> bool {
        true
    }

    /// Not known: they are taken to exist, so that nothing is removed that belongs to them.
    pub fn exists(&self) -> bool {
        true
    }

    /// Fails.
    ///
    /// # Errors
    ///
    /// `Unsupported`.
    pub fn open(&self) -> Result<FileSource> {
        Err(absent(&self.address()))
    }
}

/// Fails.
///
/// # Errors
///
/// `Unsupported`.
pub fn sessions(database: &Path) -> Result<(&'static Database, Vec<Stored>)> {
    Err(absent(database))
}

/// Fails.
///
/// # Errors
///
/// `Unsupported`.
pub fn vacuum(database: &Path) -> Result<()> {
    Err(absent(database))
}

/// The error for everything that needs SQLite.
pub fn absent(address: &Path) -> Error {
    let what = "this is in a database, and epitome was built without the feature `sqlite`";
    Error::new(ErrorKind::Unsupported, what).at(address)
}

#[cfg(test)]
mod tests {
    use crate::place::Place;

    use super::*;

    #[test]
    fn a_session_in_a_database_is_recognised_and_each_use_of_it_is_an_error() {
        let dir = tempfile::tempdir().expect("a folder");
        let database = dir.path().join("opencode.db");
        std::fs::write(&database, b"SQLite format 3\0and more").expect("a file");
        for address in [address(&database, "ses_1", ""), database.clone()] {
            let place = Place::of(&address);
            assert!(matches!(place, Place::Rows(_)), "{place:?}");
            assert!(place.exists(), "nothing that belongs to it is removed");
            let err = place.open().expect_err("there is no SQLite");
            assert_eq!(err.kind(), ErrorKind::Unsupported);
            assert!(err.to_string().contains("built without the feature `sqlite`"), "{err}");
        }
        let listed = sessions(&database).map_err(|err| err.kind());
        assert_eq!(listed.err(), Some(ErrorKind::Unsupported));
    }
}
