//! Sessions on disk, the archive of removed bytes, restoring and replacing.
//!
//! [`Place`] parses the address of a session (a file, rows of a database, many files), and
//! [`Loaded`] opens and reads one. The [`Archive`] keeps removed bytes, as one [`Generation`] per
//! compaction. [`Store`] locks a session and replaces it atomically, and [`restore`] computes which
//! bytes of a session to replace to undo compactions.
//!
//! # Absent
//!
//! Where agents keep sessions, what a compaction removes, and the process environment.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod archive;
pub mod carry;
pub mod compressed;
pub mod file_tree;
pub mod original;
pub mod place;
pub mod reference;
pub mod regular;
pub mod restore;
pub mod rows;
pub mod session;
pub mod source;
pub mod state;
pub mod step;
pub mod store;

pub use archive::{Archive, Generation};
pub use place::Place;
pub use session::Loaded;
pub use store::{Session, Store};
