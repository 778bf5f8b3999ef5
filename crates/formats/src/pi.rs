//! pi: JSON lines, a header and a tree of entries.
//!
//! `docs/formats/pi.md` describes the records, and how that was found out.

mod additions;
mod address;
mod append;
mod hook;
mod invariants;
mod make;
mod raw;
mod read;
mod tools;

pub use additions::COMMAND;
pub use address::ADDRESS;
pub use hook::HOOK;

use epitome_json::write::{self, BlockRemainder, Shapes};

use crate::{Append, AppendedHiddenFields, Format, Native, Write};

/// pi's sessions, versions 1 to 3.
pub const FORMAT: Format = Format {
    native: Some(Native::Append(Append {
        write: append::append,
        passed_over: append::passed_over,
        reaches: append::reaches,
        cuts: false,
        hidden_fields: AppendedHiddenFields::Omitted,
        originals: None,
        // Rewriting is the default: versions of pi before 1.0 ignore appended records and would
        // send everything again.
        by_default: false,
    })),
    summarise: Some(append::summarise),
    make: Some(make::make),
    ..Format::writable("pi", read::sniff, read::read, SPLICES, &invariants::INVARIANTS)
};

const SPLICES: Write =
    |transcript, source, edits| write::splices(transcript, source, edits, &SHAPES);

const SHAPES: Shapes = Shapes {
    output: text_blocks,
    block: epitome_api::text_block,
    thinking: BlockRemainder::Nothing,
};

/// A text that replaces the content of a result, as a list of blocks: pi calls array methods on the
/// content, and could not open the session if it were a string.
fn text_blocks(text: &str) -> String {
    format!("[{}]", epitome_api::text_block(text))
}
