//! A small coding agent that compacts its own context: the engine of epitome at work.
//!
//! [`Machine`] is the loop of the agent as a state machine: it takes an [`Input`] and returns
//! [`Action`]s. [`Agent`] carries these out with a [`Model`] and the [`TOOLS`], and reports to a
//! [`Front`]. [`Permissions`] are data: for each [`Access`] they say whether a call runs, is
//! refused, or needs the user's answer.
//!
//! [`ChatOptions`] makes an agent from options and settings. Front ends are [`tui`] for a terminal
//! and [`acp`] for an editor; [`mcp`] adds the tools of MCP servers. `docs/agent.md` describes the
//! program.
//!
//! ```
//! use epitome_chat::permissions::Verdict;
//! use epitome_chat::{Access, Permissions, Rule};
//!
//! let rule = Rule::allow("shell: cargo test").expect("a rule");
//! let permissions = Permissions::new("/project".into()).with_rules([rule]);
//! let command = |line: &str| Access::Shell(line.to_owned());
//! assert_eq!(permissions.judge(&command("cargo test --all")), Verdict::Allow);
//! assert_eq!(permissions.judge(&command("rm -rf /")), Verdict::Ask);
//! ```
//!
//! # Absent
//!
//! - HTTP to models: `epitome-llm`.
//! - Deciding what a compaction removes: `epitome-engine`.
//! - Where logs are kept: `epitome::live`.
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
pub use machine::{Action, Cost, Event, Input, Limits, Machine, NoAnswer, OutsideChange, TurnEnd};
pub use models::ChatModels;
pub use options::{ChatOptions, Wait};
pub use permissions::{Access, Answer, Permissions, Rule};
pub use start::StartedChat;
pub use tools::{OnProgress, TOOLS, Workplace};
