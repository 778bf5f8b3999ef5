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

use epitome_model::{Source, Transcript};

use crate::{Faults, Format, Mark, Native, Writing, lines};

/// OpenCode's sessions: a database since 1.2, one JSON as `opencode export` writes it.
pub const FORMAT: Format = Format {
    name: "opencode",
    sniff,
    read,
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

/// Whether a source is rows as lines, or an export.
fn sniff(head: &[u8]) -> bool {
    is_rows(head) || export::sniff(head)
}

/// Reads a session.
fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    if is_rows(&source.read(0..64)) {
        let mut reader = read::Reader::default();
        lines(source, |line| reader.line(&line, faults));
        return reader.finish();
    }
    export::read(source, faults)
}

fn is_rows(head: &[u8]) -> bool {
    head.starts_with(b"{\"table\":\"")
}
