//! A model that looks into past sessions: the agent starts `epitome mcp`, the model calls `search`,
//! and its next request has the answer.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use model_server::{Script, Server, Step, ToolCall};
use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// The beginning of the names that Claude Code gives to the server's tools.
const PREFIX: &str = "mcp__epitome__";

/// The result of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// The tools that the agent offered to the model.
    pub tools: Vec<String>,
    /// The characters of the tools' definitions in the first request that offers the tools.
    pub definitions: usize,
    /// The characters of the answer that the model got.
    pub answer: usize,
}

/// A word that the user wrote in the recorded session and that the query finds only there.
const WORD: &str = "importer";

/// Adds the server to Claude Code, lets the model search for a word of the recorded session, and
/// removes the server again.
///
/// # Errors
///
/// If the model gets no answer, or the server is left in the settings.
pub fn run(recorded: &str, epitome: &Path) -> anyhow::Result<Report> {
    let agent = crate::find_agent("claude")?;
    let server = Server::start(Script::default())?;
    let sandbox = Sandbox::new(agent, &server.url())?;
    // Without a terminal, Claude Code cannot ask for permission, so it is given here.
    let allowed = json!({ "permissions": { "allow": ["mcp__epitome"] } });
    sandbox.home().write(".claude/settings.json", allowed.to_string().as_bytes())?;
    sandbox.place(recorded)?;
    call(&sandbox, epitome, &["install", "--mcp", "--agent", agent.name(), "--yes"])?;
    let input = json!({ "query": format!("{WORD} role:user"), "limit": 1 });
    let search = ToolCall { name: format!("{PREFIX}search"), input };
    let look = Step { calls: vec![search], ..Step::default() };
    server.play(Script::new([look, Step::text("It was in the pricing session.")]));
    let done = sandbox.new_session("Where did we work on pricing before?")?;
    ensure!(done.success(), "{:?}\n{}\n{}", done.status, done.stdout, done.stderr);
    let exchanges = server.exchanges();
    let bodies: Vec<&Value> = exchanges.iter().map(|exchange| &exchange.body).collect();
    let (definitions, tools) = tools(&bodies)?;
    let answer = bodies.iter().rev().find_map(|body| answer(body));
    let answer = answer.context("the model got no answer")?;
    ensure!(answer.starts_with("Quoted from recorded sessions"), "the model got: {answer}");
    ensure!(answer.contains(WORD), "the recorded session is not in it: {answer}");
    call(&sandbox, epitome, &["uninstall", "--mcp", "--yes"])?;
    let settings = std::fs::read_to_string(sandbox.home().path().join(".claude.json"))?;
    ensure!(!settings.contains("epitome\""), "the server is left in {settings}");
    Ok(Report { tools, definitions, answer: answer.chars().count() })
}

/// The server's tools in the first request that has any: the characters of their definitions, and
/// their names.
fn tools(bodies: &[&Value]) -> anyhow::Result<(usize, Vec<String>)> {
    let name = |tool: &Value| tool["name"].as_str().map(str::to_owned);
    let ours = |tool: &&Value| name(tool).is_some_and(|name| name.starts_with(PREFIX));
    let offered = bodies.iter().find_map(|body| {
        let tools: Vec<&Value> = body["tools"].as_array()?.iter().filter(ours).collect();
        (!tools.is_empty()).then_some(tools)
    });
    let offered = offered.context("no tool of the server was offered to the model")?;
    let chars = offered.iter().map(|tool| tool.to_string().chars().count()).sum();
    Ok((chars, offered.into_iter().filter_map(name).collect()))
}

/// The text of the last result in a request.
fn answer(body: &Value) -> Option<String> {
    let blocks = body["messages"].as_array()?.iter().filter_map(|it| it["content"].as_array());
    let result = blocks.flatten().rev().find(|block| block["type"] == "tool_result")?;
    match &result["content"] {
        Value::String(text) => Some(text.clone()),
        content => content[0]["text"].as_str().map(str::to_owned),
    }
}

fn call(sandbox: &Sandbox, epitome: &Path, args: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new(epitome);
    sandbox.dress(&mut command);
    let out = command.args(args).output().with_context(|| args.join(" "))?;
    let stderr = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "{}: {stderr}", args.join(" "));
    Ok(())
}
