//! OpenCode: rows of `opencode.db` as lines, and what `opencode export` writes.
//!
//! What the records mean, and how that was found, is in `docs/formats/opencode.md`.

mod database;
mod events;
mod export;
mod files;
mod hook;
mod laws;
mod mark;
mod raw;
mod read;
mod summarise;
mod tools;
mod write;

pub use database::DATABASE;
pub use files::FILES;
pub(crate) use hook::HOOK;

use crate::{Format, Mark, Native, Writing};

/// OpenCode's sessions: a database since 1.2, one JSON as `opencode export` writes it.
pub const FORMAT: Format = Format {
    name: "opencode",
    sniff: read::sniff,
    read: read::read,
    writing: Writing::Splices(write::write),
    native: Some(Native::Mark(Mark {
        sent: raw::CLEARED,
        write: mark::write,
        reaches: mark::reaches,
    })),
    summarise: Some(summarise::summarise),
    laws: &laws::OpencodeLaws,
    // OpenCode speaks to every provider; of these, Anthropic's newest models bind their reasoning.
    thinking_is_bound: crate::claude::thinking_is_bound,
};
