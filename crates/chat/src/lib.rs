//! A small coding agent that never runs out of context: the engine of epitome at work.
//!
//! [`Machine`] is the loop, without input or output; [`Permissions`] are data; [`TOOLS`] is what
//! the model may call; [`Agent`] carries out what the machine says, with a [`Model`] and tools; the
//! module `tui`, with the feature of that name, shows it in a terminal, the module `acp` in an
//! editor; the module `mcp` has the tools of MCP servers. `docs/agent.md` describes the program.
//!
//! # Absent
//!
//! HTTP to models, and what may go from a context.
//!
//! [`Model`]: epitome_llm::Model

#[cfg(feature = "acp")]
pub mod acp;
pub mod agent;
#[cfg(any(feature = "acp", feature = "tui"))]
mod commands;
pub mod demo;
mod dollars;
pub mod history;
pub mod machine;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod permissions;
pub mod prompt;
pub mod session;
pub mod tools;
#[cfg(feature = "tui")]
pub mod tui;
pub mod words;

pub use agent::{Agent, Changes, Front};
pub use dollars::parse_dollars;
pub use machine::{Action, Change, Cost, Ended, Event, Input, Limits, Machine};
pub use permissions::{Access, Answer, Permissions, Rule};
pub use tools::{OnProgress, TOOLS, Workplace};
