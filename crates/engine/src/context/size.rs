//! The size of a context, as epitome and as the provider count it.

use std::collections::HashMap;

use epitome_model::{Block, Role, Tokens};
use epitome_passes::{ContextSize, SeenLines, SeenMark};

use super::question::Pending;
use super::recall::named_in_digest;
use super::{Context, SavingsReport, WindowUse};

/// Token counts of the provider, each with epitome's count of the same context.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bill {
    /// The last count for the context, if only entries were added to the context since then.
    of_context: Option<Counted>,
    /// The last count for any state of the context.
    last: Option<Counted>,
}

/// The tokens of one context in two counts.
#[derive(Clone, Copy, Debug)]
struct Counted {
    by_provider: Tokens,
    by_us: Tokens,
}

impl Bill {
    /// The number of tokens that the provider is expected to count for a context in which epitome
    /// counts `counted`. If entries were only added since the provider's last count: that count
    /// plus epitome's count of these entries. Otherwise: `counted`, scaled by the ratio of the
    /// provider's last count to epitome's count of the same context; unscaled if the provider has
    /// counted nothing.
    fn expect(&self, counted: Tokens) -> Tokens {
        match (self.of_context, self.last) {
            (Some(then), _) => then.by_provider + (counted - then.by_us),
            (None, Some(last)) => scaled(counted, last.by_provider, last.by_us),
            (None, None) => counted,
        }
    }

    /// The error of epitome's count, in thousandths of the provider's; `None` if the provider has
    /// counted nothing.
    fn error(&self) -> Option<i64> {
        let Counted { by_provider, by_us } = self.last?;
        let by_us = i64::try_from(by_us.0).unwrap_or(i64::MAX);
        let by_provider = i64::try_from(by_provider.0).unwrap_or(i64::MAX);
        Some(by_us.saturating_sub(by_provider).saturating_mul(1_000) / by_provider.max(1))
    }
}

impl Context {
    /// Sets the number of tokens that the provider counted for the context, including the last
    /// response. Zero is ignored, and so is every number while epitome itself counts no tokens.
    ///
    /// ```
    /// # use epitome_model::Tokens;
    /// # use epitome_engine::{Context, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// context.user("Hello.")?;
    /// context.report_billed_tokens(Tokens(15_000));
    /// assert_eq!(context.usage().tokens, Tokens(15_000));
    /// assert!(context.usage().billed);
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn report_billed_tokens(&mut self, billed: Tokens) {
        let counted = self.counted();
        if billed > Tokens(0) && counted > Tokens(0) {
            let bill = Some(Counted { by_provider: billed, by_us: counted });
            self.bill = Bill { of_context: bill, last: bill };
        }
    }

    /// The whole window in tokens, including the part that is reserved for the response.
    pub fn window(&self) -> Option<Tokens> {
        self.setup.window
    }

    /// How full the window is.
    ///
    /// ```
    /// # use epitome_model::Tokens;
    /// # use epitome_engine::{Context, Setup};
    /// # use epitome_passes::built_in;
    /// let setup = Setup::new(built_in("ion").expect("a built-in recipe"));
    /// let context = Context::in_memory(setup.with_window(Tokens(116_000)));
    /// let usage = context.usage();
    /// assert_eq!((usage.usable, usage.percent), (Some(Tokens(100_000)), Some(0)));
    /// assert!(!usage.billed);
    /// ```
    pub fn usage(&self) -> WindowUse {
        let tokens = self.tokens();
        let usable = self.machine.usable();
        let percent = usable.map(|usable| tokens.0 * 100 / usable.0.max(1));
        let billed = self.bill.of_context.is_some();
        let error = self.bill.error();
        WindowUse { tokens, usable, percent, billed, error }
    }

