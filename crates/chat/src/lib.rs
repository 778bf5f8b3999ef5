//! A small coding agent that never runs out of context: the engine of epitome at work.
//!
//! [`Machine`] is the loop, without input or output; [`Permissions`] are data; [`TOOLS`] lists the
//! tools of the model; [`Agent`] carries out the machine's actions with a [`Model`] and tools;
//! [`ChatOptions`] makes an agent from options and settings; `tui` shows it in a terminal, `acp` in
//! an editor; `mcp` adds the tools of MCP servers. `docs/agent.md` describes the program.
//!
//! # Absent
//!
//! HTTP to models, and deciding what a compaction removes: lower crates do that.
//!
//! [`Model`]: epitome_llm::Model

pub mod acp;
pub mod agent;
mod agent_setup;
mod commands;
pub mod demo;
mod dollars;
pub mod history;
pub mod machine;
pub mod mcp;
mod models;
pub mod notices;
mod options;
pub mod permissions;
pub mod prompt;
pub mod session;
mod start;
pub mod tools;
pub mod tui;

pub use agent::{Agent, Changes, Front};
pub use agent_setup::AgentSetup;
pub use dollars::parse_dollars;
pub use machine::{Action, Cost, Ended, Event, Input, Limits, Machine, OutsideChange};
pub use models::ChatModels;
pub use options::{ChatOptions, Wait};
pub use permissions::{Access, Answer, Permissions, Rule};
pub use start::Started;
pub use tools::{OnProgress, TOOLS, Workplace};
