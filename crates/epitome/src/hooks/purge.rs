//! Removes kept transcripts: the files that epitome wrote or, if they are on a branch, the working
//! tree of the branch.

use std::fs;
use std::path::{Path, PathBuf};

use super::record::{Record, Rule};
use super::{read, replace};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::render::rendered_in;

/// A planned removal of the transcripts that a rule wrote. Nothing is removed yet.
#[derive(Clone, Debug)]
pub struct Purge {
    /// The rule that wrote the transcripts.
    pub rule: Rule,
    /// The transcripts in the rule's folder. If the rule has a branch, the whole working tree of
    /// the branch is removed instead of these files.
    pub files: Vec<PathBuf>,
}

impl Purge {
    /// Plans to remove the transcripts of `rules`. The folder of a rule is skipped if an installed
    /// rule that is not in `rules` also writes to it. Of rules with the same folder, only the first
    /// has a plan.
    ///
    /// # Errors
    ///
    /// `Unreadable` or `NewerFormat` if the record of installed hooks cannot be parsed; the errors
    /// of reading it.
    pub fn plan(config: &Config, rules: &[Rule]) -> Result<Vec<Purge>> {
        let left = Record::load(config)?.rules;
        let unused = rules.iter().filter(|rule| {
            !left.iter().any(|other| other.out == rule.out && !rules.contains(other))
        });
        let mut plans: Vec<Purge> = Vec::new();
        for rule in unused {
            if !plans.iter().any(|it| it.rule.out == rule.out) {
                let files = rendered_in(&rule.out);
                plans.push(Purge { rule: rule.clone(), files });
            }
        }
        Ok(plans)
    }

    /// Removes the files or, if the rule has a branch, its working tree, and the branch if epitome
    /// created it. Then removes the folders that were created for them, as far as they are empty.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if a file cannot be removed; the errors of git.
    pub fn carry_out(&self) -> Result<()> {
        if let Some(branch) = &self.rule.branch {
            branch.remove(&self.rule.out)?;
        } else {
            for file in &self.files {
                fs::remove_file(file).map_err(|err| Error::writing(err, "the transcript", file))?;
            }
        }
        empty(&self.rule.made);
        Ok(())
    }
}

/// Removes empty folders, from the last in the list, which is the innermost, to the first. Stops at
/// the first folder that cannot be removed.
pub(crate) fn empty(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        if fs::remove_dir(folder).is_err() && folder.exists() {
            return;
        }
    }
}

/// Removes the last occurrence of a text from a file, and the file itself if nothing else is in it.
pub(super) fn unwrite(file: &Path, text: &str) -> Result<()> {
    let Some(now) = read(file)? else { return Ok(()) };
    let Some(at) = now.rfind(text) else { return Ok(()) };
    let without = [&now[..at], &now[at + text.len()..]].concat();
    if without.is_empty() {
        fs::remove_file(file).map_err(|err| Error::writing(err, "the list", file))
    } else {
        replace(file, &without)
    }
}
