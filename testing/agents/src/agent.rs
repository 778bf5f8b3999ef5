//! What differs between the agents.

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

/// What is known of an agent.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The name used for folders and on the command line. That of the agent itself, and of what it
    /// is driven with if it is driven in several ways.
    pub name: &'static str,
    /// What is installed from the npm registry: `@openai/codex@0.169.0`. This is the one place of a
    /// version: another one is installed when the line changes.
    pub package: &'static str,
    /// The ways that its sessions can be compacted in.
    pub ways: &'static [Way],
    /// What it sends in the place of a result that a native compaction marks in its record. Others
    /// append a record instead.
    pub marked_text: Option<&'static str>,
    /// How big the project is that it is recorded with.
    pub scale: Scale,
    /// Whether it only appends to a session that it goes on with; of others less is recorded.
    pub appends: bool,
    /// Whether its recordings have sub-agents, or what stands for one.
    pub records_sub_agents: bool,
    /// Whether sessions are ported to it and from it.
    pub is_ported: bool,
    /// The settings below the home that a hook is installed in, if it is tried that the agent calls
    /// it.
    pub hook_settings: Option<&'static str>,
    /// The prompt with which it is asked to compact. Others do it when their context is full.
    pub compact_command: Option<&'static str>,
}

impl Facts {
    /// What holds of most agents.
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

    /// The version that is installed.
    pub fn version(&self) -> &'static str {
        self.package.rsplit_once('@').map_or("", |(_, version)| version)
    }
}

/// An agent that this crate can install and drive: a file of its own, and a line in
/// [`AGENTS`](crate::AGENTS).
pub trait Agent: Debug + Sync {
    /// What is known of it.
    fn facts(&self) -> Facts;

    /// The name used for folders and on the command line.
    fn name(&self) -> &'static str {
        self.facts().name
    }

    /// Writes the settings into the home: where the model is, and no questions.
    ///
    /// # Errors
    ///
    /// When the home cannot be written.
    fn prepare(&self, home: &Home, url: &str) -> anyhow::Result<()>;

    /// Makes the agent compact its sessions by itself after a few thousand tokens, where it can.
    ///
    /// # Errors
    ///
    /// When the home cannot be written, or the agent is not made to compact here.
    fn compact_early(&self, _home: &Home) -> anyhow::Result<()> {
        bail!("{} is not made to compact here", self.name())
    }

    /// The command line of one turn, without its environment.
    ///
    /// # Errors
    ///
    /// When the agent cannot be installed.
    fn command(&self, resume: Option<&str>, prompt: &str) -> anyhow::Result<Command>;

    /// The environment that only this agent needs.
    fn environment(&self, _url: &str) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The session files of the home, the one written last at the end.
    fn sessions(&self, home: &Home) -> Vec<PathBuf>;

    /// The bytes of a session.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    fn read(&self, session: &Path) -> anyhow::Result<Vec<u8>> {
        fs::read(session).with_context(|| session.display().to_string())
    }

    /// Puts a session where the agent finds it; `environment` gives a program of the agent the
    /// environment of a turn.
    ///
    /// # Errors
    ///
    /// When the text has no id, or the home cannot be written.
    fn put(
        &self,
        home: &Home,
        text: &str,
        _environment: &dyn Fn(&mut Command),
    ) -> anyhow::Result<PathBuf> {
        home.write(self.place(home, &self.session_id(text)?), text.as_bytes())
    }

    /// The id of a session by its text.
    ///
    /// # Errors
    ///
    /// When it has none.
    fn session_id(&self, text: &str) -> anyhow::Result<String> {
        records(text)
            .find_map(|record| record["sessionId"].as_str().map(str::to_owned))
            .context("no record with a session id")
    }

    /// Where below the home the agent looks for the session `id`.
    fn place(&self, home: &Home, id: &str) -> PathBuf;

    /// The folder that holds what a session's sub-agents did, or a folder around it.
    fn beside(&self, session: &Path, _id: &str) -> PathBuf {
        session.with_extension("")
    }

    /// The call of this agent's tools that does `action`.
    fn call(&self, project: &Path, action: &Action) -> ToolCall;
}

/// How a session is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// In its records.
    Rewrite,
    /// As the agent itself does it: by a record of its own behind the end, or by its marks.
    Native,
    /// By a summary of all but the last turn, in the agent's own record.
    Summary,
}

impl Way {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rewrite => "rewrite",
            Self::Native => "native",
            Self::Summary => "summary",
        }
    }
}

/// The records of a session's text; a line that is not JSON is left out.
pub(crate) fn records(text: &str) -> impl Iterator<Item = Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok())
}
