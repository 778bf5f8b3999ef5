//! The record of installed hooks: how each agent's settings were changed, and of which of its
//! sessions transcripts are written.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::branch::Branch;
use crate::archive::Hash;
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::regular;
use crate::render::RenderForm;
use crate::store::{disk, write_over};

/// A rule: of which sessions of an agent transcripts are written, in which forms, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The name of the agent.
    pub agent: String,
    /// Only sessions that are run in this folder or below it. `None`: all sessions.
    pub project: Option<PathBuf>,
    /// The forms in which transcripts are written.
    pub formats: Vec<RenderForm>,
    /// The folder to which transcripts are written.
    pub out: PathBuf,
    /// The name of the recipe with which transcripts are shortened before they are written. `None`:
    /// they are written whole.
    pub compact: Option<String>,
    /// Whether the session itself is compacted when it has ended.
    pub shrink: bool,
    /// The branch that is checked out in the folder, if there is one.
    pub branch: Option<Branch>,
    /// The settings folder of the user who installed the hook.
    pub settings: PathBuf,
    /// The line that was added to the repository's ignore patterns, so that git ignores the folder.
    /// `None` if no line was added.
    pub left_out: Option<LeftOut>,
    /// The folders that were created for the output, the outermost first.
    pub made: Vec<PathBuf>,
}

/// A line that was appended to a file of git's ignore patterns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The path of the file.
    pub file: PathBuf,
    /// The text that was appended to the file.
    pub text: String,
}

/// The change that was made to an agent's settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Installed {
    pub agent: String,
    /// The file that was changed or created.
    pub file: PathBuf,
    /// Whether the file was created.
    pub made: bool,
    /// The folders that were created for the file, the outermost first.
    pub folders: Vec<PathBuf>,
    /// The entry that was added to a list; `None` if epitome wrote the whole file.
    pub entry: Option<serde_json::Value>,
    /// The number of JSON keys on the path to the list that were added, including the list's own
    /// key.
    pub keys: usize,
    /// The offset in bytes at which the text was changed. At this offset, the text `removed` was
    /// replaced by the text `inserted`.
    pub at: usize,
    pub removed: String,
    pub inserted: String,
    /// The hash of the whole file after the change.
    pub after: String,
}

/// All installed hooks and rules, as stored on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The version of the record's format: 1.
    epitome_hooks: u64,
    pub installed: Vec<Installed>,
    pub rules: Vec<Rule>,
    /// Rules that were replaced by later ones. They apply to no session any more, but are needed to
    /// remove the files that were written for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<Rule>,
}

impl Installed {
    /// The text of the file before the change, computed from its text `now`. `None` if the file was
    /// edited since the change.
    pub fn before(&self, now: &str) -> Option<String> {
        if hash(now) != self.after {
            return None;
        }
        self.without(now, self.at)
    }

    /// The text `now` with the change undone, even if the inserted text is now at another offset.
    /// `None` if the inserted text is empty, does not occur, or occurs more than once.
    pub fn moved_back(&self, now: &str) -> Option<String> {
        let at = now.find(&self.inserted).filter(|_| !self.inserted.is_empty())?;
        if now[at + 1..].contains(&self.inserted) { None } else { self.without(now, at) }
    }

    fn without(&self, now: &str, at: usize) -> Option<String> {
        let rest = now.get(at..)?.strip_prefix(&self.inserted)?;
        Some([now.get(..at)?, &self.removed, rest].concat())
    }
}

