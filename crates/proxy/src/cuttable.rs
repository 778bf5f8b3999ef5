//! A request that may be cut: sent with shorter or fewer old messages. This module decides whether
//! a cut is worth its price.
//!
//! The modules `priced_cut` and `digest` plan the cut: their functions are methods of [`Cuttable`].

use std::sync::Arc;

use epitome::wire::{Decision, RemovedText};
use epitome_api::Api;
use epitome_formats::{Format, find_format};
use epitome_llm::Price;
use epitome_model::Tokens;
use epitome_passes::{CachePrices, PricedCut, is_worth};

use crate::body::Messages;

/// A request with a decision about each of its messages.
pub(crate) struct Cuttable<'r> {
    pub(crate) api: &'static Api,
    pub(crate) body: &'r [u8],
    pub(crate) messages: &'r Messages,
    pub(crate) decisions: &'r [Arc<Decision>],
    /// Whether the provider's cache still holds the beginning of the request.
    pub(crate) is_warm: bool,
    /// Whether the request is cut whatever that costs, because the model's window is nearly full.
    pub(crate) must_cut: bool,
    pub(crate) price: &'r Price,
}

/// A planned cut: what is sent from now on in place of each message of a request. Unlike a cut of
/// `epitome_model`, it need not remove messages.
pub(crate) struct RequestCut {
    /// What is sent in place of each message.
    pub(crate) decisions: Vec<Decision>,
    /// The texts that the cut removes from the request.
    pub(crate) removed: Vec<RemovedText>,
    /// Tokens that the provider has to write to its cache again.
    pub(crate) rewritten: Tokens,
}

/// The result of planning a cut.
pub(crate) enum PlannedCut {
    /// The cut is worth its price, or is made whatever it costs.
    Cut(RequestCut),
    /// The cut saves too little for its price.
    IsNotWorthIt,
    /// The recipe makes no such cut, or this request cannot be cut in this way.
    IsNotPossible,
}

impl Cuttable<'_> {
    /// Whether a cut is worth its price, or has to be made whatever it costs. `before` is the
    /// number of tokens of this request without the cut, `saved` the number that the cut leaves out
    /// of this request and of each later one, and `rewritten` the number that the provider writes
    /// to its cache again.
    pub(crate) fn is_worth(&self, before: Tokens, saved: Tokens, rewritten: Tokens) -> bool {
        if self.must_cut {
            return true;
        }
        // The number of requests until the conversation has grown again by as much as the cut
        // saves.
        let requests = saved.0 / growth(self.messages, self.decisions, before).0.max(1);
        let priced = PricedCut { saved, rewritten, requests, is_warm: self.is_warm };
        let Price { input, cached, written, output: _ } = *self.price;
        is_worth(priced, CachePrices { read: cached, written: written.max(input) })
    }

    /// Whether the reasoning of this model is valid only while everything before it is unchanged.
    pub(crate) fn is_bound(&self) -> bool {
        let format: Option<&Format> = find_format(self.api.format.name);
        let model = self.messages.model.as_deref().unwrap_or_default();
        format.is_some_and(|format| (format.thinking_is_bound)(model))
    }
}

/// An estimate of the tokens by which each later request will be longer than the one before: the
/// average per response so far. `tokens` is the number of tokens of the last request; removed
/// tokens count as if they were sent.
pub(crate) fn growth(messages: &Messages, decisions: &[Arc<Decision>], tokens: Tokens) -> Tokens {
    let removed: u64 = decisions.iter().map(|decision| decision.saved).sum();
    Tokens((tokens.0 + removed) / messages.responses().max(1))
}
