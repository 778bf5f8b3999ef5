//! Adds an MCP server, a status line or a command to agents' settings, and removes it.
//!
//! A change is planned as an [`Add`] or a [`Remove`], which can be shown to the user, and is then
//! carried out. The rest of an agent's settings stays as it is, to the byte. Epitome records what
//! it inserts, and removes only that. Hooks are installed by [`hooks`](crate::hooks).

mod member;
mod record;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use epitome_agents::{AGENTS, AdditionTarget};
use epitome_formats::AdditionForm;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::hooks::{FileChange, missing_above, purge, read, real, replace, unchanged};
use member::Removed;
use record::{Added, Record, lock};

/// What is added to an agent's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdditionKind {
    /// The server of `epitome mcp`.
    Mcp,
    /// The command `epitome statusline`.
    StatusLine,
    /// A command that the user types in the agent, such as `/epitome`. It is a file of its own.
    Command,
}

impl AdditionKind {
    /// All kinds.
    pub const ALL: [AdditionKind; 3] =
        [AdditionKind::Mcp, AdditionKind::StatusLine, AdditionKind::Command];

    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            AdditionKind::Mcp => "MCP server",
            AdditionKind::StatusLine => "status line",
            AdditionKind::Command => "command",
        }
    }

    /// The option of `install` and `uninstall` that selects this kind.
    pub fn option(self) -> &'static str {
        match self {
            AdditionKind::Mcp => "--mcp",
            AdditionKind::StatusLine => "--statusline",
            AdditionKind::Command => "--command",
        }
    }

    /// The subcommand of epitome that the agent runs. `None` for [`AdditionKind::Command`], which
    /// is a prompt for the agent's model.
    fn command(self) -> Option<&'static str> {
        match self {
            AdditionKind::Mcp => Some("mcp"),
            AdditionKind::StatusLine => Some("statusline"),
            AdditionKind::Command => None,
        }
    }

    fn target(self, agent: &str) -> Option<AdditionTarget> {
        let agent = epitome_agents::find_agent(agent)?;
        match self {
            AdditionKind::Mcp => agent.mcp(),
            AdditionKind::StatusLine => agent.status_line(),
            AdditionKind::Command => agent.command(),
        }
    }

    /// The names of the agents whose settings can hold an addition of this kind.
    pub fn agents(self) -> Vec<&'static str> {
        let names = AGENTS.iter().map(|agent| agent.name());
        names.filter(|name| self.target(name).is_some()).collect()
    }
}

/// A planned addition. Nothing is changed yet.
#[derive(Clone, Debug)]
pub struct Add {
    /// The file that is changed or created: the agent's settings, or the file of the command.
    pub file: PathBuf,
    /// The text of the file now; `None` if the file does not exist.
    pub before: Option<String>,
    /// The text of the file after the addition.
    pub after: String,
    /// What the user types in the agent to run an added command. `None` for other additions.
    pub typed: Option<&'static str>,
    added: Added,
}

/// A planned removal. Nothing is changed yet.
#[derive(Clone, Debug)]
pub struct Remove {
    /// The agent.
    pub agent: String,
    /// What is removed.
    pub kind: AdditionKind,
    /// How the agent's settings change.
    pub settings: FileChange,
}

/// An addition to an agent's settings that epitome has recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledAddition {
    /// The agent.
    pub agent: String,
    /// What was added.
    pub kind: AdditionKind,
    /// The file that was changed or created.
    pub file: PathBuf,
    /// Whether the addition can still be removed exactly. False if the user changed or removed it,
    /// for example.
    pub is_there: bool,
}

/// All additions to agents' settings that epitome has recorded, in the order in which they were
/// made.
///
/// # Errors
///
/// `Unreadable` if epitome's record cannot be parsed; `NewerFormat` if a newer epitome wrote it;
/// the errors of reading the record or an agent's settings.
pub fn list_installed(config: &Config) -> Result<Vec<InstalledAddition>> {
    let record = Record::load(config)?;
    let installed = record.added.iter().map(|added| {
        let change = back(added)?;
        let is_there = matches!(change, FileChange::Text { .. } | FileChange::Gone { .. });
        let Added { agent, kind, file, .. } = added.clone();
        Ok(InstalledAddition { agent, kind, file, is_there })
    });
    installed.collect()
}

