//! Claude Code: JSON lines, records linked by `uuid` and `parentUuid`.
//!
//! `docs/formats/claude.md` describes the records, and how that was found out.

mod counted;
mod hook;
mod invariants;
mod kinds;
mod make;
mod raw;
mod read;
mod summarise;
mod tools;

pub use hook::HOOK;

use epitome_json::write::{self, Gone, Shapes};

use crate::{Format, Write, Writing};

/// Claude Code's sessions.
pub const FORMAT: Format = Format {
    name: "claude",
    sniff: read::sniff,
    read: read::read,
    writing: Writing::Splices(SPLICES),
    native: None,
    summarise: Some(summarise::summarise),
    invariants: &invariants::ClaudeInvariants,
    make: Some(make::make),
    thinking_is_bound: epitome_api::anthropic::thinking_is_bound,
    databases: &[],
    files: None,
};

const SPLICES: Write =
    |transcript, source, edits| write::splices(transcript, source, edits, &SHAPES);

const SHAPES: Shapes =
    Shapes { output: write::literal, block: epitome_api::text_block, thinking: Gone::Whole };

#[cfg(test)]
mod tests;
