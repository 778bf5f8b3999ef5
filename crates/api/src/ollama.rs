//! Ollama's own API: the requests and responses of `/api/chat`.
//!
//! This module only makes requests and parses responses: sessions are not exported to this API, and
//! its bodies are not read as sessions. A response is converted to a message of Chat Completions.

mod endpoint;
mod make;
mod response;
mod stream;

use super::{Api, openai_chat};

pub use endpoint::ENDPOINT;

/// The API of Ollama.
pub const API: Api = Api {
    name: "ollama",
    make: make::make,
    make_as: make::make_as,
    endpoint: ENDPOINT,
    options: endpoint::options,
    parse_response: response::parse,
    assembler: || Box::new(stream::Lines::default()),
    ..openai_chat::API
};
