//! Qwen Code: JSON lines, records linked by `uuid` and `parentUuid`, with messages in the format of
//! Gemini's API.
//!
//! `docs/formats/qwen.md` describes the records, and how that was found out.

mod invariants;
mod read;

use epitome_json::write::{self, Gone, Shapes};

use crate::{Format, Write, Writing};

/// Qwen Code's sessions.
pub const FORMAT: Format = Format {
    name: "qwen",
    sniff: read::sniff,
    read: read::read,
    writing: Writing::Splices(SPLICES),
    native: None,
    summarise: None,
    invariants: &invariants::QwenInvariants,
    make: None,
    thinking_is_bound: epitome_api::anthropic::thinking_is_bound,
    databases: &[],
    files: None,
};

const SPLICES: Write =
    |transcript, source, edits| write::splices(transcript, source, edits, &SHAPES);

const SHAPES: Shapes = Shapes { output: write::literal, block: part, thinking: Gone::Whole };

/// A text as a part of a message.
fn part(text: &str) -> String {
    format!(r#"{{"text":{}}}"#, epitome_model::encode(text))
}
