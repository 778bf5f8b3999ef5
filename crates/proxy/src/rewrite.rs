//! The body of a request as it is sent: what is known is repeated, what is new is decided once.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use epitome::wire::ledger::Group;
use epitome::wire::{Chain, CutLine, Decision, MemoLine, RemovedText};
use epitome_api::Api;
use epitome_error::{Result, sentence};
use epitome_llm::Catalogue;
use epitome_model::{Counter, Tokens};
use epitome_passes::Recipe;

use crate::body::{BYTES_PER_TOKEN, Messages};
use crate::counter::CachingCounter;
use crate::decide::New;
use crate::effect::{Effect, NewCut};
use crate::explain::{Explained, Explanation};
use crate::holdout::Holdout;
use crate::memo::{Memo, Memos, Seen, locked};
use crate::price::{TIME_TO_LIVE, USUAL};
use crate::priced_cut::{Cut, Cuttable};
use crate::splice::{spliced, splices};
use crate::turn::begins_turn;

/// Rewrites the bodies of requests.
pub(crate) struct Rewriter {
    memos: Memos,
    recipe: Recipe,
    counter: CachingCounter,
    prices: Catalogue,
    holdout: Holdout,
    /// Whether changed requests are explained.
    explains: bool,
}

/// A body as it is sent.
#[derive(Default)]
pub(crate) struct Rewritten {
    /// The body; `None` if it is sent as it came.
    pub(crate) body: Option<Bytes>,
    pub(crate) effect: Effect,
    /// The memo of the body's conversation.
    pub(crate) conversation: Option<Arc<Mutex<Memo>>>,
    /// What was done to its blocks, if it was changed.
    pub(crate) explanation: Option<Explanation>,
}

impl Rewriter {
    /// Without a folder, decisions are only kept in memory.
    pub(crate) fn new(
        folder: Option<PathBuf>,
        recipe: Recipe,
        counter: &'static dyn Counter,
        prices: Catalogue,
    ) -> Rewriter {
        let memos = Memos::new(folder);
        let counter = CachingCounter::new(counter);
        let holdout = Holdout::default();
        Rewriter { memos, recipe, counter, prices, holdout, explains: false }
    }

    /// Holds out a share of the conversations.
    pub(crate) fn with_holdout(self, holdout: Holdout) -> Rewriter {
        Rewriter { holdout, ..self }
    }

    /// Explains changed requests, if `explains`.
    pub(crate) fn with_explanations(self, explains: bool) -> Rewriter {
        Rewriter { explains, ..self }
    }

    /// Rewrites the body of a request to an API; `now` is when it is sent.
    ///
    /// # Errors
    ///
    /// If anything is not as expected: the caller sends the original.
    pub(crate) fn rewrite(
        &self,
        api: &'static Api,
        body: &Bytes,
        now: Instant,
    ) -> Result<Rewritten> {
        let Some(messages) = Messages::find(body, api.list) else {
            return Ok(Rewritten::default());
        };
        let chains = messages.chains(body, api.name);
        let root = messages.root(&chains);
        let conversation = self.memos.of_conversation(root)?;
        let mut memo = locked(&conversation);
        memo.catch_up()?;
        let mut decisions = memo.look_up(&chains);
        let known = decisions.len();
        let mut effect = Effect {
            model: messages.model.clone(),
            session: Some(root),
            begins_turn: known < chains.len() && begins_turn(api, body, &messages),
            ..Effect::default()
        };
        if self.holdout.has(root) && !memo.is_changed() {
            memo.leave(&chains[known..]);
            effect.group = Group::Holdout;
            return Ok(Rewritten { effect, ..Rewritten::default() });
        }
        let request = Request { api, body, messages: &messages, chains: &chains };
        if known < messages.all.len() {
            match self.decide(&request, &mut memo, &mut decisions) {
                Ok(shortened) => effect.shortened = shortened,
                Err(err) => {
                    // What is known stays what it is, or the cache of the provider is lost.
                    memo.leave(&chains[known..]);
                    decisions = memo.look_up(&chains);
                    effect.failure = Some(sentence(&err));
                }
            }
        }
        let saved = |of: &[Arc<Decision>]| Tokens(of.iter().map(|it| it.saved).sum());
        effect.saved_now = saved(&decisions[known..]);
        if known < messages.all.len() {
            match self.cut(&request, &mut memo, &mut decisions, now) {
                Ok(cut) => effect.cut = cut,
                Err(err) => effect.failure = Some(sentence(&err)),
            }
        }
        effect.saved_before = saved(&decisions) - effect.saved_now;
        effect.cuts = memo.cuts(&chains);
        memo.last = Some(now);
        drop(memo);
        let splices = splices(&messages, &decisions)?;
        let conversation = Some(conversation);
        if splices.is_empty() {
            return Ok(Rewritten { effect, conversation, ..Rewritten::default() });
        }
        effect.treatment = effect.treatment_of_changed();
        let explained = Explained { api, body, messages: &messages, splices: &splices, known };
        let explain = || explained.explain(&effect, &self.recipe, &self.counter);
        let explanation = self.explains.then(explain);
        let body = Some(spliced(body, &splices).into());
        Ok(Rewritten { body, effect, conversation, explanation })
    }

