//! Ollama's own API: the requests and responses of `/api/chat`.
//!
//! Sessions are not exported to it and its request bodies are not read: a response is converted to
//! a message of Chat Completions.

mod endpoint;
mod make;
mod response;
mod stream;

use super::{Api, openai_chat};

pub use endpoint::ENDPOINT;

/// Ollama's own API.
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
