//! An agent, a private home and the server it talks to.

use crate::home::Home;
use crate::process::{Finished, run};
use crate::scenario::Action;
use crate::{claude, codex, gemini, install, opencode, pi, qwen};
use anyhow::Context;
use model_server::ToolCall;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// No scripted turn takes longer than a few seconds, but a busy machine may.
const TURN: Duration = Duration::from_secs(120);

/// An agent this crate can install and drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Agent {
    /// pi 1.5.2, talking Anthropic Messages.
    Pi,
    /// pi 1.5.2, talking OpenAI Chat Completions.
    PiChat,
    /// Claude Code 2.1.329.
    Claude,
    /// Codex 0.169.0 with a tool for each thing.
    Codex,
    /// Codex 0.169.0 with one tool that takes scripts.
    CodexScripts,
    /// Gemini CLI 0.61.0.
    Gemini,
    /// OpenCode 1.18.33, talking Anthropic Messages.
    Opencode,
    /// Qwen Code 0.15.10, talking OpenAI Chat Completions.
    Qwen,
}

impl Agent {
    /// Every agent, in the order they are shown.
    pub const ALL: [Self; 8] = [
        Self::Pi,
        Self::PiChat,
        Self::Claude,
        Self::Codex,
        Self::CodexScripts,
        Self::Gemini,
        Self::Opencode,
        Self::Qwen,
    ];

    /// The name used for folders and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pi => "pi",
            Self::PiChat => "pi-chat",
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::CodexScripts => "codex-scripts",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Qwen => "qwen",
        }
    }

    /// The version that is installed, as its registry writes it.
    pub fn version(self) -> &'static str {
        install::version(self)
    }

    fn driver(self) -> &'static dyn Driver {
        match self {
            Self::Pi => &pi::Pi { api: pi::Api::Anthropic },
            Self::PiChat => &pi::Pi { api: pi::Api::Chat },
            Self::Claude => &claude::Claude,
            Self::Codex => &codex::Codex { tools: codex::Tools::Single },
            Self::CodexScripts => &codex::Codex { tools: codex::Tools::Scripts },
            Self::Gemini => &gemini::Gemini,
            Self::Opencode => &opencode::Opencode,
            Self::Qwen => &qwen::Qwen,
        }
    }
}

impl std::str::FromStr for Agent {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> anyhow::Result<Self> {
        let known = || Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|agent| agent.name() == name)
            .with_context(|| format!("no agent is called {name}; there are {}", known()))
    }
}

/// What differs between the agents.
pub(crate) trait Driver {
    /// Writes the settings into the home: where the model is, and no questions.
    fn prepare(&self, home: &Home, url: &str) -> anyhow::Result<()>;
    /// Makes the agent compact its sessions by itself after a few thousand tokens, where it can.
    fn compact_early(&self, home: &Home) -> anyhow::Result<()>;
    /// The command line of one turn, without its environment.
    fn command(&self, resume: Option<&str>, prompt: &str) -> anyhow::Result<Command>;
    /// The environment that only this agent needs.
    fn environment(&self, url: &str) -> Vec<(&'static str, String)>;
    /// The session files of the home, the one written last at the end.
    fn sessions(&self, home: &Home) -> Vec<PathBuf>;
    /// The bytes of a session.
    fn read(&self, session: &Path) -> anyhow::Result<Vec<u8>> {
        fs::read(session).with_context(|| session.display().to_string())
    }
    /// Puts a session where the agent finds it; `dressed` gives a program of the agent the
    /// environment of a turn.
    fn put(
        &self,
        home: &Home,
        text: &str,
        _dressed: &dyn Fn(&mut Command),
    ) -> anyhow::Result<PathBuf> {
        home.write(self.place(home, &self.session_id(text)?), text.as_bytes())
    }
    /// The id of a session by its text.
    fn session_id(&self, text: &str) -> anyhow::Result<String>;
    /// Where below the home the agent looks for the session `id`.
    fn place(&self, home: &Home, id: &str) -> PathBuf;
    /// The folder that holds what a session's sub-agents did, or a folder around it.
    fn beside(&self, session: &Path, _id: &str) -> PathBuf {
        session.with_extension("")
    }
    /// The call of this agent's tools that does `action`.
    fn call(&self, project: &Path, action: &Action) -> ToolCall;
}

/// An agent in a home of its own.
#[derive(Debug)]
pub struct Sandbox {
    agent: Agent,
    home: Home,
    url: String,
}

/// A session that has been put where the agent finds it.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The session's id.
    pub id: String,
    /// The file the agent will append to.
    pub path: PathBuf,
}

