//! Anthropic Messages: requests to `/v1/messages` and their responses.
//!
//! `docs/formats/anthropic.md` describes its members and what the service refuses.

mod endpoint;
mod invariants;
mod make;
mod message;
mod messages;
mod read;
mod response;
mod stream;

use epitome_json::write::{self, Gone, Shapes};

use super::Api;
use crate::{BodyFormat, text_block};

pub use endpoint::ENDPOINT;
pub use make::{make, make_as, tool};
pub use message::parse_message;
pub use messages::{messages, messages_of};

/// Anthropic's Messages.
pub const API: Api = Api {
    name: "anthropic",
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
    assembler: || Box::new(stream::Events::default()),
};

/// Bodies of requests to Anthropic's Messages.
pub const FORMAT: BodyFormat = BodyFormat {
    name: "anthropic",
    sniff: read::sniff,
    read: read::read,
    write: SPLICES,
    invariants: &invariants::AnthropicInvariants,
    thinking_is_bound,
};

/// Whether a model's reasoning is valid only with everything before it unchanged: Anthropic's
/// documentation of preserved thinking names these models.
pub fn thinking_is_bound(model: &str) -> bool {
    const BOUND: [&str; 3] = ["claude-fable-5", "claude-sonnet-5-5", "claude-haiku-5-5"];
    BOUND.iter().any(|name| model.starts_with(name))
}

const SPLICES: write::Write =
    |transcript, source, edits| write::splices(transcript, source, edits, &SHAPES);

const SHAPES: Shapes = Shapes { output: write::literal, block: text_block, thinking: Gone::Whole };
