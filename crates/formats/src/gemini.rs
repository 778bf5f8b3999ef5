//! Gemini CLI: a log of JSON lines in which a message is written again when it changes, or, in
//! older versions, one JSON object.
//!
//! What the records mean, and how that was found, is in `docs/formats/gemini.md`.

mod append;
mod hook;
mod laws;
mod log;
mod message;
mod raw;
mod read;
mod tools;
mod write;

use crate::{Append, CopiesBehind, Format, Native, Writing};
pub(crate) use hook::HOOK;

/// Gemini CLI's sessions.
pub const FORMAT: Format = Format {
    name: "gemini",
    sniff: read::sniff,
    read: read::read,
    writing: Writing::Splices(write::write),
    native: Some(Native::Append(Append {
        write: append::append,
        passed_over: |_| None,
        reaches: |_, _| true,
        copies: CopiesBehind::GoAlong,
        // Nothing points into the file, so that rewriting breaks nothing: it sends the same and
        // leaves a fraction of the file.
        by_default: false,
    })),
    summarise: Some(append::summarise),
    laws: &laws::GeminiLaws,
    // Signatures of turns that are over are not asked for.
    thinking_is_bound: |_| false,
};

#[cfg(test)]
mod tests;
