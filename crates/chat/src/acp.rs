//! The Agent Client Protocol: an editor is the interface of the agent.
//!
//! [`serve`] speaks version 1 of it on two streams of lines. Each session is an [`Agent`] on a
//! thread; [`Sessions`] makes it. `wire` has the messages, `connection` sends and receives them,
//! `client` takes the editor's requests, `session` runs an agent, `update` says what happens in the
//! protocol's words, `ask` has the user asked, `choice` is what the user may choose.
//!
//! # Absent
//!
//! The editor's files and terminals: the tools work on the disk, as in the terminal.

mod choice;
mod client;
mod connection;
mod prompt;
mod questions;
mod session;
mod update;
mod wire;

use std::path::Path;

use crate::agent::Agent;
use crate::machine::Event;
use crate::mcp::Server;

pub use choice::Choices;
pub use client::serve;
pub use connection::Stopper;

/// Makes the agents of sessions: that needs settings, keys and files.
pub trait Sessions: Send + Sync + 'static {
    /// Makes an agent that works in a folder: for a new session, or for the one with this id.
    /// `servers` are MCP servers that the editor names; the folders of their programs are empty.
    ///
    /// # Errors
    ///
    /// Why there is none, for the user.
    fn start(&self, folder: &Path, id: Option<&str>, servers: &[Server])
    -> Result<Started, String>;
}

/// An agent, and what is known of it at the beginning.
pub struct Started {
    /// The agent.
    pub agent: Agent,
    /// The id of its session.
    pub id: String,
    /// What was said in it, what there is to tell, and how full its window is.
    pub first: Vec<Event>,
    /// What the user may choose.
    pub choices: Choices,
}
