//! OpenAI Responses: requests to `/v1/responses` and their responses.
//!
//! `docs/formats/openai-responses.md` describes the members of both, and what the service refuses.

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
    name: "openai-responses",
    aliases: &[],
    body_name: "openai-responses",
    list: "input",
    block: |text| format!(r#"{{"type":"input_text","text":{}}}"#, encode(text)),
    thinking_is_bound: |_| false,
    assembler: stream::Events,
}
