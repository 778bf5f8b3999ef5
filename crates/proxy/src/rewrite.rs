//! Rewrites the body of a request: repeats the decisions about messages that were sent before, and
//! decides what is sent in place of new ones.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use epitome::wire::ledger::Group;
use epitome::wire::{Chain, CutLine, Decision, MemoLine, RemovedText};
use epitome_api::Api;
use epitome_error::{Result, sentence};
use epitome_llm::{Catalogue, Price};
use epitome_model::{Counter, Tokens};
use epitome_passes::Recipe;

use crate::agent_compaction::has_own_compaction;
use crate::body::{BYTES_PER_TOKEN, Messages};
use crate::counter::CachingCounter;
use crate::cuttable::{Cuttable, RequestCut, growth};
use crate::decide::NewMessages;
use crate::effect::{Effect, NewCut};
use crate::explain::{Explained, Explanation};
use crate::holdout::Holdout;
use crate::memo::{Memo, Memos, PreparedCut, Seen, locked};
use crate::price::{TIME_TO_LIVE, USUAL};
use crate::sent_requests::SentRequest;
use crate::splice::{BodySplice, spliced, splices};
use crate::turn::begins_turn;

/// The share of the model's window, in per cent, from which on a request is cut whatever that
/// costs. Agents compact by themselves at 83 per cent and more.
const FULL_PERCENT: u64 = 80;
/// No tokens in addition to those of a request.
const NONE: Tokens = Tokens(0);

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

/// The result of rewriting a body.
#[derive(Default)]
pub(crate) struct Rewritten {
    /// The body; `None` if it is sent as it came.
    pub(crate) body: Option<Bytes>,
    pub(crate) effect: Effect,
    /// The memo of the conversation, in which the tokens that the service counts are recorded.
    /// `None` if no messages were found in the body, if its conversation is held out, or after an
    /// error.
    pub(crate) conversation: Option<Arc<Mutex<Memo>>>,
    /// The chain of the body's last message.
    pub(crate) last: Option<Chain>,
    /// What was done to the blocks of the body. `None` if the body was not changed, or if changed
    /// requests are not explained.
    pub(crate) explanation: Option<Explanation>,
    /// The cut that is expected to be due in the next request: see [`Rewriter::prepare`].
    pub(crate) next_cut: Option<NextCut>,
}

/// A cut that is expected to be due in the next request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextCut {
    /// Whether the cut is made whatever it costs, because the model's window is nearly full.
    must_cut: bool,
}

impl Rewriter {
    /// A rewriter whose memos are in `folder`. Without a folder, decisions are only kept in memory.
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

