//! An agent behind `epitome wrap`: what it sends directly and through the proxy.

use crate::action::Action;
use crate::agent::Agent;
use crate::sandbox::Sandbox;
use anyhow::{Context, ensure};
use model_server::{Exchange, Outcome, Script, Server, Step};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

/// The beginning of every stub.
const STUB: &str = "[epitome k";
/// The file that the session prints twice.
const LOG: &str = "build.log";

/// The result of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The agent's name.
    pub agent: &'static str,
    /// Requests for the main conversation through the proxy.
    pub requests: usize,
    /// Bytes of JSON of the first request, directly and through the proxy.
    pub first: (usize, usize),
    /// Bytes of JSON of the last request, directly and through the proxy.
    pub last: (usize, usize),
    /// Stubs in the last request through the proxy.
    pub stubs: usize,
    /// What `epitome wrap` says at the end.
    pub said: String,
}

/// Plays the same session twice in one home, directly and behind `epitome wrap`, and compares what
/// arrives at the model.
///
/// # Errors
///
/// If a request is refused, the first requests differ, nothing is shortened, or a request does not
/// begin with the one before it.
pub fn run(agent: &'static dyn Agent, epitome: &Path) -> anyhow::Result<Report> {
    let server = Server::start(Script::default())?;
    let sandbox = Sandbox::new(agent, &server.url())?;
    crate::project::write(sandbox.home(), agent.facts().scale)?;
    std::fs::write(sandbox.home().project().join(LOG), log())?;
    let archive = tempfile::tempdir()?;
    let prompt = "Why does the build fail?";

    server.play(script(&sandbox));
    let done = sandbox.new_session(prompt)?;
    ensure!(done.success(), "directly: {:?} {} {}", done.status, done.stdout, done.stderr);
    let direct = played(&server.exchanges())?;

    server.play(script(&sandbox));
    let done = sandbox.new_wrapped_session(epitome, archive.path(), prompt)?;
    ensure!(done.success(), "wrapped: {:?} {} {}", done.status, done.stdout, done.stderr);
    let all = played(&server.exchanges())?;
    let wrapped = &all[direct.len()..];
    ensure!(wrapped.len() == direct.len(), "{} and {} requests", direct.len(), wrapped.len());

    let said = done.stderr.lines().find_map(|line| line.strip_prefix("epitome: "));
    let report = Report {
        agent: agent.name(),
        requests: wrapped.len(),
        first: (size(direct.first()), size(wrapped.first())),
        last: (size(direct.last()), size(wrapped.last())),
        stubs: wrapped.last().map_or(0, |body| body.to_string().matches(STUB).count()),
        said: said.context("no line at the end")?.to_owned(),
    };
    check(&report, &direct, wrapped)?;
    Ok(report)
}

/// Whether the same was sent, but for results that are shortened once.
fn check(report: &Report, direct: &[Value], wrapped: &[Value]) -> anyhow::Result<()> {
    let (before, after) = report.first;
    ensure!(before.abs_diff(after) * 100 <= before, "the first requests differ: {report:?}");
    ensure!(direct[0]["tools"] == wrapped[0]["tools"], "other tools behind a base URL");
    ensure!(report.stubs > 0 && report.last.1 < report.last.0, "nothing was shortened: {report:?}");
    for (earlier, later) in wrapped.iter().zip(&wrapped[1..]) {
        let (earlier, later) = (messages(earlier), messages(later));
        ensure!(later.starts_with(&earlier), "a request does not begin with the one before it");
    }
    Ok(())
}

/// A log whose second printing is worth shortening.
fn log() -> String {
    let mut log = String::new();
    for n in 0..120 {
        let _ = writeln!(log, "step {n}: compiling crate number {n} of the workspace took {n} ms");
    }
    log
}

/// The model prints the log twice, and answers.
fn script(sandbox: &Sandbox) -> Script {
    let print = Action::Shell { command: format!("cat {LOG}"), why: "Print the log".to_owned() };
    let call = |thinking: &str| Step {
        thinking: Some(thinking.to_owned()),
        calls: vec![sandbox.call(&print)],
        ..Step::default()
    };
    let steps = [call("Look at it."), call("Look again."), Step::text("It does not fail.")];
    Script::new(steps)
}

/// The requests of the main conversation.
fn played(exchanges: &[Exchange]) -> anyhow::Result<Vec<Value>> {
    let mut bodies = Vec::new();
    for exchange in exchanges {
        match &exchange.outcome {
            Outcome::Refused(why) => anyhow::bail!("refused: {why}"),
            Outcome::Played { .. } => bodies.push(exchange.body.clone()),
            Outcome::Canned | Outcome::Other => {}
        }
    }
    ensure!(!bodies.is_empty(), "the agent sent nothing");
    Ok(bodies)
}

fn size(body: Option<&Value>) -> usize {
    body.map_or(0, |body| body.to_string().len())
}

/// The messages of a request without marks for the cache, which move.
fn messages(body: &Value) -> Vec<Value> {
    let list = ["messages", "input", "contents"].into_iter().find_map(|key| body[key].as_array());
    let mut list = list.cloned().unwrap_or_default();
    list.iter_mut().for_each(without_marks);
    list
}

fn without_marks(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.remove("cache_control");
            object.values_mut().for_each(without_marks);
        }
        Value::Array(list) => list.iter_mut().for_each(without_marks),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
