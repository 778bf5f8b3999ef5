//! Other programs that read agents' sessions: their output must be the same before and after a
//! compaction.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::{Finished, install, process};

/// A timeout that no reader reaches.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The agents whose sessions `ccusage` reads.
const AGENTS: [&str; 5] = ["claude", "codex", "pi", "gemini", "opencode"];

/// A program that reads sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Shows the usage and the costs of sessions of five agents.
    Ccusage,
    /// Shows the usage and the costs of sessions of Codex; another implementation than `Ccusage`.
    CcusageCodex,
    /// Makes pages of sessions of Claude Code.
    ClaudeCodeLog,
}

impl Reader {
    /// All readers.
    pub const ALL: [Reader; 3] = [Reader::Ccusage, Reader::CcusageCodex, Reader::ClaudeCodeLog];

    /// The reader's package and version.
    pub fn name(self) -> &'static str {
        match self {
            Reader::Ccusage => install::CCUSAGE,
            Reader::CcusageCodex => install::CCUSAGE_CODEX,
            Reader::ClaudeCodeLog => install::CLAUDE_CODE_LOG,
        }
    }

    /// Whether the program that installs the reader is available.
    pub fn has_installer(self) -> bool {
        match self {
            Reader::Ccusage | Reader::CcusageCodex => {
                let mut npm = Command::new("npm");
                let asked = npm.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
                asked.status().is_ok_and(|status| status.success())
            }
            Reader::ClaudeCodeLog => crate::sdk::has_python(),
        }
    }

    /// The reader's output for the sessions in a home: tokens, costs, times and ids. Returns one
    /// text for each agent or session.
    ///
    /// # Errors
    ///
    /// If the reader cannot be installed, fails, or shows no tokens or sessions.
    pub fn figures(self, home: &Path) -> anyhow::Result<Vec<String>> {
        let usage = |command: &mut Command| -> anyhow::Result<String> {
            command.args(["session", "--json", "--offline", "--timezone", "UTC"]);
            let shown = run(command, home)?.stdout;
            ensure!(shown.contains("inputTokens"), "it shows no tokens: {shown}");
            Ok(shown)
        };
        match self {
            Reader::Ccusage => {
                let program = || install::node_program(install::CCUSAGE, "ccusage/src/cli.js");
                AGENTS.iter().map(|agent| usage(program()?.arg(agent))).collect()
            }
            Reader::CcusageCodex => {
                let script = "@ccusage/codex/dist/index.js";
                let mut program = install::node_program(install::CCUSAGE_CODEX, script)?;
                Ok(vec![usage(&mut program)?])
            }
            Reader::ClaudeCodeLog => {
                let program = install::claude_code_log()?;
                let sessions = fs::read_dir(home.join(".claude/projects/-home-dev-project"))?;
                let mut paths: Vec<PathBuf> =
                    sessions.map(|it| Ok(it?.path())).collect::<anyhow::Result<_>>()?;
                paths.retain(|path| path.is_file());
                paths.sort();
                paths.iter().map(|path| page(&program, path, home)).collect()
            }
        }
    }
}

/// What `claude-code-log` writes about a session as a whole, and what it prints, such as which
/// lines it could not read. The number of messages and the positions of messages are left out: both
/// change if reasoning is removed.
fn page(program: &Path, session: &Path, home: &Path) -> anyhow::Result<String> {
    let out = home.join("page.json");
    let mut command = Command::new(program);
    command.arg(session).args(["--no-cache", "--format", "json", "--output"]).arg(&out);
    let stdout = run(&mut command, home)?.stdout;
    let mut page: Value = serde_json::from_slice(&fs::read(&out)?)?;
    for session in page["sessions"].as_array_mut().context("a page has sessions")? {
        let session = session.as_object_mut().context("a session is an object")?;
        for position in ["message_count", "message_index", "parent_message_index"] {
            session.remove(position);
        }
    }
    Ok(format!("{}\n{stdout}", page["sessions"]))
}

fn run(command: &mut Command, home: &Path) -> anyhow::Result<Finished> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).env("HOME", home).env("TZ", "UTC").env("NO_COLOR", "1");
    let finished = process::run(command.current_dir(home), TIMEOUT)?;
    ensure!(finished.success(), "{}{}", finished.stdout, finished.stderr);
    Ok(finished)
}

/// Compacts all sessions in a home.
///
/// # Errors
///
/// If a session cannot be compacted.
pub fn compact(epitome: &Path, home: &Path, options: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new(epitome);
    command.args(["compact", "--all", "--keep-turns", "1"]).args(options);
    run(&mut command, home).map(drop)
}

/// The path below the home where an agent stores a session with this name and text; `None` if the
/// agent is unknown or the text lacks what belongs into the path.
pub fn place(agent: &str, name: &str, text: &str) -> Option<PathBuf> {
    let head: Value = serde_json::from_str(text.lines().next()?).ok()?;
    let place = match agent {
        "claude" => format!(".claude/projects/-home-dev-project/{name}.jsonl"),
        "codex" | "codex-scripts" => {
            let id = head["payload"]["id"].as_str()?;
            format!(".codex/sessions/2026/11/21/rollout-2026-11-21T05-37-06-{id}.jsonl")
        }
        "pi" | "pi-chat" => format!(".pi/agent/sessions/--home-dev-project--/{agent}-{name}.jsonl"),
        "gemini" => format!(".gemini/tmp/project/chats/session-{name}.jsonl"),
        _ => return None,
    };
    Some(place.into())
}
