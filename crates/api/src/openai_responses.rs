//! OpenAI Responses: requests to `/v1/responses` and their responses.
//!
//! `docs/formats/openai-responses.md` describes its members and what the service refuses.

mod endpoint;
mod invariants;
mod make;
mod message;
mod read;
mod response;
mod stream;

use epitome_json::write::{self, Gone, Shapes};
use epitome_model::encode;

use super::Api;
use crate::BodyFormat;

pub use endpoint::ENDPOINT;
pub use make::{make, make_as, tool};
pub use message::parse_message;

/// OpenAI's Responses.
pub const API: Api = Api {
    name: "openai-responses",
    aliases: &[],
    list: "input",
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

/// Bodies of requests to OpenAI's Responses.
pub const FORMAT: BodyFormat = BodyFormat {
    name: "openai-responses",
    sniff: read::sniff,
    read: read::read,
    write: SPLICES,
    invariants: &invariants::ResponsesInvariants,
    thinking_is_bound: |_| false,
};

const SPLICES: write::Write =
    |transcript, source, edits| write::splices(transcript, source, edits, &SHAPES);

const SHAPES: Shapes = Shapes { output: write::literal, block: input_text, thinking: Gone::Whole };

fn input_text(text: &str) -> String {
    format!(r#"{{"type":"input_text","text":{}}}"#, encode(text))
}
