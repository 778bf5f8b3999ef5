//! An agent behind `epitome wrap`: what it sends directly and through the proxy.

use crate::action::Action;
use crate::agent::Agent;
use crate::sandbox::Sandbox;
use anyhow::{Context, ensure};
use model_server::{Exchange, Outcome, Script, Server, Step};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The beginning of every stub.
const STUB: &str = "[epitome k";
/// A file that the session prints twice.
const LOG: &str = "build.log";
/// A file with more tokens than `wrap` lets a new result have.
const LONG: &str = "sums.log";
/// An estimate of the number of bytes of JSON for each token.
const BYTES_PER_TOKEN: usize = 4;
/// The beginning of every address of this machine.
const HERE: &str = "http://127.0.0.1:";

/// The result of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The agent's name.
    pub agent: &'static str,
    /// The number of requests of the main conversation through the proxy.
    pub requests: usize,
    /// Bytes of JSON of the first request, directly and through the proxy.
    pub first: (usize, usize),
    /// Bytes of JSON of the last request, directly and through the proxy.
    pub last: (usize, usize),
    /// The number of stubs in the last request through the proxy.
    pub stubs: usize,
    /// Bytes by which the tools of `epitome mcp` make the first request longer, for an agent that
    /// is given them.
    pub tools: Option<usize>,
    /// The line that `epitome wrap` prints at the end, without `epitome: `.
    pub last_line: String,
}

/// Plays the same session twice in one home, directly and behind `epitome wrap`, and compares what
/// arrives at the model. If `wrap` gives the agent the tools of `epitome mcp`, a third session has
/// them; if `wrap` can keep the agent from compacting by itself, two more sessions check that.
///
/// # Errors
///
/// If the agent fails, a request is refused, the first requests differ by more than one per cent,
/// fewer than two results are shortened, a request does not begin with the messages of the request
/// before it, the line at the end is wrong, something is left in the home, the tools are missing or
/// too long, or the agent compacts by itself when it should not or does not when it should.
pub fn run(agent: &'static dyn Agent, epitome: &Path) -> anyhow::Result<Report> {
    let server = Server::start(Script::default())?;
    let sandbox = Sandbox::new(agent, &server.url())?;
    crate::project::write(sandbox.home(), agent.facts().scale)?;
    fs::write(sandbox.home().project().join(LOG), log())?;
    fs::write(sandbox.home().project().join(LONG), sums())?;
    let archive = tempfile::tempdir()?;
    let prompt = "Why does the build fail?";

    server.play(script(&sandbox));
    let done = sandbox.new_session(prompt)?;
    ensure!(done.success(), "directly: {:?} {} {}", done.status, done.stdout, done.stderr);
    let before = server.exchanges();
    let direct = played(&before)?;
    let known = addresses(sandbox.home().path());

    server.play(script(&sandbox));
    let options = if takes_mcp(agent) { &["--no-mcp"][..] } else { &[] };
    let done = sandbox.new_wrapped_session(epitome, archive.path(), options, prompt)?;
    ensure!(done.success(), "wrapped: {:?} {} {}", done.status, done.stdout, done.stderr);
    let after = server.exchanges();
    let wrapped = played(&after[before.len()..])?;
    ensure!(wrapped.len() == direct.len(), "{} and {} requests", direct.len(), wrapped.len());

    let last_line = done.stderr.lines().find_map(|line| line.strip_prefix("epitome: "));
    let last_line = last_line.with_context(|| format!("no line at the end: {}", done.stderr))?;
    let size = |exchange: Option<&&Exchange>| exchange.map_or(0, |it| it.text.len());
    let tools = match takes_mcp(agent) {
        true => Some(tools(&server, &sandbox, epitome, direct[0])?),
        false => None,
    };
    let report = Report {
        agent: agent.name(),
        tools,
        requests: wrapped.len(),
        first: (size(direct.first()), size(wrapped.first())),
        last: (size(direct.last()), size(wrapped.last())),
        stubs: wrapped.last().map_or(0, |last| last.text.matches(STUB).count()),
        last_line: last_line.to_owned(),
    };
    check_requests(&report, &direct, &wrapped)?;
    check_line(&report, &after[before.len()..])?;
    check_nothing_left(sandbox.home().path(), &known)?;
    if holds_compaction(agent) {
        check_own_compaction(agent, epitome, &[], true)?;
        check_own_compaction(agent, epitome, &["--hold-compaction"], false)?;
    }
    Ok(report)
}

