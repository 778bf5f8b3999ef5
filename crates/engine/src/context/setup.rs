//! The settings of a context, and reports on it.

use std::sync::Arc;

use epitome_formats::epitome::Origin;
use epitome_model::{Counter, Tokens};
use epitome_passes::{AskTotals, Recipe, Writer};
use epitome_tokens::O200k;
use serde::Serialize;

/// The settings of a context.
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
    /// Settings with a recipe, exact counts of o200k, and an unknown window: thresholds that are a
    /// share of the window are then never reached.
    pub fn new(recipe: Recipe) -> Setup {
        Setup {
            recipe,
            window: None,
            overhead: Tokens(0),
            counter: Arc::new(O200k::new()),
            writer: None,
            focus: None,
            protected: Vec::new(),
            id: "context".into(),
            origin: Origin::default(),
        }
    }

    /// Sets the window of the model.
    #[must_use]
    pub fn with_window(mut self, window: Tokens) -> Setup {
        self.window = Some(window);
        self
    }

    /// Sets the tokens of what every request has besides the log: a system prompt, tools.
    #[must_use]
    pub fn with_overhead(mut self, overhead: Tokens) -> Setup {
        self.overhead = overhead;
        self
    }

    /// Sets another tokenizer.
    #[must_use]
    pub fn with_counter(mut self, counter: impl Counter + Send + 'static) -> Setup {
        self.counter = Arc::new(counter);
        self
    }

    /// Sets the model that writes summaries: its window and tokenizer. Without one, questions are
    /// made for a model like that of the context.
    #[must_use]
    pub fn with_writer(mut self, writer: Writer) -> Setup {
        self.writer = Some(writer);
        self
    }

    /// Sets what every summary pays attention to.
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

    /// Sets folder, model and recipe of the conversation, for a new log.
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Setup {
        self.origin = origin;
        self
    }

    /// Sets the id of the session.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Setup {
        self.id = id.into();
        self
    }
}

/// How full a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WindowUse {
    /// Tokens of the next request.
    pub tokens: Tokens,
    /// The window without the reserve for the reply.
    pub usable: Option<Tokens>,
    /// `tokens` in per cent of `usable`.
    pub percent: Option<u64>,
    /// Whether `tokens` is based on what the provider counted for the last response.
    pub billed: bool,
    /// The error of our count at the last bill, in thousandths of the provider's count.
    pub error: Option<i64>,
}

/// What compactions have saved in a context so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Tokens of all entries as they were added, before any compaction.
    pub said: Tokens,
    /// Tokens of what is sent, by the same count.
    pub sent: Tokens,
    /// Entries that were added.
    pub entries: u64,
    /// Compactions that were not undone.
    pub compactions: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// What summaries cost, including those that failed.
    pub summaries: AskTotals,
}
