//! Claude Code: JSON lines, records linked by `uuid` and `parentUuid`.
//!
//! What the records mean, and how that was found, is in `docs/formats/claude.md`.

mod hook;
mod kinds;
mod laws;
mod make;
mod raw;
mod read;
mod summarise;
mod tools;

pub(crate) use hook::HOOK;
pub use make::make;

use crate::write::{self, Gone, Shapes};
use crate::{Format, Write, Writing};

/// Claude Code's sessions.
pub const FORMAT: Format = Format {
    name: "claude",
    sniff: read::sniff,
    read: read::read,
    writing: Writing::Splices(SPLICES),
    native: None,
    summarise: Some(summarise::summarise),
    laws: &laws::ClaudeLaws,
    thinking_is_bound,
};

const SPLICES: Write =
    |transcript, source, edits| write::splices(transcript, source, edits, &SHAPES);

const SHAPES: Shapes =
    Shapes { output: write::literal, block: write::text_block, thinking: Gone::Whole };

/// Models whose reasoning is bound to everything before it: Anthropic's documentation of preserved
/// thinking names them.
pub fn thinking_is_bound(model: &str) -> bool {
    const BOUND: [&str; 3] = ["claude-fable-5", "claude-sonnet-5-5", "claude-haiku-5-5"];
    BOUND.iter().any(|name| model.starts_with(name))
}
