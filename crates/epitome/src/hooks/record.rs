//! What was installed: how each agent's settings were changed, and what is kept of its sessions.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::branch::Branch;
use crate::archive::Hash;
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::regular;
use crate::render::Rendered;
use crate::store::{disk, write_over};

/// What is kept of the sessions of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The agent.
    pub agent: String,
    /// Only of sessions that are run in this folder or below it.
    pub project: Option<PathBuf>,
    /// In which forms.
    pub formats: Vec<Rendered>,
    /// The folder that they are written to.
    pub out: PathBuf,
    /// The recipe by which they are made short before.
    pub compact: Option<String>,
    /// Whether the session itself is compacted when it is over.
    pub shrink: bool,
    /// The branch that the folder is the working tree of.
    pub branch: Option<Branch>,
    /// Where the settings of whoever installed it stand.
    pub settings: PathBuf,
    /// What was written so that the project's repository leaves the folder out.
    pub left_out: Option<LeftOut>,
    /// Folders that were made for it, the outermost first.
    pub made: Vec<PathBuf>,
}

/// A line in a list of what git leaves out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The file.
    pub file: PathBuf,
    /// The text that was put at its end.
    pub text: String,
}

/// How an agent's settings were changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Installed {
    pub agent: String,
    /// The file that was changed or made.
    pub file: PathBuf,
    /// Whether it was made.
    pub made: bool,
    /// Folders that were made for it, the outermost first.
    pub folders: Vec<PathBuf>,
    /// The entry of a list; nothing when the whole file is ours.
    pub entry: Option<serde_json::Value>,
    /// How many of the keys that lead to the list were made.
    pub keys: usize,
    /// Where the file differs from what it was, in bytes.
    pub at: usize,
    pub removed: String,
    pub inserted: String,
    /// The hash of the whole file afterwards.
    pub after: String,
}

/// All of it, as it stands on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The version of this description: 1.
    epitome_hooks: u64,
    pub installed: Vec<Installed>,
    pub rules: Vec<Rule>,
    /// Rules that others took the place of: nothing more is kept by them, and what was is still
    /// ours to remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<Rule>,
}

impl Installed {
    /// The text of the file before, if it is still what was left.
    pub fn before(&self, now: &str) -> Option<String> {
        if hash(now) != self.after {
            return None;
        }
        self.without(now, self.at)
    }

    /// The text with the change taken back, wherever it stands now, if it stands there once.
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
    /// What stands on disk; nothing is no record.
    ///
    /// # Errors
    ///
    /// `Unreadable`; `NewerFormat`.
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

    /// Writes it; when nothing is installed, all that stands beside it goes.
    ///
    /// # Errors
    ///
    /// `Disk`, `NoPermission`.
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
        let broken = |err| {
            Error::new(ErrorKind::Broken, "what was installed cannot be written").because(err)
        };
        let text = serde_json::to_string_pretty(self).map_err(broken)?;
        write_over(&path(config), |out| Ok(writeln!(out, "{text}")?))
    }
}

/// Keeps others from changing it meanwhile.
pub(super) fn lock(config: &Config, name: &str) -> Result<File> {
    let folder = config.hooks();
    disk::private_folder(&folder)?;
    let path = folder.join(name);
    let failed = |err| Error::writing(err, "the lock", &path);
    let options = &mut File::options();
    let file = regular::open_with(options.create(true).append(true), &path).map_err(failed)?;
    match file.lock() {
        // A disk without locks.
        Err(err) if err.kind() == std::io::ErrorKind::Unsupported => Ok(file),
        locked => locked.map(|()| file).map_err(failed),
    }
}

/// Where two texts differ: from which byte on, and what stands there in each.
pub(super) fn difference<'a>(before: &'a str, after: &'a str) -> (usize, &'a str, &'a str) {
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

pub(super) fn hash(text: &str) -> String {
    Hash::compute(text.as_bytes()).to_string()
}

fn path(config: &Config) -> PathBuf {
    config.hooks().join("installed.json")
}

/// Makes the folders that are missing, and says which, the outermost first.
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
