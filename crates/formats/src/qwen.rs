//! Qwen Code: JSON lines, records linked by `uuid` and `parentUuid`, whose messages are those of
//! Gemini's API.
//!
//! What the records mean, and how that was found, is in `docs/formats/qwen.md`.

mod invariants;
mod read;

use crate::write::{self, Gone, Shapes};
use crate::{Format, Write, Writing};

/// Qwen Code's sessions.
pub const FORMAT: Format = Format {
    name: "qwen",
    sniff: read::sniff,
    read: read::read,
    writing: Writing::Splices(SPLICES),
    native: None,
    summarise: None,
    laws: &invariants::QwenInvariants,
    thinking_is_bound: crate::claude::thinking_is_bound,
};

const SPLICES: Write =
    |transcript, source, edits| write::splices(transcript, source, edits, &SHAPES);

const SHAPES: Shapes = Shapes { output: write::literal, block: part, thinking: Gone::Whole };

/// A text as a part of a message.
fn part(text: &str) -> String {
    format!(r#"{{"text":{}}}"#, epitome_model::encode(text))
}
