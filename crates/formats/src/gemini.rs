//! Gemini CLI: a log of JSON lines in which a message is appended again when it changes; in older
//! versions, one JSON object.
//!
//! `docs/formats/gemini.md` describes the records, and how that was found out.

mod additions;
mod address;
mod append;
mod hook;
mod invariants;
mod log;
mod message;
mod raw;
mod read;
mod tools;
mod write;

use crate::{Append, AppendedHiddenFields, Format, Native};
pub use additions::{COMMAND, MCP};
pub use address::ADDRESS;
pub use hook::HOOK;

/// Gemini CLI's sessions.
pub const FORMAT: Format = Format {
    native: Some(Native::Append(Append {
        write: append::append,
        passed_over: |_| None,
        reaches: |_, _| true,
        cuts: false,
        hidden_fields: AppendedHiddenFields::Included,
        originals: None,
        // Rewriting is the default: no other file contains offsets into this file, a resume sends
        // the same in both ways, and the rewritten file is much smaller.
        by_default: false,
    })),
    summarise: Some(append::summarise),
    // The API does not require signatures of finished turns.
    thinking_is_bound: |_| false,
    ..Format::writable("gemini", read::sniff, read::read, write::write, &invariants::INVARIANTS)
};

#[cfg(test)]
mod tests;
