//! Records of restores that change several files. If a process is killed between two files, a later
//! process completes the restore with its record.
//!
//! Before the first file is changed, the record is written to `<home>/vault/restoring/<hash of the
//! session's path>`. One process at a time writes, completes and removes records: it holds the lock
//! on `<home>/vault/restoring.lock`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{FileKey, Vault};
use crate::archive::{Digest, Hash};
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::regular;
use crate::store::{disk, lock_for_writing, try_lock_for_writing, write_over};

/// What a restore is going to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Intention {
    /// The machine that kept the restored file.
    machine: String,
    file: FileKey,
    /// The number of the version that is restored.
    pub number: u64,
    /// The files that the restore changes.
    pub files: Vec<IntendedFile>,
}

/// A file that is going to be replaced, created or deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IntendedFile {
    /// The file. Its `machine` is left empty: it is always this machine.
    #[serde(flatten)]
    pub file: FileKey,
    /// The digest of the content before the restore; `None` if there was no file.
    pub before: Option<Digest>,
    /// The digest of the content that is restored. `None` if the file is deleted, or if an older
    /// epitome wrote the record. The version may have another content later, if a text in it is
    /// forgotten.
    #[serde(default)]
    pub after: Option<Digest>,
    /// Whether the file is deleted, because it did not exist when the version was seen.
    #[serde(default)]
    pub is_deleted: bool,
}

impl Intention {
    pub fn new(file: &FileKey, number: u64, files: Vec<IntendedFile>) -> Intention {
        Intention { machine: file.machine.clone(), file: file.clone(), number, files }
    }

    /// The restored file.
    pub fn file(&self) -> FileKey {
        FileKey { machine: self.machine.clone(), ..self.file.clone() }
    }
}

/// The records of restores that have begun. While this exists, no other process changes them.
pub(super) struct RestoreRecords {
    folder: PathBuf,
    _lock: File,
}

impl RestoreRecords {
    /// Locks the records. Waits while another process has locked them.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the lock cannot be created.
    pub fn lock(config: &Config) -> Result<RestoreRecords> {
        Ok(RestoreRecords { folder: folder(config), _lock: lock_for_writing(&lock(config))? })
    }

    /// Locks the records. `None` if there are none, or if another process has locked them.
    ///
    /// # Errors
    ///
    /// As for [`lock`](RestoreRecords::lock).
    pub fn try_lock(config: &Config) -> Result<Option<RestoreRecords>> {
        if is_empty(config) {
            return Ok(None);
        }
        let lock = try_lock_for_writing(&lock(config))?;
        Ok(lock.map(|lock| RestoreRecords { folder: folder(config), _lock: lock }))
    }

    /// Locks the records, as [`lock`](RestoreRecords::lock). `None` if there are none.
    ///
    /// # Errors
    ///
    /// As for [`lock`](RestoreRecords::lock).
    pub fn lock_existing(config: &Config) -> Result<Option<RestoreRecords>> {
        if is_empty(config) { Ok(None) } else { RestoreRecords::lock(config).map(Some) }
    }

    /// The records, by the paths of their files. A file that contains no record is removed; one
    /// that cannot be read stays.
    pub fn all(&self) -> Vec<(PathBuf, Intention)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(raw) = regular::read(&path) else { continue };
            match serde_json::from_slice(&raw) {
                Ok(intention) => found.push((path, intention)),
                // Most likely a record of another version of epitome, or a temporary file.
                Err(_) => drop(fs::remove_file(path)),
            }
        }
        found
    }

    /// Writes a record, and returns its path.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission`.
    pub fn add(&self, intention: &Intention) -> Result<PathBuf> {
        let raw = serde_json::to_vec(intention).map_err(|err| {
            Error::new(ErrorKind::Broken, "the record of a restore is no JSON").because(err)
        })?;
        disk::private_folder(&self.folder)?;
        let name = Hash::compute(intention.file.path.as_os_str().as_encoded_bytes()).to_string();
        let path = self.folder.join(&name[..32]);
        let failed = |err| Error::writing(err, "the record of the restore", &path);
        write_over(&path, |out| out.write_all(&raw).map_err(failed))?;
        disk::flush_folder(&self.folder).map_err(failed)?;
        Ok(path)
    }

    /// Removes a record.
    pub fn remove(&self, path: &Path) {
        // If this fails, a later scan or restore removes the record.
        fs::remove_file(path).ok();
    }
}

/// Whether there are no records.
fn is_empty(config: &Config) -> bool {
    fs::read_dir(folder(config)).map_or(true, |mut entries| entries.next().is_none())
}

fn folder(config: &Config) -> PathBuf {
    Vault::folder_in(&config.home).join("restoring")
}

fn lock(config: &Config) -> PathBuf {
    Vault::folder_in(&config.home).join("restoring.lock")
}
