//! The end-to-end test: record a session once; then for each way compact, resume, restore, resume.

use crate::agent::{Agent, Way};
use crate::record::{Recording, record};
use crate::resume::{Counts, Sent, appended, resume, resume_in};
use crate::scenario::Scenario;
use anyhow::{Context, bail, ensure};
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// The beginning of every stub that a compaction leaves.
const STUB: &str = "[epitome k";

/// The summary of all but the last turn.
const SUMMARY: &str = "Nothing is open: what was asked for was done, in a few steps.";

/// A word in every ordinary line of the logs that the session printed, and nowhere else.
const BULK: &str = "checksum";

/// The result of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The agent's name.
    pub agent: &'static str,
    /// How the session was compacted.
    pub way: Way,
    /// The duration in seconds.
    pub seconds: f64,
    /// The session as recorded.
    pub original: Stage,
    /// The session as compacted.
    pub compacted: Stage,
    /// Number of bytes that the agent appended to the compacted session.
    pub appended: usize,
    /// The report that `compact` printed.
    pub report_text: serde_json::Value,
}

/// The size of a session's file, and what its resume sent.
#[derive(Debug, Clone, Serialize)]
pub struct Stage {
    /// The size of the file.
    pub file_bytes: usize,
    /// The size of the messages sent, as JSON.
    pub history_bytes: usize,
    /// The number of blocks in the messages.
    pub counts: Counts,
    /// Number of stubs that were sent, or of texts that the agent sends for marked results.
    pub stubs: usize,
    /// How often the summary was sent.
    pub summaries: usize,
    /// Number of log lines that were sent.
    pub bulk: usize,
}

/// A session that was recorded in the real agent. Every test with it begins with the home as it was
/// at the end of the recording.
#[derive(Debug)]
pub struct RecordedSession {
    agent: &'static dyn Agent,
    recording: Recording,
    /// The bytes of the session.
    original: Vec<u8>,
    /// What the agent sends when it resumes the session.
    before: Sent,
}

impl RecordedSession {
    /// Records a session, and resumes it in another home.
    ///
    /// # Errors
    ///
    /// If the agent cannot be run, or refuses the session.
    pub fn record(agent: &'static dyn Agent) -> anyhow::Result<RecordedSession> {
        let recording = record(agent, &Scenario::full(agent)).context("record")?;
        let original = recording.sandbox.read(&recording.session.path)?;
        let text = std::str::from_utf8(&original).context("a session is UTF-8")?;
        let scrubbed = recording.sandbox.home().scrub(text);
        let before = resume(agent, &scrubbed).context("resume of the original")?;
        before.accepted().context("resume of the original")?;
        recording.sandbox.home().keep_copy()?;
        Ok(RecordedSession { agent, recording, original, before })
    }

