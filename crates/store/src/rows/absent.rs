//! The functions for databases in a build without SQLite: each returns an error that names the
//! missing feature.

mod replace;

use std::path::Path;

use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::database::Database;

use super::{Rows, StoredSession, Which};
use crate::source::FileSource;

impl Rows {
    pub(crate) fn open(&self) -> Result<FileSource> {
        Err(absent(&self.address()))
    }
}

pub(super) fn sessions_of(
    database: &Path,
    _which: &Which<'_>,
) -> Result<(&'static Database, Vec<StoredSession>)> {
    Err(absent(database))
}

/// Fails with `Unsupported`.
pub fn vacuum(database: &Path) -> Result<()> {
    Err(absent(database))
}

/// Fails with `Unsupported`.
pub fn delete(database: &Path, _tables: &[&str], _column: &str, _id: &str) -> Result<()> {
    Err(absent(database))
}

fn absent(address: &Path) -> Error {
    let what = "this is in a database, and epitome was built without the feature `sqlite`";
    Error::new(ErrorKind::Unsupported, what).at(address)
}

#[cfg(test)]
mod tests {
    use super::super::{address, sessions};
    use super::*;
    use crate::place::Place;

    #[test]
    fn a_session_in_a_database_is_recognised_and_each_use_of_it_is_an_error() {
        let dir = tempfile::tempdir().expect("a folder");
        let database = dir.path().join("opencode.db");
        std::fs::write(&database, b"SQLite format 3\0and more").expect("a file");
        for address in [address(&database, "ses_1", ""), database.clone()] {
            let place = Place::parse(&address);
            let Place::Rows(rows) = &place else { panic!("{place:?}") };
            assert_eq!(rows.address(), address);
            assert!(place.exists(), "nothing that belongs to it is removed");
            let err = place.open().expect_err("there is no SQLite");
            assert_eq!(err.kind(), ErrorKind::Unsupported);
            assert!(err.to_string().contains("built without the feature `sqlite`"), "{err}");
        }
        let listed = sessions(&database).map_err(|err| err.kind());
        assert_eq!(listed.err(), Some(ErrorKind::Unsupported));
    }
}
