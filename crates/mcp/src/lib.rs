//! A server of the Model Context Protocol that lets an agent look into earlier sessions.
//!
//! It has a few tools ([`Tool`]) that only read: they list and search the sessions of all agents on
//! this machine, show what a compaction removed, and plan a compaction. The library and the search
//! index do the work; a tool writes their report as text for a model.
//!
//! Sessions are hostile data, and the reader is a model. So each answer is quoted (see [`Page`]):
//! text from a session is between two marks that the session cannot forge. What the redactor finds
//! (secrets and personal data) is removed, unless the caller of [`serve_stdio`] turns that off. A
//! page of an answer has at most [`Page::LARGEST`] bytes of text. If there is more, the page ends
//! with a cursor, with which the model requests the next page.
//!
//! # Absent
//!
//! Decisions: what matches, what was lost and what would be removed is decided in the library.
//! Changes: a tool writes nothing but the caches in epitome's own folder, such as the search index.
//! Transports other than standard input and output.

mod arguments;
mod error;
mod index;
mod page;
mod server;
mod sessions;
mod tool;
mod tools;

use std::io;

use epitome::{Config, Settings};
use epitome_redact::Finder;
use rmcp::ServiceExt as _;
use rmcp::transport::stdio;

pub use page::Page;
pub use server::Server;
pub use tool::Tool;

/// Serves on standard input and output until the client closes them. What `redact` finds is removed
/// from answers; `None` removes nothing. Texts in the search index are redacted in any case.
///
/// # Errors
///
/// When the client does not speak the protocol, or the runtime cannot be started.
pub fn serve_stdio(config: Config, settings: Settings, redact: Option<Finder>) -> io::Result<()> {
    let server = Server::new(config, settings, redact);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let running = server.serve(stdio()).await.map_err(io::Error::other)?;
        running.waiting().await.map(drop).map_err(io::Error::other)
    });
    // A thread that still waits for standard input must not delay the end.
    runtime.shutdown_background();
    served
}
