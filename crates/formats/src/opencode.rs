//! OpenCode: rows of `opencode.db` as lines, and what `opencode export` writes.
//!
//! What the records mean, and how that was found, is in `docs/formats/opencode.md`.

mod database;
mod events;
mod export;
mod laws;
mod raw;
mod read;
mod tools;
mod write;

pub use database::DATABASE;

use crate::{Format, Writing};

/// OpenCode's sessions: a database since 1.2, one JSON as `opencode export` writes it.
pub const FORMAT: Format = Format {
    name: "opencode",
    sniff: read::sniff,
    read: read::read,
    writing: Writing::Splices(write::write),
    append: None,
    summarise: None,
    laws: &laws::OpencodeLaws,
    // OpenCode speaks to every provider; of these, Anthropic's newest models bind their reasoning.
    thinking_is_bound: crate::claude::thinking_is_bound,
};
