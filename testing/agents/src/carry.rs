//! Ports a recorded session of one agent to another, which resumes it.

use crate::agent::Agent;
use crate::home::Home;
use crate::project;
use crate::resume::{Counts, Sent, resume_in};
use crate::sandbox::{Placed, Sandbox};
use crate::scenario::Scenario;
use anyhow::{Context, ensure};
use model_server::{Script, Server};
use serde::Serialize;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The result of a port.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The agent that recorded the session.
    pub from: &'static str,
    /// The agent that resumed it.
    pub to: &'static str,
    /// The duration in seconds.
    pub seconds: f64,
    /// What the first agent sent when it resumed the session itself.
    pub sent: Counts,
    /// What the other agent sent.
    pub sent_again: Counts,
    /// The number of texts (of the user, of the model, of results) that were looked for and found.
    pub texts: usize,
    /// What the port left out, as `epitome port` reported it.
    pub left_behind: Value,
}

/// Ports the recorded session `text` of `from` to `to` with the program `epitome`, resumes it in
/// the real agent, and checks that everything `from` itself would send was sent.
///
/// # Errors
///
/// If any of this fails: the port, a refused history, a text or a call that was not sent, or a
/// resume that continues in another file.
pub fn run(
    from: &'static dyn Agent,
    text: &str,
    to: &'static dyn Agent,
    epitome: &Path,
) -> anyhow::Result<Report> {
    let begin = Instant::now();
    let (there, recorded) = play(from)?;
    let placed = there.place(text)?;
    let sent = resume_in(&there, &recorded, &placed).context("resume of the original")?;
    sent.accepted().context("resume of the original")?;

    let (here, server) = play(to)?;
    let session = here.home().write("session.jsonl", here.home().localise(text).as_bytes())?;
    let port_report = port(epitome, &session, to, here.home())?;
    let word =
        |key: &str| port_report[key].as_str().map(str::to_owned).context("what `port` tells");
    let placed = Placed { id: word("new_id")?, path: PathBuf::from(word("out")?) };
    let before = fs::read(&placed.path)?;
    let again = resume_in(&here, &server, &placed)?;
    again.accepted().context("resume of what was carried over")?;
    let after = fs::read(&placed.path)?;
    ensure!(after.len() > before.len() && after.starts_with(&before), "it went on elsewhere");

    let all = |sent: &Sent, home: &Home| home.scrub(&strings(&sent.messages).join("\n"));
    let arrived = all(&again, here.home());
    let sent_texts = describe(&sent.messages).into_iter().map(|text| there.home().scrub(&text));
    let prompts = Scenario::full(from).turns.into_iter().map(|turn| turn.prompt);
    let mut texts = 0;
    for text in sent_texts.chain(prompts) {
        ensure!(arrived.contains(&text), "this did not arrive: {text}");
        texts += 1;
    }
    ensure!(texts > 20, "only {texts} texts were looked for");
    let (before, after) = (sent.counts, again.counts);
    ensure!((before.calls, before.results) == (after.calls, after.results), "{before:?} {after:?}");
    ensure!(before.images == after.images && after.thinking == 0, "{before:?} {after:?}");
    Ok(Report {
        from: from.name(),
        to: to.name(),
        seconds: begin.elapsed().as_secs_f64(),
        sent: before,
        sent_again: after,
        texts,
        left_behind: port_report["left_behind"].clone(),
    })
}

/// Runs `epitome port`, with `home` as the home folder.
fn port(epitome: &Path, session: &Path, to: &dyn Agent, home: &Home) -> anyhow::Result<Value> {
    let output = Command::new(epitome)
        .args(["port", "--json", "--to", to.name()])
        .arg(session)
        .env_clear()
        .env("HOME", home.path())
        .output()
        .with_context(|| format!("cannot run {}", epitome.display()))?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "port: {}\n{stderr}", output.status);
    serde_json::from_slice(&output.stdout).context("what `port` tells")
}

/// An agent with the scenario's project, and its model server.
fn play(agent: &'static dyn Agent) -> anyhow::Result<(Sandbox, Server)> {
    let server = Server::start(Script::default())?;
    let sandbox = Sandbox::new(agent, &server.url())?;
    project::write(sandbox.home(), agent.facts().scale)?;
    Ok((sandbox, server))
}

/// The texts of the model and the results of its calls, in a history of any API format.
fn describe(messages: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for message in messages.as_array().into_iter().flatten() {
        if message["role"] == "assistant" {
            found.extend(words(&message["content"]));
        }
        found.extend(words(&message["output"]));
        for block in message["content"].as_array().into_iter().flatten() {
            if block["type"] == "tool_result" {
                found.extend(words(&block["content"]));
            }
        }
    }
    found
}

/// The texts of a message's content or of a result: the value itself if it is a text, or the texts
/// of its blocks. What Claude Code adds to them is left out.
fn words(content: &Value) -> Vec<String> {
    let blocks = content.as_array().into_iter().flatten();
    let texts = blocks.filter_map(|block| block["text"].as_str());
    // Claude Code adds reminders after results when it sends the results.
    let own = |text: &str| {
        text.split("<system-reminder>").next().unwrap_or_default().trim_end().to_owned()
    };
    let own = content.as_str().into_iter().chain(texts).map(own);
    own.filter(|text| !text.is_empty()).collect()
}

/// Every text in a value.
fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => list.iter().flat_map(strings).collect(),
        Value::Object(members) => members.values().flat_map(strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
