//! The APIs of model services: one folder each, with all that is particular to it.
//!
//! - `read` and `message`: the body of a request, or one message of it, into a [`Transcript`];
//! - `make`: a transcript into the body of a request;
//! - `endpoint`: where it is sent, and the members that say how the model is to respond;
//! - `response` and `stream`: what comes back, whole or piece by piece, into an [`Entry`];
//! - `invariants`: the requests that the service refuses.
//!
//! The files next to the folders hold what the APIs share. A new API is a folder and an element of
//! [`APIS`].
//!
//! [`Entry`]: epitome_model::Entry

pub mod anthropic;
mod body;
mod breach;
mod conversation;
mod endpoint;
pub mod gemini_api;
pub mod message;
pub mod ollama;
pub mod openai_chat;
pub mod openai_responses;
mod request;
mod response;
mod skim;
mod stream;
mod tool;
mod tools;

pub use body::{Body, read};
pub use breach::{Breaches, check, is_name};
pub(crate) use conversation::UNDERSTOOD;
pub use conversation::{
    Answered, Arguments, Conversation, Left, Made, OPENING, Piece, Step, SummaryAs, Word, name,
};
pub use endpoint::{Auth, Endpoint, HttpRequest};
pub(crate) use request::tools;
pub use request::{Options, Outgoing};
pub use response::{BadResponse, Response};
pub use skim::skim;
pub use stream::{Delta, Framing, OnDelta, Stream};
pub use tool::{Tool, text_argument};
pub use tools::{call, call_at, picture};

use std::fmt;

use epitome_model::{Source, Transcript};

use crate::Format;
use crate::document::Value;
use message::MessageParser;
use response::Parsed;
use stream::Assembler;

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
    pub tool: fn(&Tool<'_>) -> String,
    /// Where the service itself is called.
    pub endpoint: Endpoint,
    /// The members of a body that hold the options, each with a comma behind it. The second
    /// argument is the rest of the body.
    pub(crate) options: fn(&Options<'_>, &str) -> String,
    /// Finds what a response says; nothing, if it is no response.
    pub(crate) parse_response: fn(&Value<'_>) -> Option<Parsed>,
    /// What puts a streamed response together.
    pub(crate) assembler: fn() -> Box<dyn Assembler>,
}

impl Api {
    /// Its name and then its aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Api").field(&self.name).finish()
    }
}

/// Every API that a session can be exported to.
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
