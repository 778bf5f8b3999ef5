//! JSON without loss: values are found where they are in the text, and an edit replaces the bytes
//! of its value and no others.
//!
//! - [`Cursor`] walks over a text and builds nothing: for records of which few members matter.
//! - [`Document`] is a tree of the [`Value`]s of a text, each with its position.
//! - [`write`](mod@write) turns [`Edit`](epitome_model::Edit)s into replacements of bytes. The
//!   order of keys, unknown members, the text of numbers and white space stay.
//!
//! ```
//! use epitome_json::Document;
//!
//! let document = Document::parse(br#"{"a": 1.50, "b": [true, "two"]}"#)?;
//! let b = document.root.list_of("b");
//! assert_eq!(b[1].text().as_deref(), Some("two"));
//! assert_eq!(b[1].range(), &(24..29));
//! # Ok::<(), epitome_json::Malformed>(())
//! ```
//!
//! # Absent
//!
//! No agent's and no API's keys. No serialisation: [`epitome_model::encode`] writes texts.

// Pure crates do no IO: `clippy.toml` names what they must not use.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod cursor;
mod document;
pub mod write;

pub use cursor::{Cursor, Kind, Malformed, check, integer, without};
pub use document::{Document, Value, whole};
