//! epitome's own format: the log of a live context, JSON lines that are only ever added to.
//!
//! What the records mean is in `docs/formats/epitome.md`. A [`Log`] reads such lines as they come.

mod append;
mod laws;
mod read;
mod record;

pub use append::{Batch, Undone, batch, cut, undo};
pub use read::{Log, id};
pub use record::{Said, Speaker, add_line, header, line, said};

use crate::write::{self, Gone, Shapes};
use crate::{Append, CopiesBehind, Format, Native, Write, Writing};

/// Logs of live contexts.
pub const FORMAT: Format = Format {
    name: "epitome",
    sniff: read::sniff,
    read: read::read,
    writing: Writing::Splices(SPLICES),
    native: Some(Native::Append(Append {
        write: append::append,
        passed_over: |_| None,
        reaches: append::reaches,
        copies: CopiesBehind::AreNotSaid,
        // A log is added to and never changed.
        by_default: true,
    })),
    summarise: Some(append::summarise),
    laws: &laws::EpitomeLaws,
    // A log may be of a talk with any provider; of these, Anthropic's newest models bind theirs.
    thinking_is_bound: crate::claude::thinking_is_bound,
};

const SPLICES: Write =
    |transcript, source, edits| write::splices(transcript, source, edits, &SHAPES);

const SHAPES: Shapes =
    Shapes { output: write::literal, block: record::text_block, thinking: Gone::Whole };
