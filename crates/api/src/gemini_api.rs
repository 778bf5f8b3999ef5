//! Gemini: requests to `generateContent` and their responses.
//!
//! `docs/formats/gemini-request.md` describes its members and what the service refuses.

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

/// Gemini's `generateContent`.
pub const API: Api = Api {
    name: "gemini-api",
    aliases: &["gemini"],
    list: "contents",
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

/// Bodies of requests to Gemini's `generateContent`.
pub const FORMAT: BodyFormat = BodyFormat {
    name: "gemini-request",
    sniff: read::sniff,
    read: read::read,
    write: SPLICES,
    invariants: &invariants::GeminiInvariants,
    thinking_is_bound: |_| false,
};

const SPLICES: write::Write =
    |transcript, source, edits| write::splices(transcript, source, edits, &SHAPES);

const SHAPES: Shapes = Shapes { output: write::literal, block: part, thinking: Gone::Whole };

fn part(text: &str) -> String {
    format!(r#"{{"text":{}}}"#, encode(text))
}
