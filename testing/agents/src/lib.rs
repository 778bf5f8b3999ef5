//! Runs the real coding agents, installed at pinned versions, without a terminal.
//!
//! An [`Agent`] runs in a [`Sandbox`]: a temporary home, a generated project, and a scripted model
//! server, the only service it can reach. [`record`](record::record) plays a [`scenario`] and
//! returns the session that the agent stored; [`resume`](resume::resume) resumes a session in a
//! fresh agent and returns what it sent to the model; [`e2e`] adds a compaction in between,
//! [`carry`] a port to another agent, [`keep`] the hook that runs when a session ends, and
//! [`versions`] the restoring of a deleted session.

mod action;
mod agent;
pub mod carry;
mod claude;
mod codex;
pub mod command;
pub mod e2e;
pub mod fleet;
mod gemini;
pub mod histories;
mod home;
pub mod install;
pub mod keep;
pub mod node;
mod opencode;
pub mod past;
mod pi;
mod process;
pub mod project;
pub mod python;
mod qwen;
pub mod readers;
pub mod record;
pub mod resume;
mod sandbox;
pub mod scenario;
pub mod sdk;
pub mod versions;
pub mod wrap;

use anyhow::Context as _;

use crate::agent::Provider;
pub use action::Action;
pub use agent::{Agent, Facts, Way};
pub use home::{Home, RECORDED_HOME};
pub use process::Finished;
pub use sandbox::{Placed, Sandbox};

const OPENCODE: &str = "opencode-ai@1.18.33";

/// All agents, in the order of display.
pub static AGENTS: &[&dyn Agent] = &[
    &pi::Pi { api: pi::Api::Anthropic, provider: Provider::Scripted },
    &pi::Pi { api: pi::Api::Chat, provider: Provider::Scripted },
    &claude::Claude,
    &codex::Codex { tools: codex::Tools::Single, provider: Provider::Scripted },
    &codex::Codex { tools: codex::Tools::Scripts, provider: Provider::Scripted },
    &gemini::Gemini,
    &opencode::Opencode { name: "opencode", package: OPENCODE, provider: Provider::Scripted },
    &opencode::Opencode {
        name: "kilo",
        package: "@kilocode/cli@7.7.7",
        provider: Provider::Scripted,
    },
    &qwen::Qwen,
];

/// The agents that `epitome wrap` is tried with: each with a provider whose address `wrap` changes.
pub static WRAPPED: &[&dyn Agent] = &[
    &claude::Claude,
    &codex::Codex { tools: codex::Tools::Single, provider: Provider::Own },
    &pi::Pi { api: pi::Api::Anthropic, provider: Provider::Own },
    &gemini::Gemini,
    &opencode::Opencode { name: "opencode", package: OPENCODE, provider: Provider::Own },
    &qwen::Qwen,
];

/// The agent with this name: `claude`.
///
/// # Errors
///
/// If there is none.
pub fn find_agent(name: &str) -> anyhow::Result<&'static dyn Agent> {
    let agent = AGENTS.iter().copied().find(|agent| agent.name() == name);
    let known = || AGENTS.iter().map(|agent| agent.name()).collect::<Vec<_>>().join(", ");
    agent.with_context(|| format!("no agent is called {name}; there are {}", known()))
}
