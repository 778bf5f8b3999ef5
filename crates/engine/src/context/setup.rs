//! The settings of a context, and reports about it.

use std::sync::Arc;

use epitome_formats::epitome::Origin;
use epitome_model::{Counter, Tokens};
use epitome_passes::{AskTotals, Recipe, Writer};
use epitome_tokens::O200k;
use serde::Serialize;

/// The settings of a context, such as the recipe, and the window and tokenizer of the model.
///
/// ```
/// use epitome_engine::{Context, Setup};
/// use epitome_model::Tokens;
/// use epitome_passes::built_in;
/// use epitome_tokens::Estimate;
///
/// let recipe = built_in("ion").expect("a built-in recipe");
/// let setup = Setup::new(recipe)
///     .with_window(Tokens(200_000))
///     .with_overhead(Tokens(12_000))
///     .with_counter(Estimate::new())
///     .with_focus("the parser")
///     .with_protected("The deadline is Friday.")
///     .with_id("session-1");
/// let context = Context::in_memory(setup);
/// // The recipe reserves 16,000 tokens of the window for the response.
/// assert_eq!(context.usage().usable, Some(Tokens(184_000)));
/// assert_eq!(context.usage().tokens, Tokens(12_000));
/// ```
#[derive(Clone)]
pub struct Setup {
    pub(super) recipe: Recipe,
    pub(super) window: Option<Tokens>,
    pub(super) overhead: Tokens,
    pub(super) counter: Arc<dyn Counter + Send>,
    pub(super) writer: Option<Writer>,
    pub(super) focus: Option<String>,
    pub(super) protected: Vec<String>,
    pub(super) id: String,
    pub(super) origin: Origin,
}

impl Setup {
    /// Settings with this recipe. Tokens are counted with the tokenizer o200k. The window is
    /// unknown: thresholds that are a share of the window are never reached until
    /// [`with_window`](Setup::with_window) sets it.
    pub fn new(recipe: Recipe) -> Setup {
        Setup::with_shared_counter(recipe, Arc::new(O200k::new()))
    }

    /// Like [`new`](Setup::new), with a tokenizer that the caller shares. A program that calls only
    /// this function, with another tokenizer, does not contain the vocabulary of o200k.
    pub fn with_shared_counter(recipe: Recipe, counter: Arc<dyn Counter + Send>) -> Setup {
        Setup {
            recipe,
            window: None,
            overhead: Tokens(0),
            counter,
            writer: None,
            focus: None,
            protected: Vec::new(),
            id: "context".into(),
            origin: Origin::default(),
        }
    }

    /// Sets the window of the model, in tokens.
    #[must_use]
    pub fn with_window(mut self, window: Tokens) -> Setup {
        self.window = Some(window);
        self
    }

    /// Sets the tokens of everything in a request that is not in the log, such as tools.
    #[must_use]
    pub fn with_overhead(mut self, overhead: Tokens) -> Setup {
        self.overhead = overhead;
        self
    }

    /// Sets the tokenizer.
    #[must_use]
    pub fn with_counter(mut self, counter: impl Counter + Send + 'static) -> Setup {
        self.counter = Arc::new(counter);
        self
    }

    /// Sets the window and the tokenizer of the model that writes summaries. If they are not set,
    /// the requests for summaries are made for a model with the window and tokenizer of the
    /// context, and with a default window if that is unknown.
    #[must_use]
    pub fn with_writer(mut self, writer: Writer) -> Setup {
        self.writer = Some(writer);
        self
    }

    /// Sets what summaries and digests pay attention to, unless the request for a compaction names
    /// something else.
    #[must_use]
    pub fn with_focus(mut self, focus: impl Into<String>) -> Setup {
        self.focus = Some(focus.into());
        self
    }

    /// Adds a text that every summary contains word for word.
    #[must_use]
    pub fn with_protected(mut self, text: impl Into<String>) -> Setup {
        self.protected.push(text.into());
        self
    }

    /// Sets the working directory, model and recipe of the conversation. They are written to a new
    /// log; a resumed log has its own.
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Setup {
        self.origin = origin;
        self
    }

    /// Sets the id of the session, for a new log.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Setup {
        self.id = id.into();
        self
    }
}

/// How full a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WindowUse {
    /// Tokens of the next request, prompt and tools included.
    pub tokens: Tokens,
    /// The window without the part that is reserved for the response; `None` if the window is
    /// unknown.
    pub usable: Option<Tokens>,
    /// `tokens` in per cent of `usable`; may be over 100. `None` if the window is unknown.
    pub percent: Option<u64>,
    /// Whether `tokens` is the provider's last count of this context, plus epitome's count of what
    /// was added since then. False if nothing was counted, or if the context was changed otherwise.
    pub billed: bool,
    /// The error of epitome's count of the context that the provider counted last, in thousandths
    /// of the provider's count; negative if epitome counted fewer tokens. `None` if the provider
    /// has counted nothing yet.
    pub error: Option<i64>,
}

/// What compactions have saved in a context so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SavingsReport {
    /// Tokens of all entries as they were added, before any compaction.
    #[serde(rename = "said")]
    pub originals: Tokens,
    /// Tokens of the entries that are sent, counted in the same way as `originals`.
    pub sent: Tokens,
    /// Number of entries that were added.
    pub entries: u64,
    /// Number of compactions that are in effect. Each step counts as one: passes with a summary are
    /// two.
    pub compactions: u64,
    /// Size of the log in bytes.
    pub log_bytes: u64,
    /// The number of questions that were asked for summaries, and their billed tokens; failed ones
    /// are included.
    pub summaries: AskTotals,
}
