//! A cut between requests: a digest of the old messages, or the passes of a recipe over all of them,
//! when that is worth writing the provider's cache again.

use std::collections::HashMap;
use std::sync::Arc;

use epitome::compaction::{PreparedCompaction, Way, removed_pieces};
use epitome::wire::{Decision, Patch, RemovedText};
use epitome_api::Api;
use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::{Format, Loaded, Spliced, find_format};
use epitome_llm::Price;
use epitome_model::{Counter, Source, Span, Tokens};
use epitome_passes::{CachePrices, PassSettings, PerKind, PricedCut, Recipe, Stages, is_worth};
use epitome_store::archive::Hash;

use crate::body::Messages;
use crate::digest::Digested;
use crate::hint::{HINT, with_hint};
use crate::splice::{narrowed, refused, sent, text};

/// A request all of whose messages were decided about.
pub(crate) struct Cuttable<'r> {
    pub(crate) api: &'static Api,
    pub(crate) body: &'r [u8],
    pub(crate) messages: &'r Messages,
    pub(crate) decisions: &'r [Arc<Decision>],
    /// Whether the provider's cache still holds the beginning of the request.
    pub(crate) is_warm: bool,
    pub(crate) price: &'r Price,
}

/// A cut that is worth it.
pub(crate) struct Cut {
    /// What is sent in place of each message.
    pub(crate) decisions: Vec<Decision>,
    /// The texts that are no longer sent.
    pub(crate) removed: Vec<RemovedText>,
    /// Tokens that the provider has to write to its cache again; at least 1.
    pub(crate) rewritten: Tokens,
}

impl Cuttable<'_> {
    /// Cuts the request, if that is worth its price: by a digest of its old part, or by the passes
    /// of the recipe if it cannot have a digest.
    ///
    /// # Errors
    ///
    /// `Invariant` if the request would be refused afterwards, and the errors of reading it.
    pub(crate) fn cut(&self, recipe: &Recipe, counter: &dyn Counter) -> Result<Option<Cut>> {
        if self.is_bound() {
            return Ok(None);
        }
        match self.digest(recipe, counter)? {
            Digested::Cut(cut) => Ok(Some(cut)),
            Digested::IsNotWorthIt => Ok(None),
            Digested::IsNotPossible => self.cut_by_passes(recipe, counter),
        }
    }

    fn cut_by_passes(&self, recipe: &Recipe, counter: &dyn Counter) -> Result<Option<Cut>> {
        let recipe = cut_alone(recipe);
        if recipe.stages.stored.passes.is_empty() {
            return Ok(None);
        }
        let sent = sent(self.body, self.messages, self.decisions)?;
        let request = Loaded::read(sent, Some(self.api.format.name))?;
        let planned = PreparedCompaction::in_way(Way::Rewrite, &request, &recipe, counter)?;
        if let Some(violation) = planned.violations.first() {
            return Err(Error::new(ErrorKind::Invariant, violation.to_string()));
        }
        let Some((first, _)) = planned.splices.first() else { return Ok(None) };
        let behind = planned.bytes_after.0 - first.span.start;
        let rewritten = planned.tokens_after.0 * behind / planned.bytes_after.0.max(1);
        let before = planned.plan.tokens_before;
        let saved = before - planned.tokens_after;
        if !self.is_worth(before, saved, Tokens(rewritten)) {
            return Ok(None);
        }
        let removed = removed_pieces(&planned, counter).into_iter().map(|(span, about)| {
            let raw = request.source.at(span).into_owned();
            Ok(RemovedText { hash: Hash::compute(&raw), raw: text(raw)?, about })
        });
        let removed = removed.collect::<Result<Vec<_>>>()?;
        let mut saved = self.saved_by_message(&planned, &request);
        let splices = planned.splices.iter().map(|(splice, _)| splice.clone()).collect();
        drop(planned);
        let all = request.source.with_more(splices)?.into_splices();
        let mut decisions = vec![Decision::default(); self.messages.all.len()];
        let mut has_hint = false;
        for splice in all {
            let range = splice.span.start as usize..splice.span.end as usize;
            let mut with = text(splice.with.into_vec())?;
            if !has_hint {
                with = with_hint(with, range.len());
                has_hint = with.contains(HINT);
            }
            let (range, with) = narrowed(self.body, range, with);
            let (idx, start, end) = self.messages.place(&range).ok_or_else(|| {
                refused("an edit is outside of the messages, or ends at a cache mark")
            })?;
            decisions[idx].patches.push(Patch { start, end, with });
        }
        for (idx, decision) in decisions.iter_mut().enumerate() {
            let before = self.decisions.get(idx).map_or(0, |decision| decision.saved);
            decision.saved = before + saved.remove(&idx).unwrap_or(0);
        }
        Ok(Some(Cut { decisions, removed, rewritten: Tokens(rewritten.max(1)) }))
    }

    /// Whether a cut is worth its price that leaves `saved` of `before` tokens out of this request
    /// and each later one, and has the provider write `rewritten` tokens again.
    pub(crate) fn is_worth(&self, before: Tokens, saved: Tokens, rewritten: Tokens) -> bool {
        let requests = saved.0 / self.growth(before).0.max(1);
        let priced = PricedCut { saved, rewritten, requests, is_warm: self.is_warm };
        let Price { input, cached, written, output: _ } = *self.price;
        is_worth(priced, CachePrices { read: cached, written: written.max(input) })
    }

    /// The tokens by which each request is longer than the one before, if the last one has `tokens`:
    /// the conversation grows as it has grown so far, by its own messages.
    pub(crate) fn growth(&self, tokens: Tokens) -> Tokens {
        let removed: u64 = self.decisions.iter().map(|decision| decision.saved).sum();
        Tokens((tokens.0 + removed) / self.messages.responses().max(1))
    }

    /// Whether the reasoning of this model is valid only while everything before it is unchanged.
    fn is_bound(&self) -> bool {
        let format: Option<&Format> = find_format(self.api.format.name);
        let model = self.messages.model.as_deref().unwrap_or_default();
        format.is_some_and(|format| (format.thinking_is_bound)(model))
    }

    /// The tokens that the edits save, by message.
    fn saved_by_message(
        &self,
        planned: &PreparedCompaction<'_, Spliced<'_>>,
        request: &Loaded<Spliced<'_>>,
    ) -> HashMap<usize, u64> {
        let mut saved = HashMap::new();
        for edit in &planned.plan.edits {
            let start = request.transcript.items[edit.edit.at.item()].record().span.start;
            let byte = Span { start, end: start + 1 };
            let place = request.source.span_in_base(byte).map(|base| base.start as usize);
            if let Some(idx) = place.and_then(|place| self.messages.index_at(place)) {
                *saved.entry(idx).or_insert(0) += edit.tokens.0;
            }
        }
        saved
    }
}

/// A recipe that does to a request what the passes of `recipe` do to a stored session, down to its
/// target for contexts in use. Reasoning stays.
fn cut_alone(recipe: &Recipe) -> Recipe {
    let passes = recipe.stages.stored.passes.iter();
    let passes = passes.filter(|pass| !matches!(pass, PassSettings::Thinking(_)));
    let stored = Stages { passes: passes.cloned().collect(), ..Stages::default() };
    Recipe {
        name: recipe.name.clone(),
        about: recipe.about.clone(),
        keep: recipe.keep,
        rule_files: recipe.rule_files.clone(),
        exempt_tools: recipe.exempt_tools.clone(),
        stop: recipe.stop,
        target: PerKind::for_both(recipe.target.live),
        stages: PerKind { stored, live: Stages::default() },
        ..Recipe::default()
    }
}
