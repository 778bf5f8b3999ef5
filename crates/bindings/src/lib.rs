//! The library for other languages: requests and answers are JSON, except for the sessions of a
//! [`Fleet`], which are bytes. `crates/python` and `crates/node` are built on this library, each
//! with the types and errors of its language.
//!
//! - [`Engine`] keeps the context of a running agent, as `epitome engine` does on a pipe.
//! - [`Fleet`] compacts, restores, inspects and redacts batches of sessions, which are bytes in
//!   memory.
//! - [`call`] runs a command of the program, mostly on a stored session. Most answers are what the
//!   command prints with `--json`.
//!
//! An error of [`Engine`] or [`call`] is an answer, too:
//! `{"error": {"kind": …, "message": …, "hints": […]}}`.
//!
//! ```
//! let answer = epitome_bindings::call("no-such-function", b"{}");
//! assert!(answer.starts_with(r#"{"error":{"#), "{answer}");
//! ```
//!
//! # Absent
//!
//! - Calls of models: the caller asks its own model, and passes the answer to the engine.
//! - Decisions: they are in `epitome`.

mod answer;
mod fleet;
mod live;
mod options;
mod sessions;

pub use answer::error;
pub use fleet::{
    CompactedRow, Fleet, FleetPack, FleetSession, InspectedRow, RedactedRow, RestoredRow, Row,
    RowError,
};
pub use live::Engine;
pub use sessions::call;
