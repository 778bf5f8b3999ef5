//! JSON without loss: values are found where they are in the text, and an edit replaces the bytes
//! of its value and no others. A value that is removed takes its key and its comma with it.
//!
//! A [`Cursor`] walks over a text and builds nothing: it is for records of which few members
//! matter. A [`Document`] is a tree of the [`Value`]s of a text, each with its position. Both also
//! read strings that are not UTF-8. At the first syntax error they return [`MalformedJson`], with
//! the offset of the error.
//!
//! [`write`](mod@write) turns [`Edit`](epitome_model::Edit)s of a transcript into replacements of
//! bytes. The order of keys, unknown members, the text of numbers and white space stay as they are.
//!
//! ```
//! use epitome_json::Document;
//!
//! let document = Document::parse(br#"{"a": 1.50, "b": [true, "two"]}"#)?;
//! let b = document.root.list_of("b");
//! assert_eq!(b[1].text().as_deref(), Some("two"));
//! assert_eq!(b[1].range(), &(24..29));
//! # Ok::<(), epitome_json::MalformedJson>(())
//! ```
//!
//! # Absent
//!
//! - Keys of agents and of APIs: `epitome-formats` and `epitome-api`.
//! - Serialisation of values: [`epitome_model::encode`] writes strings, and other crates use
//!   `serde_json`.

// Pure crates do no IO: `clippy.toml` names what they must not use.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod cursor;
mod document;
pub mod write;

pub use cursor::{Cursor, Kind, MalformedJson, check, integer, without};
pub use document::{Document, Value, read_all};
