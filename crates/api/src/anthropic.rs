//! Anthropic Messages: requests to `/v1/messages` and their responses.
//!
//! `docs/formats/anthropic.md` describes the members of both, and what the service refuses.

mod endpoint;
mod invariants;
mod make;
mod message;
mod messages;
mod read;
mod response;
mod stream;

use crate::{api, text_block};

pub use endpoint::ENDPOINT;
pub use make::{make, make_as, tool};
pub use messages::{messages, messages_of};

api! {
    name: "anthropic",
    aliases: &[],
    body_name: "anthropic",
    list: "messages",
    block: text_block,
    thinking_is_bound: thinking_is_bound,
    assembler: stream::Events,
}

/// Whether the reasoning of `model` is valid only if everything before it is unchanged: Anthropic's
/// documentation of preserved thinking lists these models.
pub fn thinking_is_bound(model: &str) -> bool {
    const BOUND: [&str; 3] = ["claude-fable-5", "claude-sonnet-5-5", "claude-haiku-5-5"];
    BOUND.iter().any(|name| model.starts_with(name))
}