    /// The agent of the session.
    pub(crate) fn agent(&self) -> &'static dyn Agent {
        self.agent
    }

    /// The recording, in the home as it was when it was recorded.
    ///
    /// # Errors
    ///
    /// If the home cannot be restored.
    pub(crate) fn recording(&self) -> anyhow::Result<&Recording> {
        self.recording.sandbox.home().reset()?;
        Ok(&self.recording)
    }

    /// Compacts the session with the program `epitome`, resumes it, restores it, and resumes it
    /// again.
    ///
    /// # Errors
    ///
    /// If any of this fails: a refused history, a resume that starts from nothing, a history that
    /// did not become smaller, or a restored file that is not the original with what the agent
    /// appended.
    pub fn compact(&self, way: Way, epitome: &Path) -> anyhow::Result<Report> {
        let begin = Instant::now();
        let Recording { sandbox, server, session } = self.recording()?;
        let archive = tempfile::tempdir()?;
        let tool = |args: &[&str]| call(epitome, archive.path(), &session.path, args);
        // The default recipe would keep the recorded sessions whole, because they are short.
        let summary = archive.path().join("summary.md");
        let options = options(way, &summary)?;
        let compact = [&["compact", "--json", "--keep-turns", "1"], &options[..]].concat();
        let report_text = tool(&compact)?;
        let compacted = sandbox.read(&session.path)?;
        self.check_file(way, &compacted)?;

        let after = resume_in(sandbox, server, session)?;
        after.accepted().context("resume of the compacted session")?;
        let grown = sandbox.read(&session.path)?;
        let tail = appended(&compacted, &grown)?;
        ensure!(!tail.is_empty(), "the agent appended nothing");
        tool(&["restore"])?;
        let expected = [&self.original, tail].concat();
        let restored = sandbox.read(&session.path)?;
        ensure!(restored == expected, "restored is not the original and what was appended");
        resume_in(sandbox, server, session)?
            .accepted()
            .context("resume of the restored session")?;

        let marked = self.agent.facts().marked_text.filter(|_| way == Way::Native);
        let left = marked.unwrap_or(STUB);
        let report = Report {
            agent: self.agent.name(),
            way,
            seconds: begin.elapsed().as_secs_f64(),
            original: stage(self.original.len(), &self.before, left),
            compacted: stage(compacted.len(), &after, left),
            appended: tail.len(),
            report_text: serde_json::from_str(&report_text)
                .unwrap_or(serde_json::Value::String(report_text)),
        };
        shrunk(&report)?;
        Ok(report)
    }

    /// Checks that a compaction changed the file as its way does.
    fn check_file(&self, way: Way, compacted: &[u8]) -> anyhow::Result<()> {
        let original = &self.original;
        match way {
            Way::Rewrite => ensure!(compacted.len() < original.len(), "the file did not shrink"),
            Way::Native if self.agent.facts().marked_text.is_some() => {
                ensure!(compacted.len() > original.len(), "nothing was marked");
            }
            Way::Native | Way::Summary => {
                let more = appended(original, compacted)?;
                ensure!(!more.is_empty(), "nothing was appended");
            }
        }
        Ok(())
    }
}

/// The options of `compact` for a way.
fn options(way: Way, summary: &Path) -> anyhow::Result<Vec<&str>> {
    Ok(match way {
        Way::Rewrite => vec!["--rewrite"],
        Way::Native => vec!["--native"],
        Way::Summary => {
            fs::write(summary, SUMMARY)?;
            vec!["--summary", summary.to_str().context("a path is text")?]
        }
    })
}

fn stage(file_bytes: usize, sent: &Sent, left: &str) -> Stage {
    Stage {
        file_bytes,
        history_bytes: sent.bytes,
        counts: sent.counts,
        stubs: sent.occurrences(left),
        summaries: sent.occurrences(SUMMARY),
        bulk: sent.occurrences(BULK),
    }
}

fn shrunk(report: &Report) -> anyhow::Result<()> {
    let (before, after) = (&report.original, &report.compacted);
    let sizes = (before.history_bytes, after.history_bytes);
    ensure!(sizes.1 < sizes.0, "the history did not shrink: {sizes:?}");
    match report.way {
        Way::Rewrite | Way::Native => {
            ensure!(before.stubs == 0 && after.stubs > 0, "no stub was sent");
        }
        Way::Summary => ensure!(after.summaries == 1, "{} summaries were sent", after.summaries),
    }
    ensure!(after.bulk < before.bulk, "the logs were sent: {} lines", after.bulk);
    ensure!(after.counts.calls == after.counts.results, "{:?}", after.counts);
    Ok(())
}

/// Runs `epitome VERB FILE ARGS…` and returns its output.
fn call(epitome: &Path, archive: &Path, file: &Path, args: &[&str]) -> anyhow::Result<String> {
    let (verb, options) = args.split_first().expect("a verb is always given");
    let output = Command::new(epitome)
        .arg(verb)
        .arg(file)
        .args(options)
        .env("EPITOME_HOME", archive)
        .output()
        .with_context(|| format!("cannot run {}", epitome.display()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        bail!("{verb}: {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr));
    }
    Ok(text(&output.stdout))
}
