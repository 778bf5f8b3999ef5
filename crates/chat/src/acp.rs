//! The Agent Client Protocol: an editor is the interface of the agent.
//!
//! [`serve`] speaks version 1 of the protocol over two streams of lines. Each session is an
//! [`Agent`] on a thread; [`Sessions`] makes the agent. The modules: `wire` has the messages,
//! `connection` sends and receives them, `client` handles the editor's requests, `session` runs an
//! agent, `prompt` converts a message of the editor to text, `update` converts events to messages,
//! `questions` asks the user, `choice` has the options that the user may set.
//!
//! # Absent
//!
//! The protocol's methods for reading files and running terminals in the editor are not used: the
//! tools work on the disk, as they do in the terminal interface.

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

/// Makes the agents of sessions. The caller of [`serve`] implements this, because making an agent
/// needs settings and API keys, which this module does not read.
pub trait Sessions: Send + Sync + 'static {
    /// Makes an agent that works in `folder`: for the existing session `id`, or for a new session
    /// if `id` is `None`. `servers` are the MCP servers that the editor configures. The editor does
    /// not say in which folder the program of a server starts, so `folder` of a [`Server`] in
    /// `servers` is an empty path.
    ///
    /// # Errors
    ///
    /// The reason why the session cannot be started, as a text for the user.
    fn start(
        &self,
        folder: &Path,
        id: Option<&str>,
        servers: &[Server],
    ) -> Result<StartedSession, String>;
}

/// An agent, and the events to show first.
pub struct StartedSession {
    /// The agent.
    pub agent: Agent,
    /// The id of the agent's session.
    pub id: String,
    /// The events to show first: the earlier messages of the session, notices, and how full the
    /// context window is. The messages are sent only if the editor asks for them.
    pub first: Vec<Event>,
    /// The options that the user may set.
    pub choices: Choices,
}
