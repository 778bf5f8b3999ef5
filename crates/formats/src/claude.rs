//! Claude Code: JSON lines, records linked by `uuid` and `parentUuid`.
//!
//! `docs/formats/claude.md` describes the records, and how that was found out.

mod additions;
mod address;
mod billed;
mod counted;
mod hook;
mod invariants;
mod kinds;
mod make;
mod raw;
mod read;
mod status;
mod summarise;
mod tools;

pub use additions::{COMMAND, MCP, STATUS_LINE};
pub use address::ADDRESS;
pub use billed::read_billed;
pub use hook::HOOK;
pub use status::{Status, kept_days, status};

use epitome_json::write::{self, BlockRemainder, Shapes};

use crate::{Format, Write};

/// Claude Code's sessions. Edits are written into their records; only a summary or a digest is
/// appended.
pub const FORMAT: Format = Format {
    summarise: Some(summarise::summarise),
    make: Some(make::make),
    billed: Some(read_billed),
    ..Format::writable("claude", read::sniff, read::read, SPLICES, &invariants::INVARIANTS)
};

const SPLICES: Write =
    |transcript, source, edits| write::splices(transcript, source, edits, &SHAPES);

/// What replaces removed content in a record: a string replaces a result, and a text block replaces
/// a picture. Reasoning is removed without a replacement.
const SHAPES: Shapes = Shapes {
    output: write::literal,
    block: epitome_api::text_block,
    thinking: BlockRemainder::Nothing,
};

#[cfg(test)]
mod tests;
