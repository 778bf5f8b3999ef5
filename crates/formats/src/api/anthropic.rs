//! Anthropic Messages: requests to `/v1/messages` and their responses.
//!
//! What it holds and what the service refuses is in `docs/formats/anthropic.md`.

mod endpoint;
mod invariants;
mod make;
mod message;
mod messages;
mod read;
mod response;
mod stream;

use super::Api;
use crate::write::{self, Gone, Shapes};
use crate::{Format, Write, Writing};

pub use endpoint::ENDPOINT;
pub use make::{make, make_as, tool};
pub use message::parse_message;
pub use messages::{messages, messages_of};

/// Anthropic's Messages.
pub const API: Api = Api {
    name: "anthropic",
    aliases: &[],
    list: "messages",
    format: &FORMAT,
    parse_message,
    make,
    make_as,
    tool,
    endpoint: ENDPOINT,
    options: endpoint::options,
    parse_response: response::parse,
    assembler: || Box::new(stream::Events::default()),
};

/// Bodies of requests to Anthropic's Messages.
pub const FORMAT: Format = Format {
    name: "anthropic",
    sniff: read::sniff,
    read: read::read,
    writing: Writing::Splices(SPLICES),
    native: None,
    summarise: None,
    laws: &invariants::AnthropicLaws,
    thinking_is_bound: crate::claude::thinking_is_bound,
};

const SPLICES: Write =
    |transcript, source, edits| write::splices(transcript, source, edits, &SHAPES);

const SHAPES: Shapes =
    Shapes { output: write::literal, block: write::text_block, thinking: Gone::Whole };