impl Record {
    /// Reads the record. If its file does not exist, the record is empty.
    ///
    /// # Errors
    ///
    /// `Unreadable` if the record cannot be parsed; `NewerFormat` if a newer version of epitome
    /// wrote it; the errors of reading the file.
    pub fn load(config: &Config) -> Result<Record> {
        let path = path(config);
        let text = match regular::read(&path) {
            Ok(text) => text,
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Record { epitome_hooks: 1, ..Record::default() });
            }
            Err(err) => return Err(Error::reading(err, "what was installed", &path)),
        };
        let unreadable = |err| {
            let what = "what was installed cannot be read";
            Error::new(ErrorKind::Unreadable, what).at(&path).because(err)
        };
        let value: serde_json::Value = serde_json::from_slice(&text).map_err(unreadable)?;
        if value["epitome_hooks"].as_u64().is_some_and(|version| version > 1) {
            let what = "it was written by a newer epitome";
            return Err(Error::new(ErrorKind::NewerFormat, what).at(&path));
        }
        serde_json::from_value(value).map_err(unreadable)
    }

    /// Writes the record. If the record is empty, the folder of the hooks is removed instead, with
    /// everything in it.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if it cannot be written.
    pub fn store(&self, config: &Config) -> Result<()> {
        let folder = config.hooks();
        if self.installed.is_empty() && self.rules.is_empty() && self.replaced.is_empty() {
            return match fs::remove_dir_all(&folder) {
                Err(err) if err.kind() != std::io::ErrorKind::NotFound => {
                    Err(Error::writing(err, "what was installed", &folder))
                }
                Ok(()) | Err(_) => Ok(()),
            };
        }
        disk::private_folder(&folder)?;
        let text = serde_json::to_string_pretty(self).map_err(|err| {
            Error::new(ErrorKind::Broken, "what was installed cannot be written").because(err)
        })?;
        write_over(&path(config), |out| Ok(writeln!(out, "{text}")?))
    }
}

/// Locks the file `name` in the folder of the hooks until the returned file is dropped. The record
/// is changed only under the lock with the name `lock`.
pub(super) fn lock(config: &Config, name: &str) -> Result<File> {
    lock_in(&config.hooks(), name)
}

/// Locks the file `name` in a folder until the returned file is dropped. Creates the folder if it
/// does not exist.
pub(crate) fn lock_in(folder: &Path, name: &str) -> Result<File> {
    disk::private_folder(folder)?;
    let path = folder.join(name);
    let failed = |err| Error::writing(err, "the lock", &path);
    let options = &mut File::options();
    let file = regular::open_with(options.create(true).append(true), &path).map_err(failed)?;
    match file.lock() {
        // The file system does not support locks: the file is returned unlocked.
        Err(err) if err.kind() == std::io::ErrorKind::Unsupported => Ok(file),
        locked => locked.map(|()| file).map_err(failed),
    }
}

/// The splice that turns one text into another: its offset, the text that it removes, and the text
/// that it inserts.
pub(crate) fn difference<'a>(before: &'a str, after: &'a str) -> (usize, &'a str, &'a str) {
    let mut at = before.bytes().zip(after.bytes()).take_while(|(one, other)| one == other).count();
    while !before.is_char_boundary(at) || !after.is_char_boundary(at) {
        at -= 1;
    }
    let ends = before[at..].bytes().rev().zip(after[at..].bytes().rev());
    let mut same = ends.take_while(|(one, other)| one == other).count();
    while !before.is_char_boundary(before.len() - same)
        || !after.is_char_boundary(after.len() - same)
    {
        same -= 1;
    }
    (at, &before[at..before.len() - same], &after[at..after.len() - same])
}

pub(crate) fn hash(text: &str) -> String {
    Hash::compute(text.as_bytes()).to_string()
}

fn path(config: &Config) -> PathBuf {
    config.hooks().join("installed.json")
}

/// Those of `folder` and the folders around it that do not exist, the outermost first.
pub(super) fn missing(folder: &Path) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> = folder
        .ancestors()
        .take_while(|it| !it.as_os_str().is_empty() && !it.exists())
        .map(Path::to_owned)
        .collect();
    missing.reverse();
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_of_two_texts_is_between_characters() {
        for (before, after, expect) in [
            ("", "ab", (0, "", "ab")),
            ("ab", "ab", (2, "", "")),
            ("a{}b", "a{x}b", (2, "", "x")),
            ("aa", "aaa", (2, "", "a")),
            ("ü", "ö", (0, "ü", "ö")),
            ("xüy", "xé\u{fc}y", (1, "", "é")),
        ] {
            assert_eq!(difference(before, after), expect, "{before} {after}");
        }
    }
}