/// Whether `wrap` can keep an agent from compacting by itself.
fn holds_compaction(agent: &dyn Agent) -> bool {
    ["claude", "codex", "opencode", "pi"].contains(&agent.name())
}

/// Runs an agent with a small window behind `wrap` with these options. Checks that the agent
/// compacts by itself if `expect` is set, and does not otherwise. The line that `wrap` prints at
/// the end must say the same.
fn check_own_compaction(
    agent: &'static dyn Agent,
    epitome: &Path,
    options: &[&str],
    expect: bool,
) -> anyhow::Result<()> {
    let server = Server::start(Script::default())?;
    let sandbox = Sandbox::new(agent, &server.url())?;
    sandbox.compact_early()?;
    if agent.name() == "claude" {
        // Claude Code then compacts when three per cent of its window are full.
        let settings = br#"{"env":{"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE":"3"}}"#;
        sandbox.home().write(".claude/settings.json", settings)?;
    }
    fs::write(sandbox.home().project().join(LOG), log())?;
    fs::write(sandbox.home().project().join(LONG), sums())?;
    let archive = tempfile::tempdir()?;
    server.play(Script { canned: Some("All of it was read.".to_owned()), ..script(&sandbox) });
    let done = sandbox.new_wrapped_session(epitome, archive.path(), options, "Read the logs.")?;
    if agent.name() == "codex" {
        // Codex asks the service to make the compaction, which the scripted service cannot do. So
        // this only checks whether Codex asks.
        let is_request = |exchange: &Exchange| exchange.text.contains("compaction_trigger");
        let is_asked = server.exchanges().iter().any(is_request);
        ensure!(is_asked == expect, "{options:?}: {}", done.stderr);
        return Ok(());
    }
    ensure!(done.success(), "{options:?}: {:?} {} {}", done.status, done.stdout, done.stderr);
    let is_said = done.stderr.contains(" by the agent itself");
    ensure!(is_said == expect, "{options:?}: {}", done.stderr);
    Ok(())
}

/// Whether `wrap` gives an agent the tools of `epitome mcp`.
fn takes_mcp(agent: &dyn Agent) -> bool {
    ["claude", "codex"].contains(&agent.name())
}

/// Plays a session of one answer with the tools. Returns the number of bytes by which its first
/// request is longer than `direct`. Fails if that is more than 900 tokens.
fn tools(
    server: &Server,
    sandbox: &Sandbox,
    epitome: &Path,
    direct: &Exchange,
) -> anyhow::Result<usize> {
    let archive = tempfile::tempdir()?;
    let before = server.exchanges().len();
    server.play(Script::new([Step::text("It does not fail.")]));
    let done = sandbox.new_wrapped_session(epitome, archive.path(), &[], "Why does it fail?")?;
    ensure!(done.success(), "with tools: {:?} {} {}", done.status, done.stdout, done.stderr);
    let exchanges = server.exchanges();
    let first = *played(&exchanges[before..])?.first().context("no request")?;
    ensure!(first.text.contains("epitome"), "the tools are not offered");
    let more = first.text.len().saturating_sub(direct.text.len());
    ensure!(more <= 900 * BYTES_PER_TOKEN, "the tools take {more} bytes");
    Ok(more)
}

/// Checks that both runs sent the same, except that results were shortened behind the proxy, and
/// that no later request changed what an earlier one had sent.
fn check_requests(
    report: &Report,
    direct: &[&Exchange],
    wrapped: &[&Exchange],
) -> anyhow::Result<()> {
    let (before, after) = report.first;
    ensure!(before.abs_diff(after) * 100 <= before, "the first requests differ: {report:?}");
    let tools = |exchange: &Exchange| exchange.body["tools"].clone();
    ensure!(tools(direct[0]) == tools(wrapped[0]), "other tools behind a base URL");
    ensure!(report.stubs >= 2 && report.last.1 < report.last.0, "it was not shortened: {report:?}");
    for (earlier, later) in wrapped.iter().zip(&wrapped[1..]) {
        let (earlier, later) = (messages(&earlier.text)?, messages(&later.text)?);
        let first = earlier.iter().zip(&later).position(|(one, other)| one != other);
        ensure!(
            first.is_none() && later.len() > earlier.len(),
            "a request does not begin with the one before it, but for marks: message {first:?}"
        );
    }
    Ok(())
}

