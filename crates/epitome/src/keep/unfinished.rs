//! Restores of several files, which are completed if the process is killed between two of them.
//!
//! Before the first file is replaced, what is going to be replaced is written to
//! `<home>/vault/restoring/<hash>`, and the file is removed when all is done. The process keeps a
//! lock on it, so that others see whether it still runs.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{FileKey, RestoreVersion, Vault};
use crate::archive::{Digest, Hash};
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::regular;
use crate::store::disk;

/// What a restore is going to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Intention {
    /// The machine that kept the restored file.
    machine: String,
    file: FileKey,
    number: u64,
    /// The files that are replaced.
    pub files: Vec<IntendedFile>,
}

/// A file that is going to be replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IntendedFile {
    /// The file, without the machine: it is this one.
    #[serde(flatten)]
    pub file: FileKey,
    /// What it has before; `None` if it does not exist.
    pub before: Option<Digest>,
}

/// The record of a restore that has begun.
pub(super) struct Unfinished {
    /// Locked as long as the restore runs.
    _file: File,
    path: PathBuf,
}

impl Unfinished {
    /// Records what a restore is going to do.
    ///
    /// # Errors
    ///
    /// `Locked` if another process restores the same session; `Disk` or `NoPermission` if the record
    /// cannot be written.
    pub fn begin(
        config: &Config,
        restore: &RestoreVersion<'_>,
        files: Vec<IntendedFile>,
    ) -> Result<Unfinished> {
        let file = restore.file.clone();
        let machine = file.machine.clone();
        let intention = Intention { machine, file, number: restore.number, files };
        let raw = serde_json::to_vec(&intention).map_err(|err| {
            Error::new(ErrorKind::Broken, "the record of a restore is no JSON").because(err)
        })?;
        let folder = folder(config);
        disk::private_folder(&folder)?;
        let name = Hash::compute(restore.file.path.as_os_str().as_encoded_bytes()).to_string();
        let path = folder.join(&name[..32]);
        let failed = |err| Error::writing(err, "the record of the restore", &path);
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = regular::open_with(options, &path).map_err(failed)?;
        if let Err(fs::TryLockError::WouldBlock) = file.try_lock() {
            let what = "another epitome is working on this session";
            return Err(Error::new(ErrorKind::Locked, what).at(&restore.file.path));
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(failed)?;
        file.write_all(&raw).and_then(|()| file.sync_all()).map_err(failed)?;
        disk::flush_folder(&folder).map_err(failed)?;
        Ok(Unfinished { _file: file, path })
    }

    /// Removes the record: all files are replaced, or none is.
    pub fn end(self) {
        // A record that stays is removed by the next command: it finds nothing to do.
        fs::remove_file(&self.path).ok();
    }
}

/// Completes the restores that killed processes have begun. Files that were changed since are left
/// as they are. Returns the errors of those that cannot be completed now, such as of sessions that
/// are in use.
pub(super) fn finish_restores(config: &Config, vault: &mut Vault) -> Vec<Error> {
    let mut left = Vec::new();
    for entry in fs::read_dir(folder(config)).into_iter().flatten().flatten() {
        if let Err(err) = finish(config, vault, &entry.path()) {
            left.push(err);
        }
    }
    left
}

fn finish(config: &Config, vault: &mut Vault, path: &Path) -> Result<()> {
    let Ok(mut file) = regular::open_with(File::options().read(true).write(true), path) else {
        return Ok(());
    };
    if file.try_lock().is_err() {
        return Ok(());
    }
    let mut raw = Vec::new();
    file.read_to_end(&mut raw).map_err(|err| Error::reading(err, "the record", path))?;
    // Of a record that was not completed, nothing was replaced yet.
    if let Ok(Intention { machine, file, number, files }) = serde_json::from_slice(&raw) {
        let file = FileKey { machine, ..file };
        let restore = RestoreVersion { file: &file, number, force: false };
        match restore.finish(config, vault, &files) {
            Err(err) if may_succeed_later(&err) => return Err(err),
            // What it needs was removed meanwhile.
            Err(_) | Ok(()) => {}
        }
    }
    fs::remove_file(path).map_err(|err| Error::writing(err, "the record", path))
}

fn may_succeed_later(err: &Error) -> bool {
    use ErrorKind::{Changed, Disk, HeldByAgent, InUse, Locked, NoPermission};
    matches!(err.kind(), Changed | Disk | HeldByAgent | InUse | Locked | NoPermission)
}

fn folder(config: &Config) -> PathBuf {
    Vault::folder_in(&config.home).join("restoring")
}