    /// Decides about the messages that are new, and keeps that. Returns the number of results that
    /// are shortened.
    fn decide(
        &self,
        request: &Request<'_>,
        memo: &mut Memo,
        decisions: &mut Vec<Arc<Decision>>,
    ) -> Result<u64> {
        let Request { api, body, messages, chains } = *request;
        let known = decisions.len();
        let new = New { api, body, messages, known: decisions };
        // It is taken out: after an error it is made again.
        let mut seen = std::mem::take(&mut memo.seen);
        let before = known.checked_sub(1).map(|last| chains[last]);
        if seen.last != before {
            seen = Seen { last: before, lines: new.lines_before() };
        }
        let decided = new.decide(memo, &mut seen.lines, &self.recipe, &self.counter)?;
        seen.last = chains.last().copied();
        memo.seen = seen;
        let line = MemoLine {
            messages: chains[known..].iter().copied().zip(decided.decisions.clone()).collect(),
            results: decided.results,
            removed: decided.removed,
            ..MemoLine::default()
        };
        memo.keep(line)?;
        decisions.extend(decided.decisions.into_iter().map(Arc::new));
        Ok(decided.shortened)
    }

    /// Whether a cut is tried: the conversation is so long that the recipe compacts it, or that a
    /// compaction to the recipe's target would be worth its price.
    fn is_due(&self, request: &Request<'_>, memo: &Memo, cuttable: &Cuttable<'_>) -> bool {
        let Request { body, messages, .. } = *request;
        if !memo.may_cut(body.len()) {
            return false;
        }
        // The service's own count of the request before, or a guess for the first one.
        let tokens = memo.input.unwrap_or(Tokens(body.len() as u64 / BYTES_PER_TOKEN));
        // The system prompt and the tools stay.
        let tokens = tokens - messages.tokens_outside(body);
        if self.recipe.live_trigger().tokens.is_some_and(|trigger| tokens >= Tokens(trigger)) {
            return true;
        }
        let target = self.recipe.target.live.and_then(|target| target.tokens);
        let Some(target) = target.filter(|_| self.recipe.live.priced).map(Tokens) else {
            return false;
        };
        let saved = tokens - target;
        saved.0 * 4 >= target.0 && cuttable.is_worth(tokens, saved, target)
    }

    /// Cuts, if that is due and worth it, and keeps the decisions.
    fn cut(
        &self,
        request: &Request<'_>,
        memo: &mut Memo,
        decisions: &mut Vec<Arc<Decision>>,
        now: Instant,
    ) -> Result<Option<NewCut>> {
        let Request { api, body, messages, chains } = *request;
        let model = messages.model.as_deref().unwrap_or_default();
        let price = self.prices.find(model).map_or(USUAL, |known| known.price);
        // Unless it is known that the cache is cold, it is taken to be warm.
        let is_warm = memo.last.is_none_or(|last| now - last < TIME_TO_LIVE);
        let cuttable = Cuttable { api, body, messages, decisions, is_warm, price: &price };
        if !self.is_due(request, memo, &cuttable) {
            return Ok(None);
        }
        let cut = cuttable.cut(&self.recipe, &self.counter);
        memo.no_cut_below(body.len());
        let Some(Cut { decisions: made, removed, rewritten }) = cut? else { return Ok(None) };
        let Some(&last) = chains.last() else { return Ok(None) };
        let before: u64 = decisions.iter().map(|decision| decision.saved).sum();
        let after: u64 = made.iter().map(|decision| decision.saved).sum();
        let saved = after.saturating_sub(before);
        let bytes = body.len() as u64;
        let cut = Some(CutLine { last, messages: made.clone(), bytes, saved });
        let is_new = |text: &RemovedText| !memo.keeps(&text.hash);
        let removed = removed.into_iter().filter(is_new).collect();
        memo.keep(MemoLine { cut, removed, ..MemoLine::default() })?;
        *decisions = made.into_iter().map(Arc::new).collect();
        Ok(Some(NewCut { id: last, rewritten, is_warm }))
    }
}

/// The parts of a request that decisions are about.
#[derive(Clone, Copy)]
struct Request<'r> {
    api: &'static Api,
    body: &'r [u8],
    messages: &'r Messages,
    chains: &'r [Chain],
}

#[cfg(test)]
#[path = "rewrite_tests.rs"]
mod tests;
