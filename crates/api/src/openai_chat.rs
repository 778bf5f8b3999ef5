//! OpenAI Chat Completions: the body of a request to `/v1/chat/completions`, and to the many
//! services with the same API.
//!
//! `docs/formats/openai-chat.md` describes its members and what the service refuses.

mod endpoint;
mod invariants;
mod make;
mod message;
mod read;
mod response;
mod stream;

use epitome_json::write::{self, Gone, Shapes};

use super::Api;
use crate::{BodyFormat, text_block};

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
pub const FORMAT: BodyFormat = BodyFormat {
    name: "openai-chat",
    sniff: read::sniff,
    read: read::read,
    write: SPLICES,
    invariants: &invariants::ChatInvariants,
    thinking_is_bound: |_| false,
};

const SPLICES: write::Write =
    |transcript, source, edits| write::splices(transcript, source, edits, &SHAPES);

const SHAPES: Shapes = Shapes { output: write::literal, block: text_block, thinking: Gone::Whole };
