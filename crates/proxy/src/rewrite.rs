//! The body of a request as it is sent: what is known is repeated, what is new is decided once.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use epitome::wire::{Decision, MemoLine};
use epitome_api::Api;
use epitome_error::{Error, ErrorKind, Result};
use epitome_model::{Counter, Tokens};
use epitome_passes::Recipe;

use crate::body::Messages;
use crate::decide::New;
use crate::memo::{Memos, locked};

/// Rewrites the bodies of requests.
pub(crate) struct Rewriter {
    memos: Memos,
    recipe: Recipe,
    counter: &'static dyn Counter,
}

/// What rewriting did to one body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effect {
    /// The model that the body names.
    pub(crate) model: Option<String>,
    /// Tokens that earlier decisions save in this request.
    pub(crate) saved_before: Tokens,
    /// Tokens that new decisions save in this request.
    pub(crate) saved_now: Tokens,
    /// Results that were shortened for the first time.
    pub(crate) shortened: u64,
}

/// A body as it is sent.
pub(crate) struct Rewritten {
    /// `None` if it is sent as it came.
    pub(crate) body: Option<Bytes>,
    pub(crate) effect: Effect,
}

impl Rewriter {
    /// Without a folder, decisions are only kept in memory.
    pub(crate) fn new(
        folder: Option<PathBuf>,
        recipe: Recipe,
        counter: &'static dyn Counter,
    ) -> Rewriter {
        Rewriter { memos: Memos::new(folder), recipe, counter }
    }

    /// Rewrites the body of a request to an API.
    ///
    /// # Errors
    ///
    /// If anything is not as expected: the caller sends the original.
    pub(crate) fn rewrite(&self, api: &'static Api, body: &Bytes) -> Result<Rewritten> {
        let Some(messages) = Messages::find(body, api.list) else {
            return Ok(Rewritten { body: None, effect: Effect::default() });
        };
        let chains = messages.chains(body, api.name);
        let memo = self.memos.of_conversation(messages.root(&chains))?;
        let mut memo = locked(&memo);
        let mut decisions = memo.known(&chains);
        let known = decisions.len();
        let mut effect = Effect { model: messages.model.clone(), ..Effect::default() };
        if known < messages.all.len() {
            let new = New { api, body, messages: &messages, known: &decisions };
            let decided = new.decide(&memo, &self.recipe, self.counter)?;
            effect.shortened = decided.shortened;
            let line = MemoLine {
                messages: chains[known..].iter().copied().zip(decided.decisions.clone()).collect(),
                results: decided.results,
                removed: decided.removed,
                ..MemoLine::default()
            };
            memo.keep(line)?;
            decisions.extend(decided.decisions.into_iter().map(Arc::new));
        }
        let saved = |of: &[Arc<Decision>]| Tokens(of.iter().map(|it| it.saved).sum());
        effect.saved_before = saved(&decisions[..known]);
        effect.saved_now = saved(&decisions[known..]);
        let splices = splices(&messages, &decisions)?;
        let body = (!splices.is_empty()).then(|| spliced(body, &splices).into());
        Ok(Rewritten { body, effect })
    }
}

/// A range of a body and the bytes that replace it.
pub(crate) type BodySplice<'d> = (Range<usize>, &'d str);

/// The replacements in a body that carry out decisions about its first messages, in order.
///
/// # Errors
///
/// `Broken`, if a decision is not about its message.
pub(crate) fn splices<'d>(
    messages: &Messages,
    decisions: &'d [Arc<Decision>],
) -> Result<Vec<BodySplice<'d>>> {
    let broken = || Error::new(ErrorKind::Broken, "a decision does not fit its message");
    let mut splices = Vec::new();
    for (idx, (message, decision)) in messages.all.iter().zip(decisions).enumerate() {
        if decision.is_gone {
            // With the comma after it: the last message stays.
            let next = messages.all.get(idx + 1).ok_or_else(broken)?;
            splices.push((message.span.start..next.span.start, ""));
            continue;
        }
        for patch in &decision.patches {
            let range = message.range_of(patch.start, patch.end).ok_or_else(broken)?;
            splices.push((range, patch.with.as_str()));
        }
    }
    Ok(splices)
}

/// A body with replacements carried out.
fn spliced(body: &[u8], splices: &[BodySplice<'_>]) -> Vec<u8> {
    let mut made = Vec::with_capacity(body.len());
    let mut from = 0;
    for (range, with) in splices {
        made.extend_from_slice(&body[from..range.start]);
        made.extend_from_slice(with.as_bytes());
        from = range.end;
    }
    made.extend_from_slice(&body[from..]);
    made
}

#[cfg(test)]
#[path = "rewrite_tests.rs"]
mod tests;
