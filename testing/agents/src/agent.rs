//! The differences between agents.

use crate::action::Action;
use crate::home::Home;
use crate::project::Scale;
use anyhow::{Context, bail};
use model_server::ToolCall;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The properties of an agent.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The name used for folders and on the command line: the name of the agent, followed by the
    /// way in which it is driven if there are several ways.
    pub name: &'static str,
    /// The npm package to install: `@openai/codex@0.169.0`. The version is defined only here; a
    /// change of it installs the other version.
    pub package: &'static str,
    /// The ways in which sessions of the agent can be compacted.
    pub ways: &'static [Way],
    /// The text that the agent sends in place of a result that a native compaction marks; `None`
    /// for an agent without marks, for which a native compaction appends a record.
    pub marked_text: Option<&'static str>,
    /// The size of the project for recordings.
    pub scale: Scale,
    /// Whether the agent only appends to the file of a session that it resumes; for other agents
    /// less is recorded.
    pub appends: bool,
    /// Whether recordings of the agent have sub-agents, or a command in place of one.
    pub records_sub_agents: bool,
    /// Whether sessions are ported to the agent and from it.
    pub is_ported: bool,
    /// The file of settings in which a hook is installed, relative to the home; `None` if no test
    /// checks that the agent runs the hook.
    pub hook_settings: Option<&'static str>,
    /// The prompt that makes the agent compact; `None` for an agent that compacts when its context
    /// is full.
    pub compact_command: Option<&'static str>,
}

impl Facts {
    /// The properties of most agents.
    pub(crate) const MOST: Self = Self {
        name: "",
        package: "",
        ways: &[Way::Native, Way::Rewrite, Way::Summary],
        marked_text: None,
        scale: Scale::SMALL,
        appends: true,
        records_sub_agents: true,
        is_ported: false,
        hook_settings: None,
        compact_command: None,
    };

    /// The installed version.
    pub fn version(&self) -> &'static str {
        self.package.rsplit_once('@').map_or("", |(_, version)| version)
    }
}

/// The provider that an agent sends its requests to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provider {
    /// A provider that only the settings in the home define.
    Scripted,
    /// The agent's own provider, at the address of the model server. `epitome wrap` changes the
    /// address of this provider.
    Own,
}

/// An agent that this crate can install and drive. To add one, write a file for it and add it to
/// [`AGENTS`](crate::AGENTS).
pub trait Agent: Debug + Sync {
    /// The properties of the agent.
    fn facts(&self) -> Facts;

    /// The name used for folders and on the command line.
    fn name(&self) -> &'static str {
        self.facts().name
    }

    /// Writes the settings into the home: the address of the model, and that the agent asks no
    /// questions.
    ///
    /// # Errors
    ///
    /// If the home cannot be written.
    fn prepare(&self, home: &Home, url: &str) -> anyhow::Result<()>;

    /// Makes the agent compact its sessions itself after a few thousand tokens, if it can.
    ///
    /// # Errors
    ///
    /// If the home cannot be written, or this agent has no such setting here.
    fn compact_early(&self, _home: &Home) -> anyhow::Result<()> {
        bail!("{} is not made to compact here", self.name())
    }

    /// The command line of one turn, without its environment.
    ///
    /// # Errors
    ///
    /// If the agent cannot be installed.
    fn command(&self, resume: Option<&str>, prompt: &str) -> anyhow::Result<Command>;

    /// Environment variables that only this agent needs.
    fn environment(&self, _url: &str) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The base URL that `epitome wrap` is given in an option, for an agent whose base URL is not
    /// in a variable.
    fn upstream(&self, _url: &str) -> Option<String> {
        None
    }

    /// The session files in the home, the one written last at the end.
    fn sessions(&self, home: &Home) -> Vec<PathBuf>;

    /// The bytes of a session.
    ///
    /// # Errors
    ///
    /// If the session cannot be read.
    fn read(&self, session: &Path) -> anyhow::Result<Vec<u8>> {
        fs::read(session).with_context(|| session.display().to_string())
    }

    /// Stores a session where the agent finds it. If a program of the agent does this, it runs
    /// with the environment that `environment` sets.
    ///
    /// # Errors
    ///
    /// If the text has no id, or the home cannot be written.
    fn put(
        &self,
        home: &Home,
        text: &str,
        _environment: &dyn Fn(&mut Command),
    ) -> anyhow::Result<PathBuf> {
        home.write(self.place(home, &self.session_id(text)?), text.as_bytes())
    }

    /// The id of a session, from its text.
    ///
    /// # Errors
    ///
    /// If the text has no id.
    fn session_id(&self, text: &str) -> anyhow::Result<String> {
        records(text)
            .find_map(|record| record["sessionId"].as_str().map(str::to_owned))
            .context("no record with a session id")
    }

    /// Where below the home the agent looks for the session `id`.
    fn place(&self, home: &Home, id: &str) -> PathBuf;

    /// The folder with the files of a session's sub-agents, or a folder that contains that folder.
    fn beside(&self, session: &Path, _id: &str) -> PathBuf {
        session.with_extension("")
    }

    /// The tool call of this agent that performs `action`.
    fn call(&self, project: &Path, action: &Action) -> ToolCall;
}

/// How a session is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// By rewriting the records of the session.
    Rewrite,
    /// In the agent's own way: by an appended record, or by marks.
    Native,
    /// By a summary of all but the last turn, in the agent's own record.
    Summary,
}

impl Way {
    /// The name of the way in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rewrite => "rewrite",
            Self::Native => "native",
            Self::Summary => "summary",
        }
    }
}

/// The records in a session's text, without lines that are not JSON.
pub(crate) fn records(text: &str) -> impl Iterator<Item = Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok())
}
