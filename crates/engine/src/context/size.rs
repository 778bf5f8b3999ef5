//! How large a context is, in our tokens and in those that a provider counted.

use std::collections::HashMap;

use epitome_model::{Block, Role, Tokens};
use epitome_passes::{ContextSize, Seen, SeenMark};

use super::question::Pending;
use super::{Context, Report, WindowUse};

/// What a provider counted, and what we had counted then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Anchor {
    billed: Tokens,
    counted: Tokens,
}

impl Context {
    /// What the provider counted for all that was said so far, the last response included.
    pub fn billed(&mut self, billed: Tokens) {
        let counted = self.counted();
        if billed > Tokens(0) && counted > Tokens(0) {
            self.anchor = Some(Anchor { billed, counted });
            self.factor = Some((billed.0, counted.0));
        }
    }

    /// The window, of which a part is kept for the reply.
    pub fn window(&self) -> Option<Tokens> {
        self.window
    }

    /// How full the window is.
    pub fn usage(&self) -> WindowUse {
        let tokens = self.tokens();
        let usable = self.machine.usable();
        let error = self.factor.map(|(billed, counted)| {
            (i64::try_from(counted).unwrap_or(i64::MAX) - i64::try_from(billed).unwrap_or(0))
                .saturating_mul(1_000)
                / i64::try_from(billed).unwrap_or(1).max(1)
        });
        let percent = usable.map(|usable| tokens.0 * 100 / usable.0.max(1));
        WindowUse { tokens, usable, percent, billed: self.anchor.is_some(), error }
    }

    /// What became of what was said.
    pub fn report(&self) -> Report {
        let transcript = self.transcript();
        let mut said: HashMap<&str, Tokens> = HashMap::new();
        for (item, entry) in transcript.entries() {
            let is_said = !entry.blocks.iter().any(|block| matches!(block, Block::Summary(_)));
            if let Some(id) = entry.id.as_deref().filter(|_| is_said) {
                // The first entry of an id is what was said; others are what it says since.
                said.entry(id).or_insert_with(|| self.counts.item(item));
            }
        }
        let mut summaries = self.spent;
        summaries += self.pending.as_ref().map(Pending::spent).unwrap_or_default();
        Report {
            said: said.values().copied().sum(),
            sent: self.counts.total().tokens,
            entries: said.len() as u64,
            compactions: self.log.log().compactions() as u64,
            log_bytes: self.log.bytes().len() as u64,
            summaries,
        }
    }

    pub(super) fn gauge(&self) -> ContextSize {
        let total = self.counts.total();
        let (bytes, results, turns) = (total.bytes, total.results, total.turns);
        let (messages, counted) = (total.messages, self.counted());
        let chars = total.chars;
        ContextSize { tokens: self.tokens(), bytes, chars, results, turns, messages, counted }
    }

    /// What the provider would count: what it counted last and what came since, or else our count
    /// scaled as its last one says.
    pub(super) fn tokens(&self) -> Tokens {
        let counted = self.counted();
        match (self.anchor, self.factor) {
            (Some(anchor), _) => anchor.billed + (counted - anchor.counted),
            (None, Some((billed, ours))) => scaled(counted, billed, ours),
            (None, None) => counted,
        }
    }

    /// As much of the context as may be left for it to come to so many of the provider's tokens.
    pub(super) fn in_counts(&self, target: Tokens) -> Tokens {
        let target = match self.factor {
            Some((billed, ours)) => scaled(target, ours, billed),
            None => target,
        };
        target - self.overhead - self.counts.total().frames
    }

    /// What we count, prompt and tools included.
    fn counted(&self) -> Tokens {
        self.overhead + self.counts.total().tokens
    }

    pub(super) fn count(&mut self, item: usize) {
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        self.counts.add(item, transcript, source, &*self.counter);
        if let Some(entry) = transcript.items[item].entry() {
            self.calls.add(item, entry, source);
        }
    }

    /// Counts what is sent anew: other items may say it now. What a provider counted is of another
    /// context.
    pub(super) fn recount(&mut self) {
        self.anchor = None;
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        self.counts.all(transcript, source, &*self.counter);
        self.calls.reopen(transcript);
        if self.recipe.stages.live.ingest.is_some() {
            let (mut seen, mut answered) = (Seen::default(), SeenMark::default());
            for (_, entry) in transcript.context() {
                self.see(&mut seen, entry);
                if entry.role == Role::Assistant {
                    answered = seen.mark();
                }
            }
            (self.seen, self.answered) = (seen, answered);
        }
    }
}

pub(super) fn scaled(tokens: Tokens, by: u64, per: u64) -> Tokens {
    let scaled = u128::from(tokens.0) * u128::from(by) / u128::from(per.max(1));
    Tokens(u64::try_from(scaled).unwrap_or(u64::MAX))
}
