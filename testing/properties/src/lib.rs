//! Properties that hold for any bytes: a function for each kind of text that epitome reads.
//!
//! [`session`] tests every format of `epitome_formats::FORMATS`.
//!
//! The fuzz targets call these functions. The tests of this crate call them too, with recorded
//! sessions and damaged versions of these. A function panics if a property does not hold.
//!
//! # Absent
//!
//! Properties that only undamaged sessions have, such as that a second compaction finds nothing to
//! do: the engine's own tests check them.

mod packs;
mod pages;
mod responses;
mod secrets;
mod sessions;
mod summaries;
mod texts;

pub use packs::pack;
pub use pages::{html_is_inert, page, viewer_is_inert};
pub use responses::response;
pub use secrets::redact;
pub use sessions::{any_session, session};
pub use summaries::summary;
pub use texts::{json, recipe, stub};

/// A property that must hold for any bytes.
pub type Body = fn(&[u8]);

/// The functions that take only bytes, by the name of their fuzz target.
pub const BODIES: &[(&str, Body)] = &[
    ("json", json),
    ("pack", pack),
    ("recipe", recipe),
    ("redact", redact),
    ("response", response),
    ("session", any_session),
    ("stub", stub),
    ("summary", summary),
];
