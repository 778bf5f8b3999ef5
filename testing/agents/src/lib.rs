//! The real coding agents, installed at pinned versions and driven without a terminal.
//!
//! An [`Agent`] runs in a [`Sandbox`]: a private home, a generated project, and a scripted model
//! server as the only service it knows. [`record`](record::record) plays a [`scenario`] and hands
//! back the session the agent stored; [`resume`](resume::resume) gives a session to a fresh agent
//! and tells what it sent to the model; [`e2e`] puts a compaction in between, [`carry`] another
//! agent, [`keep`] a session that ends by itself.

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

pub use home::{Home, RECORDED_HOME};
pub use process::Finished;
pub use sandbox::{Agent, Placed, Sandbox};