    /// What compactions have saved in this context so far.
    ///
    /// ```
    /// # use epitome_model::Tokens;
    /// # use epitome_engine::{Context, MessagePart, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("clear-tool-uses").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// # context.user("Read them.")?;
    /// # for n in 0..5 {
    /// #     context.assistant(&[MessagePart::call(n.to_string(), "Read", r#"{"path":"a.rs"}"#)])?;
    /// #     context.tool(&[MessagePart::output(n.to_string(), "fn main() {}\n".repeat(90))])?;
    /// # }
    /// context.compact_to(None, Some(Tokens(0)))?;
    /// let report = context.report();
    /// assert_eq!((report.entries, report.compactions), (11, 1));
    /// assert!(report.sent < report.originals);
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn report(&self) -> SavingsReport {
        let transcript = self.transcript();
        let mut original_tokens: HashMap<&str, Tokens> = HashMap::new();
        for (item, entry) in transcript.entries() {
            let is_said = !entry.blocks.iter().any(|block| matches!(block, Block::Summary(_)));
            if let Some(id) = entry.id.as_deref().filter(|_| is_said) {
                // The first item with an id is the original entry; later items with that id are
                // edited versions.
                original_tokens.entry(id).or_insert_with(|| self.counts.item(item));
            }
        }
        let mut summaries = self.ask.spent;
        summaries += self.ask.pending.as_ref().map(Pending::spent).unwrap_or_default();
        SavingsReport {
            originals: original_tokens.values().copied().sum(),
            sent: self.counts.total().tokens,
            entries: original_tokens.len() as u64,
            compactions: self.log.parsed().compactions() as u64,
            log_bytes: self.log.bytes().len() as u64,
            summaries,
        }
    }

    /// The size of the context in every unit that a trigger or a target may have.
    pub(super) fn gauge(&self) -> ContextSize {
        let total = self.counts.total();
        let bytes = total.bytes;
        let results = total.results;
        let turns = total.turns;
        let messages = total.messages;
        let counted = self.counted();
        let chars = total.chars;
        ContextSize { tokens: self.tokens(), bytes, chars, results, turns, messages, counted }
    }

    /// The number of tokens that the provider is expected to count for the context.
    pub(super) fn tokens(&self) -> Tokens {
        self.bill.expect(self.counted())
    }

    /// Converts a target from the provider's tokens to tokens of text as epitome counts them:
    /// without overhead, and without what the API format adds around blocks.
    pub(super) fn in_counts(&self, target: Tokens) -> Tokens {
        let target = match self.bill.last {
            Some(last) => scaled(target, last.by_us, last.by_provider),
            None => target,
        };
        target - self.setup.overhead - self.counts.total().frames
    }

    /// The tokens as epitome counts them, including prompt and tools.
    fn counted(&self) -> Tokens {
        self.setup.overhead + self.counts.total().tokens
    }

    /// Counts a new item at the end of the context, and adds its calls.
    pub(super) fn count(&mut self, item: usize) {
        let transcript = self.log.parsed().transcript();
        let source = self.log.bytes();
        self.counts.add(item, transcript, source, &*self.setup.counter);
        if let Some(entry) = transcript.items[item].entry() {
            self.known.calls.add(item, entry, source);
            if self.known.digest.is_none() {
                self.known.digest = named_in_digest(entry, source);
            }
        }
    }

    /// Counts the context again after its items have changed, and determines which calls have no
    /// result, the lines of its results, and the calls that its digest names. The provider's last
    /// count is of an earlier state: from here on only its ratio to epitome's count is used.
    pub(super) fn recount(&mut self) {
        self.bill.of_context = None;
        let transcript = self.log.parsed().transcript();
        let source = self.log.bytes();
        self.counts.recount(transcript, source, &*self.setup.counter);
        self.known.calls.reopen(transcript);
        let mut entries = transcript.context();
        self.known.digest = entries.find_map(|(_, entry)| named_in_digest(entry, source));
        if self.setup.recipe.stages.live.ingest.is_some() {
            let mut seen = SeenLines::default();
            let mut answered = SeenMark::default();
            for (_, entry) in transcript.context() {
                self.see(&mut seen, entry);
                if entry.role == Role::Assistant {
                    answered = seen.mark();
                }
            }
            self.known.seen = seen;
            self.known.answered = answered;
        }
    }
}

/// `tokens` times `by`, divided by `per`.
pub(super) fn scaled(tokens: Tokens, by: Tokens, per: Tokens) -> Tokens {
    let scaled = u128::from(tokens.0) * u128::from(by.0) / u128::from(per.0.max(1));
    Tokens(u64::try_from(scaled).unwrap_or(u64::MAX))
}