impl Add {
    /// Plans to add something to the settings of an agent. `program` is the path of epitome, which
    /// the agent will run.
    ///
    /// # Errors
    ///
    /// `Refused` if the agent is unknown or has no setting for an addition of this kind; `Exists`
    /// if its settings already have such an addition, and epitome did not make it or the user
    /// changed it since; `Unreadable` if the settings or epitome's record cannot be parsed;
    /// `NewerFormat` if a newer epitome wrote the record; the errors of reading the record or the
    /// settings.
    pub fn plan(config: &Config, agent: &str, kind: AdditionKind, program: &Path) -> Result<Add> {
        let Some(AdditionTarget { addition, settings }) = kind.target(agent) else {
            let what = format!("no {} can be added to the settings of {agent}", kind.name());
            let known = kind.agents().join(", ");
            return Err(
                Error::new(ErrorKind::Refused, what).with_hint(format!("to these it can: {known}"))
            );
        };
        let record = Record::load(config)?;
        let file = real(&settings(&config.agents).join(addition.file));
        let before = read(&file)?;
        let known = record.added.iter().find(|it| it.agent == agent && it.kind == kind);
        // An earlier addition of this kind is removed from the text first, so that there is at most
        // one.
        let base = match known.filter(|it| it.file == file).map(back).transpose()? {
            Some(FileChange::Text { after, .. }) => Some(after),
            Some(FileChange::Gone { .. }) => None,
            Some(FileChange::Kept { .. } | FileChange::Nothing { .. }) | None => before.clone(),
        };
        let program = program.to_string_lossy();
        let home = config.home.to_string_lossy();
        let mut words = vec![&*program];
        words.extend(kind.command());
        if config.home_is_given {
            words.extend(["--home", &*home]);
        }
        let text = base.as_deref().unwrap_or_default();
        let put = match addition.form {
            AdditionForm::Member { keys, value } => member::put(text, keys, &value(&words)),
            AdditionForm::Table { keys, text: table } => table::put(text, keys, &table(&words)),
            AdditionForm::File { text, .. } => own_file(base.as_deref(), text(&words)),
        };
        let (after, keys) = put.map_err(|err| err.at(&file))?;
        let folders = known.map_or_else(|| missing_above(&file), |it| it.folders.clone());
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let added = Added::new((agent, kind), (&file, base.as_deref(), &after), words, keys);
        let typed = match addition.form {
            AdditionForm::File { typed, .. } => Some(typed),
            AdditionForm::Member { .. } | AdditionForm::Table { .. } => None,
        };
        Ok(Add { file, before, after, typed, added: Added { folders, ..added } })
    }

    /// Whether the agent's settings change.
    pub fn changes_settings(&self) -> bool {
        self.before.as_deref() != Some(&self.after)
    }

    /// Writes the settings and the record.
    ///
    /// # Errors
    ///
    /// `Changed` if the settings changed since the plan; `Unreadable` if epitome's record cannot be
    /// parsed; `NewerFormat` if a newer epitome wrote it; `HardLinked` if the file of the settings
    /// has several names; the errors of reading and writing the record and the settings. The
    /// agent's settings are unchanged then.
    pub fn carry_out(self, config: &Config) -> Result<()> {
        let _lock = lock(config)?;
        let before = Record::load(config)?;
        if read(&self.file)? != self.before {
            return Err(Error::new(ErrorKind::Changed, "the settings changed meanwhile")
                .at(&self.file)
                .with_hint("try again"));
        }
        let mut record = before.clone();
        record.added.retain(|it| !(it.agent == self.added.agent && it.kind == self.added.kind));
        record.added.push(self.added.clone());
        record.store(config)?;
        if !self.changes_settings() {
            return Ok(());
        }
        replace(&self.file, &self.after).inspect_err(|_| drop(before.store(config)))
    }
}