    /// Lets a share of the conversations pass unchanged.
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
    /// If the memo cannot be read, or if a decision in it does not fit its message. The caller then
    /// sends the original.
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
            has_own_compaction: has_own_compaction(api, body, &messages, known),
            ..Effect::default()
        };
        if self.holdout.has(root) && !memo.is_changed() {
            memo.leave_unchanged(&chains[known..]);
            effect.group = Group::Holdout;
            return Ok(Rewritten { effect, ..Rewritten::default() });
        }
        let request = Request { api, body, messages: &messages, chains: &chains };
        let before = Before::find(&request, &memo, now);
        if known < messages.all.len() {
            self.decide_or_leave(&request, &mut memo, &mut decisions, &mut effect);
        }
        let saved = |of: &[Arc<Decision>]| Tokens(of.iter().map(|it| it.saved).sum());
        effect.saved_now = saved(&decisions[known..]);
        let before_cut = decisions.clone();
        // A request that is sent again is not cut, unless the model's window is nearly full: the
        // service may have refused the request because it was too long.
        if known < messages.all.len() || self.is_nearly_full(&request, &before, &decisions, NONE) {
            match self.cut(&request, &mut memo, &mut decisions, &before) {
                Ok(cut) => effect.cut = cut,
                Err(err) => effect.failure = Some(sentence(&err)),
            }
        }
        memo.sent.add(&chains, now);
        let next_cut = self.next_cut(&request, &memo, &before, &decisions, effect.cut);
        // What the cut of this request saves is added to `saved_before`.
        effect.saved_before = saved(&decisions) - effect.saved_now;
        effect.cuts = memo.cuts(&chains);
        drop(memo);
        let splices = splices(&messages, &decisions)?;
        let last = chains.last().copied();
        let conversation = Some(conversation);
        if splices.is_empty() {
            return Ok(Rewritten { effect, conversation, last, next_cut, ..Rewritten::default() });
        }
        effect.treatment = effect.treatment_of_changed();
        let explained = request.explained(&splices, &before_cut, known);
        let explain = || explained.explain(&effect, &self.recipe, &self.counter);
        let explanation = self.explains.then(explain).transpose()?;
        let body = Some(spliced(body, &splices).into());
        Ok(Rewritten { body, effect, conversation, last, explanation, next_cut })
    }

    /// Decides what is sent in place of the new messages. If that fails, they are sent as they
    /// came. The earlier decisions still apply: without them, the provider's cache would be lost.
    fn decide_or_leave(
        &self,
        request: &Request<'_>,
        memo: &mut Memo,
        decisions: &mut Vec<Arc<Decision>>,
        effect: &mut Effect,
    ) {
        let known = decisions.len();
        match self.decide(request, memo, decisions) {
            Ok(shortened) => effect.shortened = shortened,
            Err(err) => {
                memo.leave_unchanged(&request.chains[known..]);
                *decisions = memo.look_up(request.chains);
                effect.failure = Some(sentence(&err));
            }
        }
    }

    /// Decides what is sent in place of the new messages, and keeps the decisions in the memo.
    /// Returns the number of results that are shortened for the first time.
    fn decide(
        &self,
        request: &Request<'_>,
        memo: &mut Memo,
        decisions: &mut Vec<Arc<Decision>>,
    ) -> Result<u64> {
        let Request { api, body, messages, chains } = *request;
        let known = decisions.len();
        let new = NewMessages { api, body, messages, known: decisions };
        // Takes the lines out of the memo. After an error they are not put back, and the next
        // request reads them again.
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

    /// Makes a cut, if one is due, and keeps its decisions.
    ///
    /// A cut is usually planned while the previous request is under way, because planning takes
    /// long: see [`prepare`](Rewriter::prepare). It is planned here if the proxy knows no previous
    /// request ([`Before::is_known`]), if the provider's cache is cold, or if the model's window is
    /// nearly full.
    fn cut(
        &self,
        request: &Request<'_>,
        memo: &mut Memo,
        decisions: &mut Vec<Arc<Decision>>,
        before: &Before,
    ) -> Result<Option<NewCut>> {
        let Request { body, chains, .. } = *request;
        let is_warm = before.is_warm;
        let price = self.price(request.messages);
        let must_cut = self.is_nearly_full(request, before, decisions, NONE);
        let cuttable = request.cuttable(decisions, is_warm, must_cut, &price);
        if !self.is_due(request, memo, before, &cuttable, NONE) {
            return Ok(None);
        }
        let prepared = memo.take_prepared(chains);
        let (last, cut) = match prepared {
            Some(PreparedCut { last, cut, .. }) => (last, cut),
            None if before.is_known && is_warm && !must_cut => return Ok(None),
            None => {
                let Some(&last) = chains.last() else { return Ok(None) };
                let cut = cuttable.cut(&self.recipe, &self.counter);
                // Whatever the result is, even an error, no cut is planned again soon: planning
                // takes long.
                memo.no_cut_below(last, body.len());
                match cut? {
                    Some(cut) => (last, cut),
                    None => return Ok(None),
                }
            }
        };
        let RequestCut { decisions: made, removed, rewritten } = cut;
        let sum = |saved: &mut dyn Iterator<Item = u64>| saved.sum::<u64>();
        let before = sum(&mut decisions.iter().take(made.len()).map(|it| it.saved));
        let after = sum(&mut made.iter().map(|decision| decision.saved));
        let saved = after.saturating_sub(before);
        let bytes = body.len() as u64;
        let cut = Some(CutLine { last, messages: made, bytes, saved });
        let is_new = |text: &RemovedText| !memo.has_text(&text.hash);
        let removed = removed.into_iter().filter(is_new).collect();
        memo.keep(MemoLine { cut, removed, ..MemoLine::default() })?;
        *decisions = memo.look_up(chains);
        Ok(Some(NewCut { id: last, rewritten, is_warm }))
    }

    /// Whether a cut is due if the conversation has `more` tokens in addition to those of its last
    /// request. [`Memo::may_cut`] must allow it, and one of these must hold:
    ///
    /// - The model's window is nearly full.
    /// - The conversation is so long that the recipe compacts it.
    /// - The recipe compares prices, and a compaction down to its target is worth its price and
    ///   saves at least a quarter of the target.
    fn is_due(
        &self,
        request: &Request<'_>,
        memo: &Memo,
        before: &Before,
        cuttable: &Cuttable<'_>,
        more: Tokens,
    ) -> bool {
        let Request { body, messages, chains, .. } = *request;
        if !memo.may_cut(chains, body.len()) {
            return false;
        }
        if cuttable.must_cut {
            return true;
        }
        let tokens = before.input.unwrap_or_else(|| request.estimate(cuttable.decisions));
        // What is not in the list of messages, such as the tools, is not compacted.
        let tokens = tokens + more - messages.tokens_outside(body);
        if self.recipe.live_trigger().tokens.is_some_and(|trigger| tokens >= Tokens(trigger)) {
            return true;
        }
        let target = self.recipe.target.live.and_then(|target| target.tokens);
        let Some(target) = target.filter(|_| self.recipe.live.priced).map(Tokens) else {
            return false;
        };
        // After the compaction, the conversation has about `target` tokens, and all of them may
        // have to be written to the cache again.
        let saved = tokens - target;
        saved.0 * 4 >= target.0 && cuttable.is_worth(tokens, saved, target)
    }

    /// The cut that is expected to be due in the next request, if one is. `made` is the cut of this
    /// request; after a cut no other is expected.
    fn next_cut(
        &self,
        request: &Request<'_>,
        memo: &Memo,
        before: &Before,
        decisions: &[Arc<Decision>],
        made: Option<NewCut>,
    ) -> Option<NextCut> {
        if made.is_some() {
            return None;
        }
        let price = self.price(request.messages);
        let more = growth(request.messages, decisions, before.input.unwrap_or_default());
        let must_cut = self.is_nearly_full(request, before, decisions, more);
        let cuttable = request.cuttable(decisions, true, must_cut, &price);
        self.is_due(request, memo, before, &cuttable, more).then_some(NextCut { must_cut })
    }

    /// Whether this request, if it were `more` tokens longer, would fill at least [`FULL_PERCENT`]
    /// of the model's usable window; false if the window is not known. Such a request is cut
    /// whatever that costs: otherwise the provider would soon refuse the conversation, or the agent
    /// compact it.
    fn is_nearly_full(
        &self,
        request: &Request<'_>,
        before: &Before,
        decisions: &[Arc<Decision>],
        more: Tokens,
    ) -> bool {
        let model = request.messages.model.as_deref().unwrap_or_default();
        let Some(known) = self.prices.find(model) else { return false };
        let new = request.estimate_behind(before.length, decisions);
        let tokens = match before.input {
            Some(input) => input + new,
            None => request.estimate(decisions),
        };
        (tokens + more).0 * 100 >= known.usable_window().0 * FULL_PERCENT
    }

    /// Plans a cut for the next request of a conversation, and keeps it in the memo. `body` is the
    /// body of the request that is under way.
    ///
    /// # Errors
    ///
    /// Those of reading the memo and the request, and of planning the cut. No cut is prepared then.
    pub(crate) fn prepare(&self, api: &'static Api, body: &Bytes, next: NextCut) -> Result<()> {
        let Some(messages) = Messages::find(body, api.list) else { return Ok(()) };
        let chains = messages.chains(body, api.name);
        let request = Request { api, body, messages: &messages, chains: &chains };
        let conversation = self.memos.of_conversation(messages.root(&chains))?;
        let memo = locked(&conversation);
        let decisions = memo.look_up(&chains);
        let cuts = memo.cut_count();
        // The memo is unlocked, so that other requests of the conversation can be sent meanwhile.
        drop(memo);
        if decisions.len() < chains.len() {
            return Ok(());
        }
        let Some(&last) = chains.last() else { return Ok(()) };
        let price = self.price(&messages);
        let cuttable = request.cuttable(&decisions, true, next.must_cut, &price);
        let cut = cuttable.cut(&self.recipe, &self.counter);
        let mut memo = locked(&conversation);
        if let Ok(Some(_)) = cut {
            memo.prepared = cut?.map(|cut| PreparedCut { last, cut, cuts });
            return Ok(());
        }
        // No cut is tried again soon, also after an error: another attempt would fail in the same
        // way.
        memo.no_cut_below(last, body.len());
        cut.map(drop)
    }

    /// The price of the model that a body names; [`USUAL`] if that price is unknown.
    fn price(&self, messages: &Messages) -> Price {
        let model = messages.model.as_deref().unwrap_or_default();
        self.prices.find(model).map_or(USUAL, |known| known.price)
    }
}

