//! What could not be looked into on the way to sessions.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};
use crate::regular;

/// Folders, files and databases in which there may be sessions that were not found.
#[derive(Debug, Default)]
pub(super) struct Unread(Vec<Error>);

impl Unread {
    /// The errors, each place once, by path.
    pub(super) fn into_errors(self) -> Vec<Error> {
        let Unread(mut errors) = self;
        errors.sort_by(|one, other| one.path().cmp(&other.path()));
        errors.dedup_by(|one, other| one.path() == other.path());
        errors
    }

    /// What is in a folder. One that is not there holds nothing.
    pub(super) fn files_in(&mut self, folder: &Path) -> Vec<PathBuf> {
        match fs::read_dir(folder).and_then(|entries| entries.collect::<io::Result<Vec<_>>>()) {
            Ok(entries) => entries.into_iter().map(|entry| entry.path()).collect(),
            Err(err) => {
                self.tell(err, "the folder", folder);
                Vec::new()
            }
        }
    }

    /// What the system says of a file that may be a session. A folder is none.
    pub(super) fn file(&mut self, path: &Path) -> Option<fs::Metadata> {
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => None,
            Ok(meta) => match regular::check(&meta, path) {
                Ok(()) => Some(meta),
                Err(err) => {
                    self.0.push(err);
                    None
                }
            },
            // A link may lead to a disk that is not there now.
            Err(err) if err.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
                self.0.push(Error::reading(err, "the file", path));
                None
            }
            Err(err) => {
                self.tell(err, "the file", path);
                None
            }
        }
    }

    /// Whether there is something at `path`.
    pub(super) fn is_there(&mut self, path: &Path) -> bool {
        match fs::metadata(path) {
            Ok(_) => true,
            Err(err) => {
                self.tell(err, "the database", path);
                false
            }
        }
    }

    /// A database that could not be read. One of another program holds no sessions.
    pub(super) fn database(&mut self, err: Error) {
        if err.kind() != ErrorKind::UnknownFormat {
            self.0.push(err);
        }
    }

    fn tell(&mut self, err: io::Error, what: &str, path: &Path) {
        if !matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
            self.0.push(Error::reading(err, what, path));
        }
    }
}
