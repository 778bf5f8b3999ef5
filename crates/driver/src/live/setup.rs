//! How a context is used, and what is told of it.

use epitome_model::{Counter, Tokens};
use epitome_passes::Recipe;
use epitome_tokens::O200k;
use serde::Serialize;

/// How a context is used.
pub struct Setup {
    pub(super) recipe: Recipe,
    pub(super) window: Option<Tokens>,
    pub(super) overhead: Tokens,
    pub(super) counter: Box<dyn Counter + Send>,
    pub(super) id: String,
}

impl Setup {
    /// With a recipe, exact counts of o200k, and a window that is not known: then nothing that is
    /// a share of it is ever reached.
    pub fn new(recipe: Recipe) -> Setup {
        let counter = Box::new(O200k::new());
        Setup { recipe, window: None, overhead: Tokens(0), counter, id: "context".into() }
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
        self.counter = Box::new(counter);
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
pub struct Fill {
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
}
