//! A session is lost and comes back from the versions of `epitome keep`; then its agent resumes it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};
use serde::Serialize;
use serde_json::Value;

use crate::e2e::RecordedSession;
use crate::record::Recording;
use crate::resume::{appended, resume_in};

/// The agents that are tried.
pub const TRIED: [&str; 6] = ["claude", "codex", "gemini", "opencode", "pi", "qwen"];

/// The result of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The agent's name.
    pub agent: &'static str,
    /// How the session was lost: `deleted` or `rewritten`.
    pub loss: &'static str,
    /// The number of files that came back: the session's own and those of its sub-agents; 1 if the
    /// session is rows of a database.
    pub files: usize,
    /// The length of the session in bytes.
    pub bytes: usize,
    /// The number of bytes that the agent appended to the session that came back.
    pub appended: usize,
    /// The number of versions of the session that the vault has at the end.
    pub versions: usize,
    /// The duration in seconds.
    pub seconds: f64,
}

/// Keeps a version of a recorded session, deletes the session, restores its last version, and
/// resumes it. A session in a database is not deleted, because `restore` cannot create deleted
/// rows: instead its rows are compacted, and the archive with the removed content is deleted.
///
/// # Errors
///
/// If a command fails, a byte does not come back, or the agent does not accept the session.
pub fn run(session: &RecordedSession, epitome: &Path) -> anyhow::Result<Report> {
    let begin = Instant::now();
    let agent = session.agent();
    let recording = session.recording()?;
    let (id, path) = (&recording.session.id, &recording.session.path);
    let tool = Tool { recording, epitome, agent: agent.name() };
    let original = recording.sandbox.read(path)?;
    tool.call(&["keep", "--all", "--once"])?;
    let is_file = path.is_file();
    let parts = if is_file { tool.parts()? } else { Vec::new() };
    let version = if is_file {
        fs::remove_file(path)?;
        for (part, _) in &parts {
            fs::remove_file(part)?;
        }
        tool.call(&["keep", "--all", "--once"])?;
        tool.deleted_version()?
    } else {
        tool.call(&["compact", id, "--rewrite", "--keep-turns", "1"])?;
        ensure!(recording.sandbox.read(path)? != original, "nothing was compacted");
        fs::remove_dir_all(recording.sandbox.home().path().join(ARCHIVE))?;
        1
    };
    // The session is named by its path, because Gemini CLI gives several files the same id.
    let name = path.to_str().context("a path is text")?;
    tool.call(&["restore", name, "--at", &version.to_string(), "--yes"])?;
    ensure!(recording.sandbox.read(path)? == original, "the session did not come back");
    for (part, bytes) in &parts {
        let back = fs::read(part).with_context(|| part.display().to_string())?;
        ensure!(back == *bytes, "{} did not come back", part.display());
    }
    resume_in(&recording.sandbox, &recording.server, &recording.session)?
        .accepted()
        .context("resume of the session that came back")?;
    let grown = recording.sandbox.read(path)?;
    let appended = match agent.facts().appends && is_file {
        true => appended(&original, &grown)?.len(),
        false => grown.len().saturating_sub(original.len()),
    };
    ensure!(appended > 0, "the agent appended nothing");
    tool.call(&["keep", "--all", "--once"])?;
    let history: Value = serde_json::from_str(&tool.call(&["history", name, "--json"])?)?;
    let versions = history["versions"].as_array().map_or(0, Vec::len);
    Ok(Report {
        agent: agent.name(),
        loss: if is_file { "deleted" } else { "rewritten" },
        files: 1 + parts.len(),
        bytes: original.len(),
        appended,
        versions,
        seconds: begin.elapsed().as_secs_f64(),
    })
}

/// The folder of the archive, below the home.
const ARCHIVE: &str = ".local/share/epitome/archive";

/// The program `epitome` in the home of a recording.
struct Tool<'a> {
    recording: &'a Recording,
    epitome: &'a Path,
    agent: &'static str,
}

impl Tool<'_> {
    /// Runs `epitome` and returns its output.
    fn call(&self, args: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(self.epitome);
        self.recording.sandbox.dress(&mut command);
        let output = command.args(args).output().with_context(|| args.join(" "))?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {stderr}", args.join(" "));
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The files of the sub-agents that were kept, and their contents.
    fn parts(&self) -> anyhow::Result<Vec<(PathBuf, Vec<u8>)>> {
        let name = self.recording.session.path.to_str().context("a path is text")?;
        let history: Value = serde_json::from_str(&self.call(&["history", name, "--json"])?)?;
        let paths = history["parts"].as_array().into_iter().flatten();
        let paths = paths.filter_map(|part| part["path"].as_str().map(PathBuf::from));
        paths.map(|path| Ok((path.clone(), fs::read(path)?))).collect()
    }

    /// The number of the last version of the recording's session, after the session was deleted.
    fn deleted_version(&self) -> anyhow::Result<u64> {
        let listed = self.call(&["list", "--deleted", "--json"])?;
        let sessions = serde_json::Deserializer::from_str(&listed).into_iter::<Value>();
        let sessions: Vec<Value> = sessions.collect::<Result<_, _>>()?;
        let path = self.recording.session.path.to_str().context("a path is text")?;
        let is_it = |it: &&Value| it["path"] == *path;
        let sessions = sessions.iter().flat_map(|it| match it {
            Value::Array(all) => all.as_slice(),
            one => std::slice::from_ref(one),
        });
        let session = sessions.clone().find(is_it);
        let missing = || format!("{path} of {} is not in {listed}", self.agent);
        session.with_context(missing)?["version"].as_u64().context("a number")
    }
}
