//! Restores of several files, which are completed if the process is killed between two of them.
//!
//! Before the first file is replaced, what is going to be replaced is written to
//! `<home>/vault/restoring/<hash>`, and the file is removed when all is done. The process keeps a
//! lock on it, so that others see whether it still runs.

use std::fs::{self, File};
use std::io::{Seek as _, Write as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{FileKey, Vault};
use crate::archive::{Digest, Hash};
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::regular;
use crate::store::disk;

/// What a restore is going to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Intention {
    /// The machine that kept the restored file.
    pub machine: String,
    pub file: FileKey,
    pub number: u64,
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
    /// `Locked` if another process restores the same session; `Disk` or `NoPermission` if the
    /// record cannot be written.
    pub fn begin(
        config: &Config,
        (file, number): (&FileKey, u64),
        files: Vec<IntendedFile>,
    ) -> Result<Unfinished> {
        let machine = file.machine.clone();
        let intention = Intention { machine, file: file.clone(), number, files };
        let raw = serde_json::to_vec(&intention).map_err(|err| {
            Error::new(ErrorKind::Broken, "the record of a restore is no JSON").because(err)
        })?;
        let folder = folder(config);
        disk::private_folder(&folder)?;
        let name = Hash::compute(file.path.as_os_str().as_encoded_bytes()).to_string();
        let path = folder.join(&name[..32]);
        let failed = |err| Error::writing(err, "the record of the restore", &path);
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut record = regular::open_with(options, &path).map_err(failed)?;
        if let Err(fs::TryLockError::WouldBlock) = record.try_lock() {
            let what = "another epitome is working on this session";
            return Err(Error::new(ErrorKind::Locked, what).at(&file.path));
        }
        record.set_len(0).and_then(|()| record.rewind()).map_err(failed)?;
        record.write_all(&raw).and_then(|()| record.sync_all()).map_err(failed)?;
        disk::flush_folder(&folder).map_err(failed)?;
        Ok(Unfinished { _file: record, path })
    }

    /// Removes the record: all files are replaced, or none is.
    pub fn end(self) {
        // A record that stays is removed by the next command: it finds nothing to do.
        fs::remove_file(&self.path).ok();
    }
}

/// The folder of the records.
pub(super) fn folder(config: &Config) -> PathBuf {
    Vault::folder_in(&config.home).join("restoring")
}