/// A request, divided at its messages.
#[derive(Clone, Copy)]
struct Request<'r> {
    api: &'static Api,
    body: &'r [u8],
    messages: &'r Messages,
    chains: &'r [Chain],
}

impl<'r> Request<'r> {
    fn cuttable(
        &self,
        decisions: &'r [Arc<Decision>],
        is_warm: bool,
        must_cut: bool,
        price: &'r Price,
    ) -> Cuttable<'r> {
        let Request { api, body, messages, chains: _ } = *self;
        Cuttable { api, body, messages, decisions, is_warm, must_cut, price }
    }

    /// The request with its replacements, to be explained. `before_cut` are the decisions without
    /// the cut of this request, if one was made.
    fn explained(
        &self,
        splices: &'r [BodySplice<'r>],
        before_cut: &'r [Arc<Decision>],
        known: usize,
    ) -> Explained<'r> {
        let Request { api, body, messages, chains: _ } = *self;
        Explained { api, body, messages, splices, before_cut, known }
    }

    /// An estimate of the tokens of the request as these decisions send it.
    fn estimate(&self, decisions: &[Arc<Decision>]) -> Tokens {
        let bytes = self.body.len() - self.messages.list.len();
        Tokens(bytes as u64 / BYTES_PER_TOKEN) + self.estimate_behind(0, decisions)
    }

    /// An estimate of the tokens of the messages after the first `length` ones, as these decisions
    /// send them.
    fn estimate_behind(&self, length: usize, decisions: &[Arc<Decision>]) -> Tokens {
        let new = self.messages.all.get(length..).unwrap_or_default();
        let bytes: usize = new.iter().map(|message| message.span.len()).sum();
        let decided = decisions.get(length..).unwrap_or_default();
        let saved = Tokens(decided.iter().map(|decision| decision.saved).sum());
        Tokens(bytes as u64 / BYTES_PER_TOKEN) - saved
    }
}

