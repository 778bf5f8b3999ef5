//! OpenAI Chat Completions: requests to `/v1/chat/completions` and their responses. Many other
//! services have the same API.
//!
//! `docs/formats/openai-chat.md` describes the members of both, and what the service refuses.

mod endpoint;
mod invariants;
mod make;
mod message;
mod read;
mod response;
mod stream;

use crate::{api, text_block};

pub use endpoint::ENDPOINT;
pub use make::{make, make_as, tool};

api! {
    name: "openai-chat",
    aliases: &[],
    body_name: "openai-chat",
    list: "messages",
    block: text_block,
    thinking_is_bound: |_| false,
    assembler: stream::Chunks,
}
