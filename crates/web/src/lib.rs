//! The local viewer: all sessions of this machine in a browser, for this user alone.
//!
//! [`Options`] say, for example, which sessions are shown and what is redacted in them.
//! [`Server::bind`] binds a port of 127.0.0.1 and generates a token, without which every request is
//! refused; [`Server::run`] serves requests until it is stopped. `docs/serve.md` describes the
//! pages.
//!
//! Each page is a module, for example the list, the overview, a session, and the plan of a
//! compaction. Only the module `change` changes sessions. Requests are async; reading sessions runs
//! on separate threads, with the same library calls as the command line.
//!
//! ```
//! use epitome::{Config, Settings};
//! use epitome_tokens::Estimate;
//! use epitome_web::{Options, Server, Which};
//!
//! static COUNTER: Estimate = Estimate::new();
//! let options = Options {
//!     config: Config::from_home("/home/ada".as_ref()),
//!     settings: Settings::default(),
//!     which: Which::All,
//!     finder: None,
//!     counter: &COUNTER,
//! };
//! let server = Server::bind(options, 0)?;
//! assert!(server.address().starts_with("http://127.0.0.1:"));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Absent
//!
//! - Decisions: the viewer calls `epitome` and shows the results.
//! - The content of a session's page: `epitome-render`.
//! - Addresses other than 127.0.0.1, and requests to other servers.

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
mod proxy;
mod query;
mod seeker;
mod server;
mod session;
mod session_cache;
mod stamp;
mod sums;
mod tail;
mod vault_cache;
mod versions;
mod viewer;

pub use connection::Limits;
pub use options::{Options, Which};
pub use server::Server;
pub use session::page_of;
