//! Calls models that a provider runs: over HTTP, streamed or not, with retries, fallbacks and
//! prices.
//!
//! A [`Model`] takes a [`Request`] (messages and tools) and returns a [`Response`], or a
//! [`Failure`], which says what has to change before a request can succeed. [`Client`] is a model
//! that a provider runs. [`RetryingModel`] wraps models: it retries, falls back to the next one,
//! and records what was spent.
//!
//! A [`ModelName`] is a [`Provider`] and the provider's name for a model. The [`Catalogue`] has the
//! limits and prices of models, and [`Catalogue::choose`] selects one that suffices. A [`Key`] is
//! never printed.
//!
//! The caller makes a [`Client`] for a model, and the client calls the provider only for a request
//! of the caller. Without the feature `client` there is no [`Client`], and nothing that calls a
//! provider.
//!
//! ```
//! use epitome_llm::{Catalogue, ModelName};
//! use epitome_model::{MicroDollars, Tokens};
//! use epitome_passes::TokenUsage;
//!
//! let catalogue = Catalogue::built_in();
//! let name: ModelName = "anthropic/claude-haiku-4-5".parse().expect("a name");
//! assert!(catalogue.look_up(&name).is_some());
//! let used = TokenUsage { input: Tokens(1_000_000), ..TokenUsage::default() };
//! assert_eq!(catalogue.cost("claude-haiku-4-5", &used), Some(MicroDollars(1_000_000)));
//! ```
//!
//! # Absent
//!
//! - The JSON of requests and responses: `epitome-api`, one folder for each API.
//! - What is asked, and what the response is used for: the caller decides.
//! - The environment and files: the caller passes in keys and tables. `epitome::models` reads them.

mod catalogue;
mod choice;
#[cfg(feature = "client")]
mod client;
mod failure;
mod key;
mod name;
mod question;
mod retry;
mod stop;

use epitome_api::SummaryAs;
use epitome_model::Tokens;
use epitome_passes::{Ask, Reply, StopReason};

pub use catalogue::{Catalogue, CatalogueError, ListedModel, Price};
pub use choice::{Choice, ChoiceReason, ModelNeeds, NoModel};
#[cfg(feature = "client")]
pub use client::{Client, ClientSetup, prepare_tls};
pub use epitome_api::{Auth, Delta, Endpoint, HttpRequest, Outgoing, Response, Retry, Tool};
pub use failure::{Failure, FailureCause};
pub use key::Key;
pub use name::{ModelName, NameError, Provider};
pub use retry::{Attempt, CallTotals, Clock, RealClock, RetryPolicy, RetryingModel};
pub use stop::Stop;

/// A request to a model.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The messages.
    pub outgoing: Outgoing<'a>,
    /// Tools that the model may call.
    pub tools: &'a [Tool<'a>],
    /// The maximum number of tokens of the response, not counting reasoning.
    pub max_tokens: u64,
}

/// A function that receives each piece of a streamed response as it arrives, and each retry.
pub type Sink<'a> = &'a mut (dyn FnMut(Delta<'_>) + Send);

/// A model that answers requests.
pub trait Model: Send + Sync {
    /// The provider and the name of the model.
    fn name(&self) -> &ModelName;

    /// The maximum tokens of a request and its response together; `None` if it is unknown.
    fn window(&self) -> Option<Tokens>;

    /// Sends a request and waits for the whole response, or until `stop` is called. With a sink,
    /// the response is streamed, and the sink receives each piece as it arrives. A response that
    /// reached its output limit, is empty or is a refusal is still a response: its
    /// [`stop`](Response::stop) has the reason.
    ///
    /// # Errors
    ///
    /// A [`Failure`] if there is no complete response, or if the service read only a part of the
    /// request.
    fn send(
        &self,
        request: &Request<'_>,
        sink: Option<Sink<'_>>,
        stop: &Stop,
    ) -> Result<Response, Failure>;

    /// Sends `ask` without tools, and returns the text of the response.
    ///
    /// # Errors
    ///
    /// The same as of [`send`](Model::send).
    fn ask(&self, ask: &Ask, stop: &Stop) -> Result<Reply, Failure> {
        let transcript = question::transcript(ask);
        let source: Vec<u8> = Vec::new();
        let summary = SummaryAs::User;
        let outgoing = Outgoing { transcript: &transcript, source: &source, summary };
        let request = Request { outgoing, tools: &[], max_tokens: ask.max_tokens };
        let response = self.send(&request, None, stop)?;
        let text = response.text();
        let calls = response.calls().next().is_some();
        let stopped = if calls { StopReason::Call } else { response.stop };
        Ok(Reply { text, stopped, used: response.usage })
    }
}
