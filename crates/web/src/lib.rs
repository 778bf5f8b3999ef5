//! The local viewer: all sessions of this machine in a browser, for this user alone.
//!
//! [`Server::bind`] binds a local port and generates a token; [`Server::run`] serves requests until
//! it is stopped. See `docs/serve.md`.
//!
//! # Absent
//!
//! Anything that the library cannot do: the viewer calls it and shows the results. Addresses other
//! than 127.0.0.1, and requests to other servers.

mod asset;
mod change;
mod chart;
mod connection;
mod empty;
mod guard;
mod hits;
mod laid_out;
mod list;
mod losses;
mod options;
mod overview;
mod page;
mod page_cache;
mod plan;
mod problem;
mod query;
mod seeker;
mod server;
mod session;
mod session_cache;
mod stamp;
mod sums;
mod tail;
mod viewer;

pub use connection::Limits;
pub use options::{Options, Which};
pub use server::Server;
pub use session::page_of;