impl Remove {
    /// Plans to remove what was added to the settings of one agent (`None`: of all agents), of one
    /// kind (`None`: of all kinds). The latest addition comes first: if the additions are removed
    /// in this order, and nothing else has changed the settings, the settings are then as they were
    /// at first. A removal changes its file, so plan again before the next removal from the same
    /// file.
    ///
    /// # Errors
    ///
    /// `Unreadable` if epitome's record cannot be parsed; `NewerFormat` if a newer epitome wrote
    /// it; the errors of reading the record or an agent's settings.
    pub fn plan(
        config: &Config,
        agent: Option<&str>,
        kind: Option<AdditionKind>,
    ) -> Result<Vec<Remove>> {
        let record = Record::load(config)?;
        let is_meant = |added: &&Added| {
            agent.is_none_or(|agent| agent == added.agent)
                && kind.is_none_or(|kind| kind == added.kind)
        };
        let removed = record.added.iter().rev().filter(is_meant).map(|added| {
            let Added { agent, kind, .. } = added.clone();
            Ok(Remove { agent, kind, settings: back(added)? })
        });
        removed.collect()
    }

    /// Removes the addition from the record, and also from the settings if that is possible
    /// exactly. Does nothing if the record does not contain the addition any more.
    ///
    /// # Errors
    ///
    /// `Changed` if the settings changed since the plan; `Unreadable` if epitome's record cannot be
    /// parsed; `NewerFormat` if a newer epitome wrote it; `HardLinked` if the file of the settings
    /// has several names; the errors of reading and writing the record and the settings.
    pub fn carry_out(&self, config: &Config) -> Result<()> {
        let _lock = lock(config)?;
        let mut record = Record::load(config)?;
        let is_it = |it: &Added| it.agent == self.agent && it.kind == self.kind;
        let Some(at) = record.added.iter().position(is_it) else { return Ok(()) };
        let added = record.added.remove(at);
        match &self.settings {
            FileChange::Text { file, before, after } => {
                unchanged(file, before)?;
                replace(file, after)?;
            }
            FileChange::Gone { file, before } => {
                unchanged(file, before)?;
                fs::remove_file(file).map_err(|err| Error::writing(err, "the settings", file))?;
                purge::empty(&added.folders);
                record.pass_on_folders(&added.folders);
            }
            FileChange::Kept { .. } | FileChange::Nothing { .. } => {}
        }
        record.store(config)?;
        // Epitome's folder is removed if it is empty. Otherwise this fails, and the error is
        // ignored.
        fs::remove_dir(&config.home).ok();
        Ok(())
    }
}

/// Returns `text` as the content of a new file, and 0: the number of JSON objects that were added
/// around it, as [`member::put`] counts them.
///
/// # Errors
///
/// `Exists` if the file exists already, even if it is empty.
fn own_file(before: Option<&str>, text: String) -> Result<(String, usize)> {
    match before {
        None => Ok((text, 0)),
        Some(_) => {
            let what = "a file of that name is there already";
            let hint = "epitome changes only what it added itself: remove it first";
            Err(Error::new(ErrorKind::Exists, what).with_hint(hint))
        }
    }
}

/// The change that removes an addition. [`FileChange::Kept`] if the addition cannot be removed
/// exactly, for example because the user changed it. [`FileChange::Nothing`] if the settings do not
/// contain the addition any more, if their file is missing, or if JSON settings cannot be parsed.
fn back(added: &Added) -> Result<FileChange> {
    let file = added.file.clone();
    let Some(now) = read(&file)? else { return Ok(FileChange::Nothing { file }) };
    if let Some(after) = added.splice.before(&now) {
        return Ok(match added.made {
            true => FileChange::Gone { file, before: now },
            false => FileChange::Text { file, before: now, after },
        });
    }
    let target = added.kind.target(&added.agent);
    let Some(AdditionTarget { addition, .. }) = target else {
        return Ok(FileChange::Kept { file });
    };
    let words: Vec<&str> = added.words.iter().map(String::as_str).collect();
    let moved = added.splice.moved_back(&now);
    let removed = match addition.form {
        AdditionForm::Member { keys, value } => {
            member::take(&now, moved, keys, &value(&words), added.keys)
        }
        AdditionForm::Table { keys, text } => table::take(&now, moved, keys, &text(&words)),
        AdditionForm::File { .. } => Removed::Changed,
    };
    Ok(match removed {
        Removed::Out(after) => FileChange::Text { file, before: now, after },
        Removed::Changed => FileChange::Kept { file },
        Removed::Missing => FileChange::Nothing { file },
    })
}

#[cfg(test)]
mod tests;
