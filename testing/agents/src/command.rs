//! The command `/epitome` in an agent: the model gets the prompt of the command, and the command
//! line that the prompt asks for works while the session is running.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use model_server::{Exchange, Outcome, Script, Server, Step};

use crate::action::Action;
use crate::agent::Agent;
use crate::sandbox::Sandbox;

/// The beginning of the prompt.
const PROMPT: &str = "Show me what compacting this session would free and lose.";
/// A part of the output of a dry run.
const PLAN: &str = "nothing was written";

/// The agents that take a command, each with what the user types, the file of the command, and a
/// command line that prints the id of the session, found as the prompt describes.
const TYPED: [(&str, &str, &str, &str); 6] = [
    // The prompt contains the id, but the script cannot read the prompt. So the test compares the
    // id.
    (
        "claude",
        "/epitome",
        ".claude/commands/epitome.md",
        "ls -t ~/.claude/projects/*/*.jsonl | head -n 1 | xargs basename -s .jsonl",
    ),
    ("codex", "$epitome", ".codex/skills/epitome/SKILL.md", "printenv CODEX_THREAD_ID"),
    ("pi", "/epitome", ".pi/agent/prompts/epitome.md", "printenv PI_SESSION_ID"),
    ("gemini", "/epitome", ".gemini/commands/epitome.toml", NEWEST),
    ("opencode", "/epitome", ".config/opencode/commands/epitome.md", NEWEST),
    ("qwen", "/epitome", ".qwen/commands/epitome.md", "printenv QWEN_CODE_SESSION_ID"),
];

/// Prints the id of the newest session of the folder.
const NEWEST: &str = "EPITOME list --agent AGENT --project . --sort time --limit 1 --json | \
                      sed -n 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/p'";

/// The result of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// The agent's name.
    pub agent: &'static str,
    /// What the user types.
    pub typed: &'static str,
    /// The bytes of the request with the prompt.
    pub request: usize,
    /// The number of requests of the session.
    pub requests: usize,
}

/// Installs the command, and uses it in a session of one turn: the model makes the dry run of the
/// prompt, and reads the plan. Then the command is uninstalled.
///
/// # Errors
///
/// If a program fails, if the agent takes no command, if the model does not get the prompt or the
/// plan, or if the file of the command still exists at the end.
pub fn run(agent: &'static dyn Agent, epitome: &Path) -> anyhow::Result<Report> {
    let name = agent.name();
    let known = TYPED.iter().find(|(agent, ..)| *agent == name);
    let &(_, typed, file, id) = known.context("the agent takes no command")?;
    let server = Server::start(Script::default())?;
    let sandbox = Sandbox::new(agent, &server.url())?;
    crate::project::write(sandbox.home(), agent.facts().scale)?;
    let file = sandbox.home().path().join(file);
    call(&sandbox, epitome, &["install", "--command", "--agent", name, "--yes"])?;
    ensure!(file.exists(), "{} was not written", file.display());

    let epitome_words = epitome.display().to_string();
    let id = id.replace("EPITOME", &epitome_words).replace("AGENT", name);
    // Gemini CLI refuses a command line with another one in it.
    let line = format!("{id} | xargs -I ID {epitome_words} compact ID --agent {name} --losses");
    let plan = Action::Shell { command: line, why: "Make the plan".to_owned() };
    let plan = Step { calls: vec![sandbox.call(&plan)], ..Step::default() };
    server.play(Script::new([plan, Step::text("Little would be freed.")]));
    let done = sandbox.new_session(typed)?;
    ensure!(done.success(), "{:?}\n{}\n{}", done.status, done.stdout, done.stderr);

    let exchanges = server.exchanges();
    let played = played(&exchanges)?;
    let first = played.first().context("no request")?;
    let last = played.last().context("no request")?;
    ensure!(first.text.contains(PROMPT), "the prompt is not in {}", first.text);
    ensure!(last.text.contains(PLAN), "the plan is not in {}", last.text);
    let session = sandbox.latest()?.id;
    // A file of Gemini CLI has the beginning of the id in its name.
    let short: String = session.chars().take(8).collect();
    ensure!(last.text.contains(&short), "{session} is not in {}", last.text);
    if name == "claude" {
        let expect = format!("The id of this session is `{session}`.");
        ensure!(first.text.contains(&expect), "the id is not in {}", first.text);
    }
    call(&sandbox, epitome, &["uninstall", "--command", "--yes"])?;
    ensure!(!file.exists(), "{} is left", file.display());
    Ok(Report { agent: name, typed, request: first.text.len(), requests: played.len() })
}

/// The requests of the main conversation. An error if a request was refused.
fn played(exchanges: &[Exchange]) -> anyhow::Result<Vec<&Exchange>> {
    let mut requests = Vec::new();
    for exchange in exchanges {
        match &exchange.outcome {
            Outcome::Refused(why) => anyhow::bail!("refused: {why}"),
            Outcome::Played { .. } => requests.push(exchange),
            Outcome::Canned | Outcome::Other => {}
        }
    }
    Ok(requests)
}

fn call(sandbox: &Sandbox, epitome: &Path, args: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new(epitome);
    sandbox.dress(&mut command);
    let out = command.args(args).output().with_context(|| args.join(" "))?;
    let stderr = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "{}: {stderr}", args.join(" "));
    Ok(())
}
