//! How a context is used, and what is told of it.

use std::sync::Arc;

use epitome_formats::epitome::Origin;
use epitome_model::{Counter, Tokens};
use epitome_passes::{AskTotals, Recipe, Writer};
use epitome_tokens::O200k;
use serde::Serialize;

/// How a context is used.
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
    /// With a recipe, exact counts of o200k, and a window that is not known: then nothing that is
    /// a share of it is ever reached.
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

    /// With the window of the model.
    #[must_use]
    pub fn with_window(mut self, window: Tokens) -> Setup {
        self.window = Some(window);
        self
    }

    /// With what every request sends that is not in the log: a system prompt, tools.
    #[must_use]
    pub fn with_overhead(mut self, overhead: Tokens) -> Setup {
        self.overhead = overhead;
        self
    }

    /// With another way to count.
    #[must_use]
    pub fn with_counter(mut self, counter: impl Counter + Send + 'static) -> Setup {
        self.counter = Arc::new(counter);
        self
    }

    /// With a model that writes summaries: what it takes, and how it counts. Without one, a
    /// question is made for a model like that of the context.
    #[must_use]
    pub fn with_writer(mut self, writer: Writer) -> Setup {
        self.writer = Some(writer);
        self
    }

    /// With what every summary should look at.
    #[must_use]
    pub fn with_focus(mut self, focus: impl Into<String>) -> Setup {
        self.focus = Some(focus.into());
        self
    }

    /// With a text that stands in every summary as it is.
    #[must_use]
    pub fn with_protected(mut self, text: impl Into<String>) -> Setup {
        self.protected.push(text.into());
        self
    }

    /// With where the conversation is held, for a log that is new.
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Setup {
        self.origin = origin;
        self
    }

    /// With an id of the session.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Setup {
        self.id = id.into();
        self
    }
}

/// How full a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WindowUse {
    /// What the next request would send.
    pub tokens: Tokens,
    /// The window without what is kept for the reply.
    pub usable: Option<Tokens>,
    /// Of that, in per cent.
    pub percent: Option<u64>,
    /// Whether it rests on what the provider counted for the last response.
    pub billed: bool,
    /// How far our count was off when the provider last told its own, in thousandths of that.
    pub error: Option<i64>,
}

/// What became of a context so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What would be sent if nothing had ever been shortened.
    pub said: Tokens,
    /// What is sent, counted the same way.
    pub sent: Tokens,
    /// Entries that were said.
    pub entries: u64,
    /// Compactions that stand.
    pub compactions: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// What summaries cost, those that came to nothing too.
    pub summaries: AskTotals,
}
