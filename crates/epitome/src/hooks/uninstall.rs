//! Removes an installed hook.

use std::fs;
use std::path::{Path, PathBuf};

use epitome_formats::Setting;

use crate::config::Config;
use crate::error::{Error, Result};

use super::record::{Installed, LeftOut, Record, Rule, lock};
use super::settings::{RemovedEntry, is_without, take};
use super::{hook, purge, read, real, replace, unchanged};

/// A planned removal of rules of an agent, and of its hook if no other rule remains. Nothing is
/// changed yet.
#[derive(Clone, Debug)]
pub struct Uninstall {
    /// The name of the agent.
    pub agent: String,
    /// The rules that will be removed.
    pub rules: Vec<Rule>,
    /// How the agent's settings change; `None` if other rules for the agent remain.
    pub settings: Option<FileChange>,
}

/// How a file of an agent's settings changes when epitome's entry is removed from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// The file gets another text.
    Text {
        /// The file.
        file: PathBuf,
        /// The current text of the file.
        before: String,
        /// The text of the file after the removal.
        after: String,
    },
    /// The file is removed, together with folders that were created for it and are empty then.
    Gone {
        /// The file.
        file: PathBuf,
        /// The current text of the file.
        before: String,
    },
    /// The file is kept as it is, because epitome's entry cannot be removed exactly: usually the
    /// user edited it.
    Kept {
        /// The file.
        file: PathBuf,
    },
    /// Nothing changes: epitome's entry is not in the file any more, or the file does not exist or
    /// is not the valid JSON that it should be.
    Nothing {
        /// The file.
        file: PathBuf,
    },
}

impl Uninstall {
    /// Plans to remove the hooks of one agent, for one project and one output folder. `None` means
    /// all agents, all projects or all output folders.
    ///
    /// # Errors
    ///
    /// `Unreadable` or `NewerFormat` if the record of installed hooks cannot be parsed; the errors
    /// of reading it or the agents' settings.
    pub fn plan(
        config: &Config,
        agent: Option<&str>,
        project: Option<&Path>,
        out: Option<&Path>,
    ) -> Result<Vec<Uninstall>> {
        let Record { installed, rules, replaced, .. } = Record::load(config)?;
        let project = project.map(real);
        let out = out.map(real);
        let is_meant = |rule: &Rule| {
            (project.is_none() || rule.project == project)
                && out.as_ref().is_none_or(|out| *out == real(&rule.out))
        };
        let mut plans = Vec::new();
        for it in installed.iter().filter(|it| agent.is_none_or(|agent| agent == it.agent)) {
            let (gone, left): (Vec<Rule>, Vec<Rule>) =
                rules.iter().filter(|rule| rule.agent == it.agent).cloned().partition(is_meant);
            if gone.is_empty() && (project.is_some() || out.is_some()) {
                continue;
            }
            let settings = left.is_empty().then(|| back(it)).transpose()?;
            let replaced = replaced.iter().filter(|rule| rule.agent == it.agent && is_meant(rule));
            let rules = gone.into_iter().chain(replaced.cloned()).collect();
            plans.push(Uninstall { agent: it.agent.clone(), rules, settings });
        }
        Ok(plans)
    }

    /// Removes the rules from the record and, if no other rule of the agent remains, the hook from
    /// the agent's settings. Transcripts are kept: see [`Purge`](super::Purge).
    ///
    /// # Errors
    ///
    /// `Changed` if the settings changed since the plan; `HardLinked` if their file has several
    /// names; `Disk` or `NoPermission` if a file cannot be written; the errors of reading the
    /// settings or the record of installed hooks.
    pub fn carry_out(&self, config: &Config) -> Result<()> {
        let _lock = lock(config, "lock")?;
        let mut record = Record::load(config)?;
        let installed = record.installed.iter().find(|it| it.agent == self.agent).cloned();
        match &self.settings {
            Some(FileChange::Text { file, before, after }) => {
                unchanged(file, before)?;
                replace(file, after)?;
            }
            Some(FileChange::Gone { file, before }) => {
                unchanged(file, before)?;
                fs::remove_file(file).map_err(|err| Error::writing(err, "the settings", file))?;
            }
            Some(FileChange::Kept { .. } | FileChange::Nothing { .. }) | None => {}
        }
        self.forget(config, &mut record).inspect_err(|_| self.put_back())?;
        if let (Some(FileChange::Gone { .. }), Some(it)) = (&self.settings, installed) {
            purge::empty(&it.folders);
        }
        // Epitome's folder is removed if nothing else is in it. Otherwise this fails, and the error
        // is ignored.
        fs::remove_dir(&config.home).ok();
        Ok(())
    }

    /// Removes the rules from the record, and the hook too if no other rule of its agent remains.
    /// Then removes the ignore lines and the empty folders that were created only for these rules.
    fn forget(&self, config: &Config, record: &mut Record) -> Result<()> {
        if self.settings.is_some() {
            record.installed.retain(|it| it.agent != self.agent);
        }
        record.rules.retain(|rule| !self.rules.contains(rule));
        record.replaced.retain(|rule| !self.rules.contains(rule));
        for rule in &self.rules {
            let mut others = record.rules.iter().chain(&record.replaced);
            let is_shared = others.any(|other| other.left_out == rule.left_out);
            if let (Some(LeftOut { file, text }), false) = (&rule.left_out, is_shared) {
                purge::unwrite(file, text)?;
            }
            if !record.rules.iter().any(|other| other.out == rule.out) {
                purge::empty(&rule.made);
            }
        }
        record.store(config)
    }

    /// Writes the settings as they were before the removal. This is called if the record could not
    /// be changed: it still says that the hook is installed.
    fn put_back(&self) {
        match &self.settings {
            // If this fails as well, the first error is reported, and a second `uninstall` will
            // find no entry of epitome in the settings.
            Some(FileChange::Text { file, before, .. } | FileChange::Gone { file, before }) => {
                replace(file, before).ok();
            }
            Some(FileChange::Kept { .. } | FileChange::Nothing { .. }) | None => {}
        }
    }
}

/// The change of a file that removes the hook which was installed in it.
pub(super) fn back(installed: &Installed) -> Result<FileChange> {
    let file = installed.file.clone();
    let Some(now) = read(&file)? else { return Ok(FileChange::Nothing { file }) };
    if let Some(after) = installed.before(&now) {
        return Ok(if installed.made {
            FileChange::Gone { file, before: now }
        } else {
            FileChange::Text { file, before: now, after }
        });
    }
    let (Some(entry), Ok(Setting::Listed { list, .. })) =
        (&installed.entry, hook(&installed.agent).map(|target| target.hook.setting))
    else {
        return Ok(FileChange::Kept { file });
    };
    let moved = installed.moved_back(&now).filter(|after| is_without(after, &now, list, entry));
    if let Some(after) = moved {
        return Ok(FileChange::Text { file, before: now, after });
    }
    Ok(match take(&now, list, entry, installed.keys) {
        RemovedEntry::Out(after) => FileChange::Text { file, before: now, after },
        RemovedEntry::Changed => FileChange::Kept { file },
        RemovedEntry::Missing => FileChange::Nothing { file },
    })
}
