//! Where bytes lie and how they come back: sessions on disk, the archive, restoring, replacing.
//!
//! [`Place`] tells what a path of a session means (a file, rows of a database, many files), and
//! [`Loaded`] opens and reads one. The [`Archive`] keeps removed bytes as one [`Generation`] a
//! compaction. [`Store`] locks a session and replaces it in one step, and [`restore`] says what
//! must be laid over a session so that it is what it was.
//!
//! # Absent
//!
//! Agents' folders and habits, what a compaction removes, the environment.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod archive;
pub mod carry;
pub mod compressed;
pub mod place;
pub mod reference;
pub mod regular;
pub mod restore;
pub mod rows;
pub mod session;
pub mod source;
pub mod spread;
pub mod state;
pub mod store;

pub use archive::{Archive, Generation};
pub use place::Place;
pub use session::Loaded;
pub use store::{Session, Store};
