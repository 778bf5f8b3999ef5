//! An agent with a temporary home and its model server.

use crate::action::Action;
use crate::agent::Agent;
use crate::home::Home;
use crate::process::{Finished, run};
use anyhow::Context;
use model_server::ToolCall;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Timeout of a turn: it takes a few seconds, but more on a busy machine.
const TURN: Duration = Duration::from_secs(120);

/// An agent in a home of its own.
#[derive(Debug)]
pub struct Sandbox {
    agent: &'static dyn Agent,
    home: Home,
    url: String,
}

/// A session that is stored where the agent finds it.
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
    /// If the home cannot be written.
    pub fn new(agent: &'static dyn Agent, url: &str) -> anyhow::Result<Self> {
        let home = Home::new()?;
        agent.prepare(&home, url)?;
        Ok(Self { agent, home, url: url.to_owned() })
    }

    /// The home.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Makes the agent compact its sessions itself after a few thousand tokens, if it can.
    pub(crate) fn compact_early(&self) -> anyhow::Result<()> {
        self.agent.compact_early(&self.home)
    }

    /// Starts a session with `prompt` and waits for the end of the turn.
    ///
    /// # Errors
    ///
    /// If the agent cannot be installed or started; a failure of the agent is in the result.
    pub fn new_session(&self, prompt: &str) -> anyhow::Result<Finished> {
        self.turn(None, prompt)
    }

    /// Starts a session with `prompt` behind `epitome wrap`, with these options and with the
    /// archive in `archive`, and waits for the end of the turn.
    ///
    /// # Errors
    ///
    /// As for [`new_session`](Sandbox::new_session).
    pub fn new_wrapped_session(
        &self,
        epitome: &Path,
        archive: &Path,
        options: &[&str],
        prompt: &str,
    ) -> anyhow::Result<Finished> {
        let agent = self.agent.command(None, prompt)?;
        let mut arguments: Vec<&OsStr> = agent.get_args().collect();
        let mut program = agent.get_program().to_owned();
        if program.as_encoded_bytes().ends_with(b"/node") {
            // The arguments of `wrap` must come after the script.
            program = self.script(&program, arguments.remove(0))?.into();
        }
        let mut command = Command::new(epitome);
        command.args(["wrap", self.agent.name()]).args(options).arg("--program").arg(program);
        if let Some(upstream) = self.agent.upstream(&self.url) {
            command.args(["--upstream", &upstream]);
        }
        command.arg("--").args(arguments);
        self.dress(&mut command);
        run(command.env("EPITOME_HOME", archive), TURN)
    }

    /// A program that runs a script with node.
    fn script(&self, node: &OsStr, script: &OsStr) -> anyhow::Result<PathBuf> {
        let text = format!("#!/bin/sh\nexec '{}' '{}' \"$@\"\n", node.display(), script.display());
        let path = self.home.write("agent.sh", text.as_bytes())?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(path)
    }

    /// Resumes the session `id` with `prompt` and waits for the end of the turn.
    ///
    /// # Errors
    ///
    /// If the agent cannot be installed or started; a failure of the agent is in the result.
    pub fn resume(&self, id: &str, prompt: &str) -> anyhow::Result<Finished> {
        self.turn(Some(id), prompt)
    }

    /// The session files in this home, the one written last at the end.
    pub fn sessions(&self) -> Vec<PathBuf> {
        self.agent.sessions(&self.home)
    }

    /// The session written last.
    ///
    /// # Errors
    ///
    /// If the home has no session, or the session's id cannot be found.
    pub fn latest(&self) -> anyhow::Result<Placed> {
        let path = self.sessions().pop().context("the agent stored no session")?;
        let id = self.agent.session_id(&self.text(&path)?)?;
        Ok(Placed { id, path })
    }

    /// The bytes of a session: of its file, or of its rows as lines.
    ///
    /// # Errors
    ///
    /// If the session cannot be read.
    pub fn read(&self, session: &Path) -> anyhow::Result<Vec<u8>> {
        self.agent.read(session)
    }

    /// The text of a session.
    ///
    /// # Errors
    ///
    /// If the session cannot be read, or is not UTF-8.
    pub fn text(&self, session: &Path) -> anyhow::Result<String> {
        String::from_utf8(self.read(session)?).context("a session is UTF-8")
    }

    /// Stores a recorded session where the agent finds it, with the paths of this home.
    ///
    /// # Errors
    ///
    /// If the text has no session id or the home cannot be written.
    pub fn place(&self, recorded: &str) -> anyhow::Result<Placed> {
        let text = self.home.localise(recorded);
        let id = self.agent.session_id(&text)?;
        let path = self.agent.put(&self.home, &text, &|command| self.dress(command))?;
        Ok(Placed { id, path })
    }

    /// The folder with the sub-agents of a session, or a folder that contains it.
    pub(crate) fn beside(&self, session: &Placed) -> PathBuf {
        self.agent.beside(&session.path, &session.id)
    }

    /// The tool call of this agent that performs `action` in the project.
    pub fn call(&self, action: &Action) -> ToolCall {
        self.agent.call(self.home.project(), action)
    }

    fn turn(&self, resume: Option<&str>, prompt: &str) -> anyhow::Result<Finished> {
        let mut command = self.agent.command(resume, prompt)?;
        self.dress(&mut command);
        run(&mut command, TURN)
    }

    /// Sets the folder and the environment for a program of the agent.
    pub(crate) fn dress(&self, command: &mut Command) {
        command
            .current_dir(self.home.project())
            .env_clear()
            .env("HOME", self.home.path())
            .env("TMPDIR", self.home.temporary())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .envs([("USER", "dev"), ("LOGNAME", "dev"), ("SHELL", "/bin/sh"), ("TERM", "dumb")])
            .envs([("LANG", "C.UTF-8"), ("TZ", "UTC"), ("NO_COLOR", "1")])
            .envs([("NO_PROXY", "127.0.0.1"), ("no_proxy", "127.0.0.1")])
            .envs(self.agent.environment(&self.url));
    }
}
