//! The real coding agents, installed at pinned versions and driven without a terminal.
//!
//! An [`Agent`] runs in a [`Sandbox`]: a private home, a generated project, and a scripted model
//! server as the only service it knows. [`record`](record::record) plays a [`scenario`] and hands
//! back the session the agent stored; [`resume`](resume::resume) gives a session to a fresh agent
//! and tells what it sent to the model; [`e2e`] puts a compaction in between, [`carry`] another
//! agent, [`keep`] a session that ends by itself.

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

use anyhow::Context as _;

pub use action::Action;
pub use agent::{Agent, Facts, Way};
pub use home::{Home, RECORDED_HOME};
pub use process::Finished;
pub use sandbox::{Placed, Sandbox};

/// Every agent, in the order they are shown.
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

/// The agent of a name: `claude`.
///
/// # Errors
///
/// When there is none.
pub fn named(name: &str) -> anyhow::Result<&'static dyn Agent> {
    let agent = AGENTS.iter().copied().find(|agent| agent.name() == name);
    let known = || AGENTS.iter().map(|agent| agent.name()).collect::<Vec<_>>().join(", ");
    agent.with_context(|| format!("no agent is called {name}; there are {}", known()))
}
