//! Properties that hold for any bytes: a function for each kind of text that epitome reads.
//!
//! [`session`] tests every format of `epitome_formats::FORMATS`.
//!
//! The fuzz targets call these functions, and so do the tests of this crate, with recorded sessions
//! and damaged versions of them. Each panics if a property does not hold.
//!
//! # Absent
//!
//! Properties of whole sessions only, such as that a second compaction finds nothing to do: those
//! are tested next to the engine.

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

/// All of these functions, by the name of the fuzz target.
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
