//! The hook of an agent: when a session ends, the hook runs `epitome`, which renders a page of the
//! session and compacts the session.

use crate::agent::Agent;
use crate::record::record_in;
use crate::sandbox::Sandbox;
use crate::scenario::Scenario;
use anyhow::{Context, ensure};
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Maximum time to wait for the hook's work.
const PATIENCE: Duration = Duration::from_secs(40);
const POLL: Duration = Duration::from_millis(100);

/// The result of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The agent's name.
    pub agent: &'static str,
    /// The size of the page that was kept, in bytes.
    pub page: u64,
    /// The lines of the hook's log, without times and paths.
    pub log: Vec<String>,
    /// The seconds from the end of the agent until the hook had done its work.
    pub after: f64,
}

/// Installs `epitome` in an agent, ends a session of one turn, waits for the page, the commit and
/// the compaction, and removes the installation.
///
/// # Errors
///
/// If one of these steps fails, or a part of the installation is left behind.
pub fn run(agent: &'static dyn Agent, epitome: &Path) -> anyhow::Result<Report> {
    let file = agent.facts().hook_settings.context("no hook is tried with this agent")?;
    let mut scenario = Scenario::full(agent);
    scenario.turns.truncate(1);
    let settings = |sandbox: &Sandbox| fs::read_to_string(sandbox.home().path().join(file)).ok();
    let mut before = None;
    let recording = record_in(agent, &scenario, |sandbox| {
        git(sandbox, &["init", "-q"])?;
        before = settings(sandbox);
        let args = ["install", "--agent", agent.name(), "--branch", "kept", "--shrink", "--yes"];
        call(sandbox, epitome, &args)
    })?;
    let end = Instant::now();
    let sandbox = &recording.sandbox;
    let log = sandbox.home().path().join(".local/share/epitome/hooks/log");
    let lines = || fs::read_to_string(&log).unwrap_or_default();
    while !lines().contains(" compacted ") && end.elapsed() < PATIENCE {
        std::thread::sleep(POLL);
    }
    let after = end.elapsed().as_secs_f64();
    let log_lines = lines();
    ensure!(
        log_lines.contains(" kept ") && log_lines.contains(" compacted "),
        "the log says: {log_lines:?}"
    );
    let listed = git(sandbox, &["ls-tree", "-l", "kept"])?;
    let page =
        listed.lines().find(|line| line.ends_with(&format!("{}.html", recording.session.id)));
    let size = page.and_then(|line| line.split_whitespace().nth(3)?.parse().ok());
    let size = size.with_context(|| format!("no page was committed: {listed}"))?;
    call(sandbox, epitome, &["uninstall", "--purge", "--yes"])?;
    ensure!(settings(sandbox) == before, "the settings are not what they were");
    ensure!(git(sandbox, &["branch", "--list", "kept"])?.is_empty(), "the branch is left");
    let home = sandbox.home().path().display().to_string();
    let words = |line: &str| line.replace(&home, "~").split_once(' ').map(|(_, it)| it.to_owned());
    Ok(Report {
        agent: agent.name(),
        page: size,
        log: log_lines.lines().filter_map(words).collect(),
        after,
    })
}

fn git(sandbox: &Sandbox, args: &[&str]) -> anyhow::Result<String> {
    called(sandbox, Command::new("git"), args)
}

fn call(sandbox: &Sandbox, epitome: &Path, args: &[&str]) -> anyhow::Result<()> {
    called(sandbox, Command::new(epitome), args).map(drop)
}

fn called(sandbox: &Sandbox, mut program: Command, args: &[&str]) -> anyhow::Result<String> {
    sandbox.dress(&mut program);
    let out = program.args(args).output().with_context(|| args.join(" "))?;
    let stderr = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "{}: {stderr}", args.join(" "));
    Ok(String::from_utf8(out.stdout)?)
}
