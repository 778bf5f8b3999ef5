//! Replays a session request by request: what each request costs, and which of the facts that its
//! response used are in the context.

use std::collections::HashMap;
use std::sync::Arc;

use epitome_model::Tokens;
use epitome_passes::facts::FactMap;

use crate::block::MeasuredBlock;
use crate::cache::{Bill, Cache};
use crate::history::History;
use crate::needs::Needs;

/// For this many requests, the model is assumed to know content that was read again.
const KNOWN: usize = 10;
/// The number of output tokens that is assumed for a tool call that reads a file again.
const REREAD_OUTPUT: Tokens = Tokens(80);
/// The number of later requests that are assumed to contain the content that was read again.
const SENT_AGAIN: u64 = 8;

/// A replay of a session.
pub struct Replay<'h> {
    history: &'h History,
    needs: &'h Needs,
    /// The tokens of everything in a request that is not a message: the system prompt and the
    /// tools.
    overhead: Tokens,
    cache: Cache,
    view: Vec<Arc<MeasuredBlock>>,
    /// For each fact, the number of blocks in the current view that contain it.
    held: FactMap<u32>,
    /// For each block that was read again, the index of the last request for which it was.
    reread: HashMap<usize, usize>,
}

/// The measured cost and quality of one request and its response.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallFigures {
    /// The tokens of the request, including the system prompt and the tools.
    pub context: Tokens,
    /// The cost if any beginning of an earlier request is cached.
    pub prefix: Bill,
    /// The cost if only whole earlier requests are cached.
    pub requests: Bill,
    /// The cost of reading files again for edits that quote content which the context lacks.
    pub rereads: Bill,
    /// Of the earlier facts that the response uses, the share by weight that the context contains
    /// (0 to 1); `None` if the response uses none.
    pub recall: Option<f64>,
    /// Like `recall`, but only of the facts that last occurred more than [`FAR`](crate::FAR)
    /// requests ago.
    pub far: Option<f64>,
    /// The number of edits in the response that quote earlier content.
    pub edits: u64,
    /// The number of these edits for which a file must be read again.
    pub reread: u64,
}

impl<'h> Replay<'h> {
    /// A replay that begins before the first request. `overhead` is the number of tokens that every
    /// request has in addition to its messages.
    pub fn new(history: &'h History, needs: &'h Needs, overhead: Tokens) -> Replay<'h> {
        Replay {
            history,
            needs,
            overhead,
            cache: Cache::default(),
            view: Vec::new(),
            held: FactMap::default(),
            reread: HashMap::new(),
        }
    }

    /// Measures the request with the index `call`, which sends the blocks `view`. Requests must be
    /// measured in order. If `is_cold` is true, the cache is emptied first, as after a long pause.
    pub fn call(
        &mut self,
        call: usize,
        view: Vec<Arc<MeasuredBlock>>,
        is_cold: bool,
    ) -> CallFigures {
        if is_cold {
            self.cache.expire();
        }
        let sent = self.cache.send(view.iter().map(|piece| &**piece));
        let output = self.history.response(call).iter().map(|piece| piece.tokens).sum();
        let bill = |cached: Tokens| {
            let fixed = self.overhead;
            let written = sent.all - cached;
            if is_cold {
                Bill { cached, written: written + fixed, output }
            } else {
                Bill { cached: cached + fixed, written, output }
            }
        };
        let context = sent.all + self.overhead;
        let prefix = bill(sent.prefix);
        let requests = bill(sent.requests);
        self.look_at(view);
        let recall = self.recall(call, |_| true);
        let far = self.recall(call, |is_far| is_far);
        let figures = CallFigures { context, prefix, requests, recall, far, ..Default::default() };
        self.edits(call, figures)
    }

    /// Replaces the current view by the next one, and updates `held`. Blocks that are the same at
    /// the beginning of both views need no update.
    fn look_at(&mut self, view: Vec<Arc<MeasuredBlock>>) {
        let same = self.view.iter().zip(&view).take_while(|(a, b)| a.id == b.id).count();
        for fact in self.view[same..].iter().flat_map(|piece| &piece.facts) {
            self.held.entry(*fact).and_modify(|pieces| *pieces -= 1);
        }
        for fact in view[same..].iter().flat_map(|piece| &piece.facts) {
            *self.held.entry(*fact).or_default() += 1;
        }
        self.view = view;
    }

    fn recall(&self, call: usize, counts: impl Fn(bool) -> bool) -> Option<f64> {
        let needs = self.needs.calls.get(call)?.iter().filter(|need| counts(need.is_far));
        let mut all = 0.0;
        let mut got = 0.0;
        for need in needs {
            all += need.weight;
            if self.held.get(&need.fact).is_some_and(|pieces| *pieces > 0) {
                got += need.weight;
            }
        }
        (all > 0.0).then(|| got / all)
    }

    fn edits(&mut self, call: usize, figures: CallFigures) -> CallFigures {
        let mut figures = figures;
        let edits = &self.needs.edits;
        let Ok(at) = edits.binary_search_by_key(&call, |(call, _)| *call) else { return figures };
        for edit in &edits[at].1 {
            figures.edits += 1;
            let last = self.reread.get(&edit.from);
            let is_known = last.is_some_and(|last| call - last <= KNOWN);
            let mut unseen = edit.lines.iter().filter(|(line, _)| {
                !self.view.iter().any(|piece| piece.lines.binary_search(line).is_ok())
            });
            if is_known || unseen.next().is_none() {
                continue;
            }
            self.reread.insert(edit.from, call);
            let tokens = self.history.pieces[edit.from].tokens;
            figures.reread += 1;
            figures.rereads.written += tokens;
            figures.rereads.cached += figures.context + Tokens(tokens.0 * SENT_AGAIN);
            figures.rereads.output += REREAD_OUTPUT;
        }
        figures
    }
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
