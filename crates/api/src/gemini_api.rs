//! Gemini: requests to `generateContent` and their responses.
//!
//! `docs/formats/gemini-request.md` describes the members of a request, and what the service
//! refuses.

mod endpoint;
mod invariants;
mod make;
mod message;
mod read;
mod response;
mod stream;

use epitome_model::encode;

use crate::api;

pub use endpoint::ENDPOINT;
pub use make::{make, make_as, tool};

api! {
    name: "gemini-api",
    aliases: &["gemini"],
    body_name: "gemini-request",
    list: "contents",
    block: |text| format!(r#"{{"text":{}}}"#, encode(text)),
    thinking_is_bound: |_| false,
    assembler: stream::Chunks,
}
