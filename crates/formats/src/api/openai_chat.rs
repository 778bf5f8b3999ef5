//! OpenAI Chat Completions: the body of a request to `/v1/chat/completions`, and to the many
//! services that speak like it.
//!
//! What it holds and what the service refuses is in `docs/formats/openai-chat.md`.

mod endpoint;
mod invariants;
mod make;
mod message;
mod read;
mod response;
mod stream;

use super::Api;
use crate::write::{self, Gone, Shapes};
use crate::{Format, Write, Writing};

pub use endpoint::ENDPOINT;
pub use make::{make, make_as, tool};
pub use message::parse_message;

/// OpenAI's Chat Completions.
pub const API: Api = Api {
    name: "openai-chat",
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
    assembler: || Box::new(stream::Chunks::default()),
};

/// Bodies of requests to OpenAI's Chat Completions.
pub const FORMAT: Format = Format {
    name: "openai-chat",
    sniff: read::sniff,
    read: read::read,
    writing: Writing::Splices(SPLICES),
    native: None,
    summarise: None,
    laws: &invariants::ChatLaws,
    thinking_is_bound: |_| false,
};

const SPLICES: Write =
    |transcript, source, edits| write::splices(transcript, source, edits, &SHAPES);

const SHAPES: Shapes =
    Shapes { output: write::literal, block: write::text_block, thinking: Gone::Whole };