impl Sandbox {
    /// A fresh home for `agent`, whose only service is at `url`.
    ///
    /// # Errors
    ///
    /// When the home cannot be written.
    pub fn new(agent: Agent, url: &str) -> anyhow::Result<Self> {
        let home = Home::new()?;
        agent.driver().prepare(&home, url)?;
        Ok(Self { agent, home, url: url.to_owned() })
    }

    /// The home.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Makes the agent compact its sessions by itself after a few thousand tokens, where it can.
    pub(crate) fn compact_early(&self) -> anyhow::Result<()> {
        self.agent.driver().compact_early(&self.home)
    }

    /// Starts a session with `prompt` and waits for the end of the turn.
    ///
    /// # Errors
    ///
    /// When the agent cannot be installed or started; its own failure is in the result.
    pub fn new_session(&self, prompt: &str) -> anyhow::Result<Finished> {
        self.turn(None, prompt)
    }

    /// Resumes the session `id` with `prompt` and waits for the end of the turn.
    ///
    /// # Errors
    ///
    /// When the agent cannot be installed or started; its own failure is in the result.
    pub fn resume(&self, id: &str, prompt: &str) -> anyhow::Result<Finished> {
        self.turn(Some(id), prompt)
    }

    /// The session files in this home, the one written last at the end.
    pub fn sessions(&self) -> Vec<PathBuf> {
        self.agent.driver().sessions(&self.home)
    }

    /// The session written last.
    ///
    /// # Errors
    ///
    /// When there is none, or its id is not to be found.
    pub fn latest(&self) -> anyhow::Result<Placed> {
        let path = self.sessions().pop().context("the agent stored no session")?;
        let id = self.agent.driver().session_id(&self.text(&path)?)?;
        Ok(Placed { id, path })
    }

    /// The bytes of a session: of its file, or of its rows as lines.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn read(&self, session: &Path) -> anyhow::Result<Vec<u8>> {
        self.agent.driver().read(session)
    }

    /// The text of a session.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is none.
    pub fn text(&self, session: &Path) -> anyhow::Result<String> {
        String::from_utf8(self.read(session)?).context("a session is UTF-8")
    }

    /// Puts a recorded session where the agent finds it, with this home's paths in it.
    ///
    /// # Errors
    ///
    /// When the text holds no session id or the home cannot be written.
    pub fn place(&self, recorded: &str) -> anyhow::Result<Placed> {
        let text = self.home.localise(recorded);
        let id = self.agent.driver().session_id(&text)?;
        let path = self.agent.driver().put(&self.home, &text, &|command| self.dress(command))?;
        Ok(Placed { id, path })
    }

    /// The folder that holds what a session's sub-agents did, or a folder around it.
    pub(crate) fn beside(&self, session: &Placed) -> PathBuf {
        self.agent.driver().beside(&session.path, &session.id)
    }

    /// The call of this agent's tools that does `action` in the project.
    pub fn call(&self, action: &Action) -> ToolCall {
        self.agent.driver().call(self.home.project(), action)
    }

    fn turn(&self, resume: Option<&str>, prompt: &str) -> anyhow::Result<Finished> {
        let driver = self.agent.driver();
        let mut command = driver.command(resume, prompt)?;
        self.dress(&mut command);
        run(&mut command, TURN)
    }

    /// The folder and the environment of every program of the agent.
    pub(crate) fn dress(&self, command: &mut Command) {
        let driver = self.agent.driver();
        command
            .current_dir(self.home.project())
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .envs([("USER", "dev"), ("LOGNAME", "dev"), ("SHELL", "/bin/sh"), ("TERM", "dumb")])
            .envs([("LANG", "C.UTF-8"), ("TZ", "UTC"), ("NO_COLOR", "1")])
            .envs([("NO_PROXY", "127.0.0.1"), ("no_proxy", "127.0.0.1")])
            .envs(driver.environment(&self.url));
    }
}

/// The records of a session's text; a line that is not JSON is left out.
pub(crate) fn records(text: &str) -> impl Iterator<Item = Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok())
}
