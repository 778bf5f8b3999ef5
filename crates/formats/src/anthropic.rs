//! Anthropic Messages: the body of a request to `/v1/messages`.
//!
//! What it holds and what the service refuses is in `docs/formats/anthropic.md`.

mod hear;
mod laws;
mod make;
mod messages;
mod read;

use crate::write::{self, Gone, Shapes};
use crate::{Format, Write, Writing};

pub use hear::hear;
pub use make::{make, make_as, offer};
pub use messages::{messages, messages_of};

/// Bodies of requests to Anthropic's Messages.
pub const FORMAT: Format = Format {
    name: "anthropic",
    sniff: read::sniff,
    read: read::read,
    writing: Writing::Splices(SPLICES),
    native: None,
    summarise: None,
    laws: &laws::AnthropicLaws,
    thinking_is_bound: crate::claude::thinking_is_bound,
};

const SPLICES: Write =
    |transcript, source, edits| write::splices(transcript, source, edits, &SHAPES);

const SHAPES: Shapes =
    Shapes { output: write::literal, block: write::text_block, thinking: Gone::Whole };
