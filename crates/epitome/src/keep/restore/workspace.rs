//! Temporary folders in the home of epitome, for copies of versions.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::error::{Error, Result};
use crate::store::{disk, lock_for_writing, try_lock_for_writing};

/// The beginning of the name of such a folder, and of the name that it has before it is locked.
const PREFIX: &str = "epitome-";
const NEW_PREFIX: &str = ".new-epitome-";
/// The file in such a folder that its process locks, so that others see that it is in use.
const LOCK: &str = ".lock";

/// A temporary folder, which is removed when the value is dropped.
#[derive(Debug)]
pub(super) struct Workspace {
    path: PathBuf,
    _lock: File,
}

impl Workspace {
    /// An empty folder. Removes the folders that killed processes left.
    pub(super) fn new(config: &Config) -> Result<Workspace> {
        disk::private_folder(&config.home)?;
        remove_abandoned(config);
        let failed = |err| Error::writing(err, "the version", &config.home);
        let made = tempfile::Builder::new().prefix(NEW_PREFIX).tempdir_in(&config.home);
        let made = made.map_err(failed)?;
        let lock = lock_for_writing(&made.path().join(LOCK))?;
        // The folder gets its name when it is locked, so that no other process removes it.
        let name = made.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = config.home.join(name.trim_start_matches(".new-"));
        fs::rename(made.path(), &path).map_err(failed)?;
        // There is nothing at the old path that could be removed.
        drop(made.keep());
        Ok(Workspace { path, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).ok();
    }
}

/// Removes the folders that killed processes left, as far as possible: they contain whole sessions.
pub(crate) fn remove_abandoned(config: &Config) {
    let entries = fs::read_dir(&config.home).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        is_folder && entry.file_name().to_string_lossy().starts_with(PREFIX)
    });
    for folder in folders.map(|entry| entry.path()) {
        if let Ok(Some(_lock)) = try_lock_for_writing(&folder.join(LOCK)) {
            fs::remove_dir_all(&folder).ok();
        }
    }
}
