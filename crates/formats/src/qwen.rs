//! Qwen Code: JSON lines, records linked by `uuid` and `parentUuid`, with messages in the format of
//! Gemini's API.
//!
//! `docs/formats/qwen.md` describes the records, and how that was found out.

mod additions;
mod address;
mod invariants;
mod read;

pub use additions::COMMAND;
pub use address::ADDRESS;

use epitome_json::write::{self, BlockRemainder, Shapes};

use crate::{Format, Write};

/// Qwen Code's sessions.
pub const FORMAT: Format =
    Format::writable("qwen", read::sniff, read::read, SPLICES, &invariants::INVARIANTS);

const SPLICES: Write =
    |transcript, source, edits| write::splices(transcript, source, edits, &SHAPES);

const SHAPES: Shapes =
    Shapes { output: write::literal, block: part, thinking: BlockRemainder::Nothing };

/// A text as a part of a message.
fn part(text: &str) -> String {
    format!(r#"{{"text":{}}}"#, epitome_model::encode(text))
}
