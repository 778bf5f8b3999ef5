//! The APIs of model services: one folder each, with all that is particular to it.
//!
//! - `read` and `message`: the body of a request, or one message of it, into a [`Transcript`];
//! - `make`: a transcript into the body of a request;
//! - `invariants`: the requests that the service refuses.
//!
//! The files next to the folders hold what the APIs share. A new API is a folder and an element of
//! [`APIS`].

pub mod anthropic;
mod body;
mod breach;
mod conversation;
pub mod gemini_api;
pub mod message;
mod offer;
pub mod openai_chat;
pub mod openai_responses;
mod skim;
mod tools;

pub use body::{Body, read};
pub use breach::{Breaches, check, is_name};
pub(crate) use conversation::UNDERSTOOD;
pub use conversation::{
    Answered, Arguments, Conversation, Left, Made, OPENING, Piece, Step, SummaryAs, Word, name,
};
pub use offer::Offer;
pub use skim::skim;
pub use tools::{call, call_at, picture};

use epitome_model::{Source, Transcript};

use crate::Format;
use message::MessageParser;

/// The API of a model service: how requests to it are read, checked and made.
pub struct Api {
    /// Its name, as on the command line: `openai-chat`.
    pub name: &'static str,
    /// Older names that are accepted in its place.
    pub aliases: &'static [&'static str],
    /// The member of a request's body that holds the messages.
    pub list: &'static str,
    /// How bodies of requests are read and checked.
    pub format: &'static Format,
    /// Parses one element of that list, as a whole or not at all.
    pub parse_message: MessageParser,
    /// The body of a request that holds the context of a transcript.
    pub make: fn(&Transcript, &dyn Source) -> Made,
    /// The same, with the summary in the role that is asked for.
    pub make_as: fn(&Transcript, &dyn Source, SummaryAs) -> Made,
    /// A tool as an element of the `tools` of a request.
    pub offer: fn(&Offer<'_>) -> String,
}

impl Api {
    /// Its name and then its aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

/// Every API.
pub static APIS: &[Api] =
    &[anthropic::API, openai_chat::API, openai_responses::API, gemini_api::API];

/// The API with this name or alias.
///
/// ```
/// let api = epitome_formats::api::named("gemini").expect("an alias of gemini-api");
/// assert_eq!(api.name, "gemini-api");
/// ```
pub fn named(name: &str) -> Option<&'static Api> {
    APIS.iter().find(|api| api.names().any(|it| it == name))
}