/// Checks that the line at the end says how many requests for a response arrived, how many results
/// were shortened, and that tokens were saved, without an error.
fn check_line(report: &Report, exchanges: &[Exchange]) -> anyhow::Result<()> {
    let last_line = &report.last_line;
    let is_read = |it: &&Exchange| matches!(it.outcome, Outcome::Played { .. } | Outcome::Canned);
    let requests = exchanges.iter().filter(is_read).count();
    let plural = if requests == 1 { "" } else { "s" };
    let counted = format!("{requests} request{plural}, ");
    ensure!(last_line.starts_with(&counted), "{requests} requests arrived: {last_line}");
    let shortened = format!("; {} results shortened, 0 cuts", report.stubs);
    ensure!(last_line.contains(&shortened), "{} results were shortened: {last_line}", report.stubs);
    ensure!(last_line.contains(" tokens fewer; "), "nothing is said to be saved: {last_line}");
    ensure!(!last_line.contains("error"), "{last_line}");
    Ok(())
}

/// The addresses of this machine in the files of a home.
fn addresses(home: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in files(home) {
        let bytes = fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        for (at, here) in text.match_indices(HERE) {
            let port = text[at + here.len()..].chars().take_while(char::is_ascii_digit);
            found.insert(format!("{here}{}", port.collect::<String>()));
        }
    }
    found
}

/// Checks that no file of the home has an address that was not there before the proxy, and that no
/// file of the proxy is left.
fn check_nothing_left(home: &Path, before: &BTreeSet<String>) -> anyhow::Result<()> {
    let after = addresses(home);
    let left: Vec<&String> = after.difference(before).collect();
    ensure!(left.is_empty(), "the address of the proxy is left in the home: {left:?}");
    for path in files(home) {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        ensure!(!name.starts_with(b"epitome-"), "{} is left", path.display());
    }
    Ok(())
}

/// All files below a folder. Links are not followed; what cannot be read is left out.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            Ok(_) | Err(_) => {}
        }
    }
    found
}

/// A log whose second printing is worth shortening.
fn log() -> String {
    let mut log = String::new();
    for n in 0..120 {
        let _ = writeln!(log, "step {n}: compiling crate number {n} of the workspace took {n} ms");
    }
    log
}

/// A log of many tokens: each line has a number that no other line has.
fn sums() -> String {
    let mut log = String::new();
    for n in 0_u64..400 {
        let sum = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let _ = writeln!(log, "part {n}: {sum:016x} {:016x}", sum.rotate_left(23) ^ n);
    }
    log
}

/// The model prints one log twice and another one once, and answers.
fn script(sandbox: &Sandbox) -> Script {
    let print = |file: &str, thinking: &str| {
        // On a busy machine Qwen Code loses the output of a command that ends at once.
        let command = format!("cat {file} && sleep 1");
        let print = Action::Shell { command, why: "Print the log".to_owned() };
        let thinking = Some(thinking.to_owned());
        Step { thinking, calls: vec![sandbox.call(&print)], ..Step::default() }
    };
    let steps = [
        print(LOG, "Look at it."),
        print(LOG, "Look again."),
        print(LONG, "Look at the sums."),
        Step::text("It does not fail."),
    ];
    Script::new(steps)
}

/// The requests of the main conversation.
fn played(exchanges: &[Exchange]) -> anyhow::Result<Vec<&Exchange>> {
    let mut requests = Vec::new();
    for exchange in exchanges {
        match &exchange.outcome {
            Outcome::Refused(why) => anyhow::bail!("refused: {why}"),
            Outcome::Played { .. } => requests.push(exchange),
            Outcome::Canned | Outcome::Other => {}
        }
    }
    ensure!(!requests.is_empty(), "the agent sent nothing: {:?}", paths(exchanges));
    Ok(requests)
}

fn paths(exchanges: &[Exchange]) -> Vec<&str> {
    exchanges.iter().map(|exchange| exchange.path.as_str()).collect()
}

/// A request's body: only its list of messages, under the name that the list has in the request's
/// API.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, alias = "input", alias = "contents")]
    messages: Vec<&'a RawValue>,
}

/// The messages of a request, byte for byte except that the marks for the cache, which move, are
/// left out.
fn messages(text: &str) -> anyhow::Result<Vec<String>> {
    let body: Body<'_> = serde_json::from_str(text).context("a body has messages")?;
    Ok(body.messages.iter().map(|message| without_marks(message.get())).collect())
}

/// A message without its `cache_control` fields. The first `}` after such a field must end its
/// value: no text in the value may contain a brace.
fn without_marks(message: &str) -> String {
    let mut left = message.to_owned();
    while let Some(start) = left.find(r#","cache_control":{"#) {
        let Some(end) = left[start..].find('}') else { break };
        left.replace_range(start..=start + end, "");
    }
    left
}
