//! The APIs of model services: one folder for each, with everything that is specific to it.
//!
//! An [`Api`] describes one API and holds its functions. Its [`BodyFormat`] recognises the body of
//! a request and reads it into a [`Transcript`]; `make` writes a transcript as the body of a
//! request; [`Api::response`] reads the body of a response into an [`Entry`], and a [`Stream`]
//! joins a streamed response to such a body. [`Api::message`] reads a single message, and refuses a
//! message that the API does not define.
//!
//! A [`Conversation`] is what all bodies are made from: it arranges a transcript as every API
//! requires, and counts what an API cannot express ([`LeftBehind`]). [`Endpoint`], [`HttpRequest`]
//! and [`Auth`] say where a request is sent and how it is authenticated; sending is up to the
//! caller.
//!
//! In the folder of an API, `read` and `message` read requests, `make` writes them, `endpoint` has
//! the path of a request and the members that say how to respond, `response` and `stream` read
//! responses, and `invariants` finds requests that the service would refuse. A new API is a folder
//! and an element of [`APIS`].
//!
//! ```
//! let body = br#"{"model":"gpt-5","messages":[{"role":"user","content":"Hi"}]}"#.to_vec();
//! let api = epitome_api::find_api("openai-chat").expect("an API");
//! let transcript = (api.format.read)(&body, &mut ());
//! assert_eq!(transcript.entries().count(), 1);
//! let anthropic = epitome_api::find_api("anthropic").expect("an API");
//! let made = (anthropic.make)(&transcript, &body);
//! let expect = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]}"#;
//! assert_eq!(made.body, expect);
//! ```
//!
//! # Absent
//!
//! - HTTP: `epitome-llm` sends bodies and receives bytes.
//! - Keys and tool names of agents: `epitome-formats`.
//! - Prices and limits of models: `epitome-llm`.
//!
//! [`Entry`]: epitome_model::Entry
//! [`Transcript`]: epitome_model::Transcript

// Pure crates do no IO: `clippy.toml` names what they must not use.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod anthropic;
pub mod arguments;
mod body;
mod conversation;
mod endpoint;
mod format;
pub mod gemini_api;
pub mod message;
pub mod ollama;
pub mod openai_chat;
pub mod openai_responses;
mod path;
mod request;
mod response;
mod skim;
mod stream;
mod tool;
mod tools;
mod violation;

pub use body::{Body, content, parts, read};
pub(crate) use conversation::UNDERSTOOD;
pub use conversation::{
    AnsweredCall, Arguments, Conversation, Exchange, InputBlock, LeftBehind, OPENING, RequestBody,
    SummaryAs, TextOrImage, name,
};
pub use endpoint::{Auth, Endpoint, HttpRequest};
pub use format::{BodyFormat, text_block};
pub use message::{Message, NotUnderstood};
pub use path::Purpose;
pub(crate) use request::tools;
pub use request::{Options, Outgoing};
pub use response::{BadResponse, Response};
pub use skim::skim;
pub use stream::{Delta, Framing, OnDelta, Retry, Stream};
pub use tool::{Tool, text_argument};
pub use tools::{call, picture};
pub use violation::{BodyInvariants, Violations, is_name};

use std::fmt;

use epitome_json::Value;
use epitome_model::{Source, Transcript};

use message::{CheckResult, Replacements};
use response::Parsed;
use stream::Assembler;

/// The API of a model service: how requests to it are read, checked and made.
pub struct Api {
    /// The name of the API, as on the command line: `openai-chat`.
    pub name: &'static str,
    /// Older names that are accepted instead of `name`.
    pub aliases: &'static [&'static str],
    /// The member of a request body that holds the messages.
    pub list: &'static str,
    /// Reads, edits and checks request bodies.
    pub format: &'static BodyFormat,
    /// Makes the body of a request with the context of a transcript.
    pub make: fn(&Transcript, &dyn Source) -> RequestBody,
    /// Like `make`, but sends a summary as the [`SummaryAs`] says.
    pub make_as: fn(&Transcript, &dyn Source, SummaryAs) -> RequestBody,
    /// Makes an element of the `tools` of a request.
    pub tool: fn(&Tool<'_>) -> String,
    /// The service's own endpoint.
    pub endpoint: Endpoint,
    /// Checks one message of a body, and adds the replacements that reading it needs. Fails if a
    /// part of the message is unknown or not valid.
    pub(crate) check_message: fn(&Value<'_>, &mut Replacements) -> CheckResult,
    /// Reads the messages of a body.
    pub(crate) read_messages: fn(&mut Body<'_>, &[Value<'_>]),
    /// Returns the members of a body that the options need, each followed by a comma. The second
    /// argument is the rest of the body.
    pub(crate) options: fn(&Options<'_>, &str) -> String,
    /// Parses a response; `None` if the JSON is not a response of this API.
    pub(crate) parse_response: fn(&Value<'_>) -> Option<Parsed>,
    /// Makes the assembler of a streamed response.
    pub(crate) assembler: fn() -> Box<dyn Assembler>,
}

impl Api {
    /// The name of the API, then its aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Api").field(&self.name).finish()
    }
}

/// Declares the constants of an API from the modules of its folder.
macro_rules! api {
    (
        name: $name:literal,
        aliases: $aliases:expr,
        body_name: $body_name:literal,
        list: $list:literal,
        block: $block:expr,
        thinking_is_bound: $thinking_is_bound:expr,
        assembler: $assembler:ty,
    ) => {
        /// This API, with its name and its functions.
        pub const API: $crate::Api = $crate::Api {
            name: $name,
            aliases: $aliases,
            list: $list,
            format: &FORMAT,
            check_message: message::check_message,
            read_messages: read::messages,
            make,
            make_as,
            tool,
            endpoint: ENDPOINT,
            options: endpoint::options,
            parse_response: response::parse,
            assembler: || Box::new(<$assembler>::default()),
        };

        /// Request bodies of the API, as a format.
        pub const FORMAT: $crate::BodyFormat = $crate::BodyFormat {
            name: $body_name,
            sniff: read::sniff,
            read: |source, faults| $crate::read(source, faults, read::body),
            write: |transcript, source, edits| {
                epitome_json::write::splices(transcript, source, edits, &SHAPES)
            },
            invariants: &$crate::BodyInvariants(invariants::invariants),
            thinking_is_bound: $thinking_is_bound,
        };

        const SHAPES: epitome_json::write::Shapes = epitome_json::write::Shapes {
            output: epitome_json::write::literal,
            block: $block,
            thinking: epitome_json::write::BlockRemainder::Nothing,
        };
    };
}

use api;

/// All APIs that a session can be exported to.
pub static APIS: &[Api] =
    &[anthropic::API, openai_chat::API, openai_responses::API, gemini_api::API];

/// The API with this name or alias; `None` if there is none.
///
/// ```
/// let api = epitome_api::find_api("gemini").expect("an alias of gemini-api");
/// assert_eq!(api.name, "gemini-api");
/// ```
pub fn find_api(name: &str) -> Option<&'static Api> {
    APIS.iter().find(|api| api.names().any(|it| it == name))
}
