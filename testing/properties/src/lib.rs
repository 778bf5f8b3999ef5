//! What must hold of any bytes: a function for each kind of text that epitome reads.
//!
//! [`session`] does it for every format of `epitome_formats::FORMATS`.
//!
//! The fuzz targets call these functions, and so do the plain tests of this crate, over recorded
//! sessions and what is left of them after damage. Each panics when something does not hold.
//!
//! # Absent
//!
//! What holds of whole sessions only, such as that a second compaction finds nothing to do: that is
//! tested beside the engine.

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

/// What must hold of any bytes.
pub type Body = fn(&[u8]);

/// Each of these functions, by the name of its fuzz target.
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
