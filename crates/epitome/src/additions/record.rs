//! The record of what was added to agents' settings.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::AdditionKind;
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::hooks::record::{difference, hash, lock_in};
use crate::regular;
use crate::store::{disk, write_over};

/// A change of a file: at one offset, one text replaces another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileSplice {
    /// The offset of the change, in bytes.
    at: usize,
    /// The text that was at this offset before the change.
    removed: String,
    /// The text that is at this offset after the change.
    inserted: String,
    /// The hash of the whole file after the change.
    after: String,
}

/// One addition to an agent's settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Added {
    pub agent: String,
    pub kind: AdditionKind,
    /// The file that was changed or made.
    pub file: PathBuf,
    /// Whether the file did not exist before the addition.
    pub made: bool,
    /// Folders that were made for the file, the outermost first.
    pub folders: Vec<PathBuf>,
    /// The path of epitome and the arguments with which the addition calls it.
    pub words: Vec<String>,
    /// How many of the JSON objects around the added value were added together with it.
    pub keys: usize,
    pub splice: FileSplice,
}

/// All additions, in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The version of the record's format: 1.
    epitome_additions: u64,
    pub added: Vec<Added>,
}

impl FileSplice {
    fn between(before: &str, after: &str) -> FileSplice {
        let (at, removed, inserted) = difference(before, after);
        let removed = removed.to_owned();
        let inserted = inserted.to_owned();
        FileSplice { at, removed, inserted, after: hash(after) }
    }

    /// The text of the file before the change, computed from its text `now`. `None` if the file was
    /// edited since the change.
    pub fn before(&self, now: &str) -> Option<String> {
        (hash(now) == self.after).then(|| self.without(now, self.at))?
    }

    /// The text `now` with the change undone, even if the inserted text is now at another offset.
    /// `None` if the inserted text is empty, does not occur, or occurs more than once.
    pub fn moved_back(&self, now: &str) -> Option<String> {
        let at = now.find(&self.inserted).filter(|_| !self.inserted.is_empty())?;
        let is_once = now.rfind(&self.inserted) == Some(at);
        is_once.then(|| self.without(now, at))?
    }

    fn without(&self, now: &str, at: usize) -> Option<String> {
        let rest = now.get(at..)?.strip_prefix(&self.inserted)?;
        Some([now.get(..at)?, &self.removed, rest].concat())
    }
}

impl Added {
    /// The record of an addition that changes the text of a file from `before` (`None`: no file) to
    /// `after`. Its `folders` are empty; the caller sets them.
    pub fn new(
        (agent, kind): (&str, AdditionKind),
        (file, before, after): (&Path, Option<&str>, &str),
        words: Vec<String>,
        keys: usize,
    ) -> Added {
        Added {
            agent: agent.to_owned(),
            kind,
            file: file.to_owned(),
            made: before.is_none(),
            folders: Vec::new(),
            words,
            keys,
            splice: FileSplice::between(before.unwrap_or_default(), after),
        }
    }
}

impl Record {
    /// Reads the record from disk. It is empty if there is no file.
    ///
    /// # Errors
    ///
    /// `Unreadable` if the record cannot be parsed; `NewerFormat` if a newer epitome wrote it; the
    /// errors of reading the file.
    pub fn load(config: &Config) -> Result<Record> {
        let path = folder(config).join("installed.json");
        let text = match regular::read(&path) {
            Ok(text) => text,
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Record { epitome_additions: 1, added: Vec::new() });
            }
            Err(err) => return Err(Error::reading(err, "what was installed", &path)),
        };
        let unreadable = |err| {
            let what = "what was installed cannot be read";
            Error::new(ErrorKind::Unreadable, what).at(&path).because(err)
        };
        let value: serde_json::Value = serde_json::from_slice(&text).map_err(unreadable)?;
        if value["epitome_additions"].as_u64().is_some_and(|version| version > 1) {
            let what = "it was written by a newer epitome";
            return Err(Error::new(ErrorKind::NewerFormat, what).at(&path));
        }
        serde_json::from_value(value).map_err(unreadable)
    }

    /// Passes on the folders that were made for an addition which is now removed: each folder that
    /// still exists is recorded with another addition whose file is in it, if there is one. It is
    /// later removed together with that addition.
    pub fn pass_on_folders(&mut self, folders: &[PathBuf]) {
        for folder in folders.iter().rev().filter(|folder| folder.exists()) {
            let other = self.added.iter_mut().find(|other| other.file.starts_with(folder));
            if let Some(other) = other.filter(|other| !other.folders.contains(folder)) {
                other.folders.insert(0, folder.clone());
            }
        }
    }

    /// Writes the record. If there are no additions, the folder of the record is removed instead.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the record cannot be written.
    pub fn store(&self, config: &Config) -> Result<()> {
        let folder = folder(config);
        if self.added.is_empty() {
            return match fs::remove_dir_all(&folder) {
                Err(err) if err.kind() != std::io::ErrorKind::NotFound => {
                    Err(Error::writing(err, "what was installed", &folder))
                }
                Ok(()) | Err(_) => Ok(()),
            };
        }
        disk::private_folder(&folder)?;
        let broken = |err| {
            Error::new(ErrorKind::Broken, "what was installed cannot be written").because(err)
        };
        let text = serde_json::to_string_pretty(self).map_err(broken)?;
        write_over(&folder.join("installed.json"), |out| Ok(writeln!(out, "{text}")?))
    }
}

/// Locks the record, so that no other process changes it until the returned file is dropped.
pub(super) fn lock(config: &Config) -> Result<File> {
    lock_in(&folder(config), "lock")
}

fn folder(config: &Config) -> PathBuf {
    config.home.join("additions")
}
