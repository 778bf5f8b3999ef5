//! The local viewer: all sessions of this machine in a browser, for this user alone.
//!
//! [`Server::bind`] takes an address of this machine and makes up a token; [`Server::run`] answers
//! until it is told to stop. See `docs/serve.md`.
//!
//! # Absent
//!
//! Anything that the library cannot do: the viewer asks it and shows what it says. Any address but
//! that of this machine, any request to another.

mod asset;
mod change;
mod connection;
mod guard;
mod hits;
mod list;
mod options;
mod page;
mod plan;
mod problem;
pub mod search;
mod seeker;
mod server;
mod session;
mod shelf;
mod stamp;
mod tail;
mod viewer;

pub use connection::Limits;
pub use options::{Options, Which};
pub use server::Server;
