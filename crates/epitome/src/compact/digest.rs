//! A digest of a stored session, written as the agent's own record of a summary.

use epitome_engine::{history, says_more_than_a_summary};
use epitome_model::{Counter, Source, Tokens, Transcript, Unit, units};
use epitome_passes::{DigestRule, Kept, Old, View};

use super::{CompactionPlan, Note, StandIn, StandsFor};
use crate::error::{Error, ErrorKind, Result};
use crate::session::Loaded;

/// Tokens that a format's own words around a summary have, or more.
const AROUND: Tokens = Tokens(80);

impl<'a, S: Source> CompactionPlan<'a, S> {
    /// The plan with a digest in the place of its edits: of what a digest stands for nothing else
    /// is sent. The plan as it is, with a note, if the session cannot hold one; as it is without
    /// one if the context is within the target, or nothing is old.
    pub(super) fn digested(
        mut self,
        rule: &DigestRule,
        counter: &dyn Counter,
    ) -> Result<CompactionPlan<'a, S>> {
        let session = self.session;
        let Loaded { format, source, transcript, .. } = session;
        let target = self.recipe.target.stored.and_then(|target| target.tokens);
        let budget = Tokens(target.unwrap_or(rule.budget));
        if self.compaction.tokens_before <= budget {
            return Ok(self);
        }
        if format.summarise.is_none() {
            let why = "epitome writes no summaries into them";
            self.notes.push(Note::NoDigest { agent: format.name, why: why.into() });
            return Ok(self);
        }
        let rule_files = self.recipe.rule_files.clone();
        let view = View::new(transcript, source, counter).with_rule_files(&rule_files);
        let tail = rule.tail(&view, budget).min(first_kept(transcript, &self.compaction.kept));
        let (old, kept) = transcript.context.split_at(tail);
        if !says_more_than_a_summary(transcript, old) {
            return Ok(self);
        }
        let is_prompt = |item: &usize| transcript.head.prompt.contains(item);
        let stays = old.iter().filter(|item| is_prompt(item)).chain(kept);
        let stays: Tokens = stays.map(|&item| view.item_tokens(item)).sum();
        let said = history(transcript, source, old);
        let goes = Old { items: old, read: &said, said: &said, kept };
        let digest = rule.digest(&view, &goes, budget, stays + AROUND);
        let digest = digest.map_err(|why| Error::new(ErrorKind::Refused, why))?;
        let Some(digest) = digest else { return Ok(self) };
        if !digest.rules_left_out.is_empty() {
            self.notes.push(Note::RulesTooLong { names: digest.rules_left_out });
        }
        match CompactionPlan::with_summary(&digest.text, session, &self.recipe, kept, counter) {
            Ok(planned) => {
                let is_digest = |it| StandsFor { kind: StandIn::Digest, ..it };
                let stands_for = planned.stands_for.map(is_digest);
                Ok(CompactionPlan { notes: self.notes, stands_for, ..planned })
            }
            Err(err) if err.kind() == ErrorKind::Refused => {
                self.notes.push(Note::NoDigest { agent: format.name, why: err.to_string() });
                Ok(self)
            }
            Err(err) => Err(err),
        }
    }
}

/// The place in the context of the first unit of which something is kept whole, by turns, results
/// or tokens: it stays as it is, with all that is behind it.
fn first_kept(transcript: &Transcript, kept: &Kept) -> usize {
    let units = units(transcript);
    let is_kept = |unit: &Unit| unit.items.iter().any(|item| kept.items.contains(item));
    let first = units.iter().find(|unit| is_kept(unit)).and_then(|unit| unit.items.first());
    let place = |first: &usize| transcript.context.iter().position(|item| item == first);
    first.and_then(place).unwrap_or(transcript.context.len())
}
