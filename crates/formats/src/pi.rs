//! pi: JSON lines, entries of a tree below a header.
//!
//! What the records mean, and how that was found, is in `docs/formats/pi.md`.

mod append;
mod hook;
mod laws;
mod make;
mod raw;
mod read;
mod tools;

pub(crate) use hook::HOOK;
pub use make::make;

use crate::write::{self, Gone, Shapes};
use crate::{Append, CopiesBehind, Format, Native, Write, Writing};

/// pi's sessions, versions 1 to 3.
pub const FORMAT: Format = Format {
    name: "pi",
    sniff: read::sniff,
    read: read::read,
    writing: Writing::Splices(SPLICES),
    native: Some(Native::Append(Append {
        write: append::append,
        passed_over: append::passed_over,
        reaches: append::reaches,
        copies: CopiesBehind::AreNotSaid,
        // Versions before 1.0 pass over such records and would send everything again.
        by_default: false,
    })),
    summarise: Some(append::summarise),
    laws: &laws::PiLaws,
    // pi speaks to every provider; of these, Anthropic's newest models bind their reasoning.
    thinking_is_bound: crate::claude::thinking_is_bound,
};

const SPLICES: Write =
    |transcript, source, edits| write::splices(transcript, source, edits, &SHAPES);

const SHAPES: Shapes =
    Shapes { output: text_blocks, block: write::text_block, thinking: Gone::Whole };

/// pi calls array methods on the content of a result: a string there ends the session.
fn text_blocks(text: &str) -> String {
    format!("[{}]", write::text_block(text))
}
