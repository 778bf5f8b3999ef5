//! A cut: a digest of the old messages, or the passes of a recipe over all messages. It is made if
//! it saves more than it costs to write the provider's cache again, or if the model's window is
//! nearly full.

use std::collections::HashMap;

use epitome::compaction::{PreparedCompaction, Way, removed_pieces};
use epitome::wire::{Decision, Patch, RemovedText};
use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::{Loaded, Spliced};
use epitome_model::{Counter, Source, Span, Tokens};
use epitome_passes::{PassSettings, PerKind, Recipe, Stages};
use epitome_store::archive::Hash;

use crate::cuttable::{Cuttable, PlannedCut, RequestCut};
use crate::hint::{HINT, with_hint};
use crate::splice::{narrowed, refused, sent, text};

impl Cuttable<'_> {
    /// Plans a cut of the request: by a digest of its old part, or by the passes of the recipe if
    /// no digest is possible. `None` if no cut is possible or worth its price, or if the model's
    /// reasoning is valid only after an unchanged beginning.
    ///
    /// # Errors
    ///
    /// `Invariant` if the API would not accept the changed request; `Refused` if an edit cannot be
    /// kept as a decision about a message; the errors of reading the request.
    pub(crate) fn cut(&self, recipe: &Recipe, counter: &dyn Counter) -> Result<Option<RequestCut>> {
        if self.is_bound() {
            return Ok(None);
        }
        match self.digest(recipe, counter)? {
            PlannedCut::Cut(cut) => Ok(Some(cut)),
            PlannedCut::IsNotWorthIt => Ok(None),
            PlannedCut::IsNotPossible => self.cut_by_passes(recipe, counter),
        }
    }

    fn cut_by_passes(&self, recipe: &Recipe, counter: &dyn Counter) -> Result<Option<RequestCut>> {
        let recipe = cut_alone(recipe);
        // If a digest has dropped messages, an edit may span the messages before and after them,
        // and cannot be assigned to one.
        let has_dropped = self.decisions.iter().any(|decision| decision.dropped);
        if has_dropped || recipe.stages.stored.passes.is_empty() {
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
        Ok(Some(RequestCut { decisions, removed, rewritten: Tokens(rewritten.max(1)) }))
    }

    /// The tokens that the edits save in each message, by the index of the message.
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

/// A recipe for requests: the passes that `recipe` runs on stored sessions, except those that
/// remove reasoning, and the target that `recipe` has for running agents.
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
