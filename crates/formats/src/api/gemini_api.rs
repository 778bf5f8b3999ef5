//! Gemini: requests to `generateContent` and their responses.
//!
//! What it holds and what the service refuses is in `docs/formats/gemini-request.md`.

mod endpoint;
mod invariants;
mod make;
mod message;
mod read;
mod response;
mod stream;

use epitome_model::encode;

use super::Api;
use crate::write::{self, Gone, Shapes};
use crate::{Format, Write, Writing};

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
pub const FORMAT: Format = Format {
    name: "gemini-request",
    sniff: read::sniff,
    read: read::read,
    writing: Writing::Splices(SPLICES),
    native: None,
    summarise: None,
    laws: &invariants::GeminiLaws,
    thinking_is_bound: |_| false,
};

const SPLICES: Write =
    |transcript, source, edits| write::splices(transcript, source, edits, &SHAPES);

const SHAPES: Shapes = Shapes { output: write::literal, block: part, thinking: Gone::Whole };

fn part(text: &str) -> String {
    format!(r#"{{"text":{}}}"#, encode(text))
}
