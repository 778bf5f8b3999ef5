//! A scripted model server for tests with real coding agents.
//!
//! It listens on 127.0.0.1, implements Anthropic Messages, OpenAI Chat Completions, OpenAI
//! Responses, Gemini and Ollama, plays a [`Script`], and answers 400 in the provider's format to
//! histories that the real service would refuse (but not for Ollama, which refuses none). Every
//! request is recorded, so that a test can check what an agent has sent. A test in another language
//! sets its script with `POST /script` ([`Script::from_json`]). [`Rough`] is a server with faults.
//!
//! ```
//! use model_server::{Script, Server, Step};
//! let server = Server::start(Script::new([Step::text("Hello.")]))?;
//! assert!(server.url().starts_with("http://127.0.0.1:"));
//! assert!(server.exchanges().is_empty());
//! # anyhow::Ok(())
//! ```

pub mod anthropic;
pub mod chat;
pub mod gemini;
pub mod ollama;
mod refusal;
mod reply;
pub mod responses;
mod rough;
mod routes;
mod script;
mod server;
mod sign;
mod sse;
mod stage;

pub use refusal::Refusal;
pub use rough::{Answer, Break, Rough};
pub use script::{Ending, Script, Step, ToolCall, Track};
pub use server::Server;
pub use sign::{Signature, sign, verify};
pub use stage::{Exchange, Outcome};
