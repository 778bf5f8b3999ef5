//! Errors of folders and files that could not be read while sessions were searched.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use epitome_error::{Error, ErrorKind};
use epitome_store::regular;

/// The errors of folders, files and databases that may hold more sessions.
#[derive(Debug, Default)]
pub struct UnreadErrors(Vec<Error>);

impl UnreadErrors {
    /// The errors, one for each path, ordered by path.
    pub(crate) fn into_errors(self) -> Vec<Error> {
        let UnreadErrors(mut errors) = self;
        errors.sort_by(|one, other| one.path().cmp(&other.path()));
        errors.dedup_by(|one, other| one.path() == other.path());
        errors
    }

    /// Adds an error.
    pub(crate) fn add(&mut self, err: Error) {
        self.0.push(err);
    }

    /// The entries of a folder. Empty if there is no such folder. Also empty if the folder cannot
    /// be read: then the error is recorded.
    pub(crate) fn files_in(&mut self, folder: &Path) -> Vec<PathBuf> {
        match fs::read_dir(folder).and_then(|entries| entries.collect::<io::Result<Vec<_>>>()) {
            Ok(entries) => entries.into_iter().map(|entry| entry.path()).collect(),
            Err(err) => {
                self.report(err, "the folder", folder);
                Vec::new()
            }
        }
    }

    /// The metadata of a file that may be a session. `None` for a folder and for a missing file.
    /// Also `None`, and an error is recorded, for a dangling link, and for a file that is not a
    /// regular one or cannot be read.
    pub(crate) fn file(&mut self, path: &Path) -> Option<fs::Metadata> {
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => None,
            Ok(meta) => match regular::check(&meta, path) {
                Ok(()) => Some(meta),
                Err(err) => {
                    self.0.push(err);
                    None
                }
            },
            // A link to nothing is an error: it may lead to a disk that is not mounted now.
            Err(err) if err.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
                self.0.push(Error::reading(err, "the file", path));
                None
            }
            Err(err) => {
                self.report(err, "the file", path);
                None
            }
        }
    }

    /// Whether a file or folder exists at `path`. If that cannot be found out, the error is
    /// recorded, and the result is false.
    pub(crate) fn is_there(&mut self, path: &Path) -> bool {
        match fs::metadata(path) {
            Ok(_) => true,
            Err(err) => {
                self.report(err, "the database", path);
                false
            }
        }
    }

    /// Adds the error of a database, unless the database belongs to another program and so holds no
    /// sessions.
    pub(crate) fn database(&mut self, err: Error) {
        if err.kind() != ErrorKind::UnknownFormat {
            self.0.push(err);
        }
    }

    fn report(&mut self, err: io::Error, what: &str, path: &Path) {
        if !matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
            self.0.push(Error::reading(err, what, path));
        }
    }
}