/// What this proxy knows of an earlier request whose messages are the beginning of the current
/// request: of the longest such request that it has sent.
#[derive(Clone, Copy)]
struct Before {
    /// Whether this proxy has sent such a request, with messages of at least a quarter of the bytes
    /// of the current ones.
    is_known: bool,
    /// The number of messages of the earlier request; 0 if there is none.
    length: usize,
    /// Whether the provider's cache still holds the earlier request. If there is none, the cache is
    /// taken to be warm only if this proxy has sent no request of the conversation.
    is_warm: bool,
    /// The input tokens of the earlier request, as the service counted them. `None` if there is no
    /// such request or no count.
    input: Option<Tokens>,
}

impl Before {
    fn find(request: &Request<'_>, memo: &Memo, now: Instant) -> Before {
        let Request { messages, chains, .. } = *request;
        let longest = memo.sent.longest_beginning(chains);
        // If the agent has changed an old message, only a short beginning of the request may be in
        // the provider's cache.
        let is_enough = |(length, _): &(usize, SentRequest)| {
            let behind = messages.list.end - messages.all[length - 1].span.end;
            behind * 4 <= messages.list.len() * 3
        };
        match longest.filter(is_enough) {
            Some((length, sent)) => Before {
                is_known: true,
                length,
                is_warm: now - sent.time < TIME_TO_LIVE,
                input: sent.input,
            },
            None => {
                Before { is_known: false, length: 0, is_warm: memo.sent.is_empty(), input: None }
            }
        }
    }
}

#[cfg(test)]
#[path = "rewrite_tests.rs"]
mod tests;
