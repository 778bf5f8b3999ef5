//! Runs the real coding agents, installed at pinned versions, without a terminal.
//!
//! An [`Agent`] runs in a [`Sandbox`]: a temporary home, a generated project, and a scripted model
//! server, the only service it can reach. [`record`](record::record) plays a [`scenario`] and
//! returns the session that the agent stored; [`resume`](resume::resume) resumes a session in a
//! fresh agent and returns what it sent to the model; [`e2e`] adds a compaction in between,
//! [`carry`] a port to another agent, and [`keep`] a session that ends by itself.

mod action;
mod agent;
pub mod carry;
mod claude;
mod codex;
pub mod e2e;
mod gemini;
mod home;
pub mod install;
pub mod keep;
mod opencode;
pub mod past;
mod pi;
mod process;
pub mod project;
mod qwen;
pub mod readers;
pub mod record;
pub mod resume;
mod sandbox;
pub mod scenario;
pub mod sdk;
pub mod wrap;

use anyhow::Context as _;

pub use action::Action;
pub use agent::{Agent, Facts, Way};
pub use home::{Home, RECORDED_HOME};
pub use process::Finished;
pub use sandbox::{Placed, Sandbox};

/// All agents, in the order of display.
pub static AGENTS: &[&dyn Agent] = &[
    &pi::Pi { api: pi::Api::Anthropic },
    &pi::Pi { api: pi::Api::Chat },
    &claude::Claude,
    &codex::Codex { tools: codex::Tools::Single },
    &codex::Codex { tools: codex::Tools::Scripts },
    &gemini::Gemini,
    &opencode::Opencode { name: "opencode", package: "opencode-ai@1.18.33" },
    &opencode::Opencode { name: "kilo", package: "@kilocode/cli@7.7.7" },
    &qwen::Qwen,
];

/// The agent with this name: `claude`.
///
/// # Errors
///
/// If there is none.
pub fn named(name: &str) -> anyhow::Result<&'static dyn Agent> {
    let agent = AGENTS.iter().copied().find(|agent| agent.name() == name);
    let known = || AGENTS.iter().map(|agent| agent.name()).collect::<Vec<_>>().join(", ");
    agent.with_context(|| format!("no agent is called {name}; there are {}", known()))
}
