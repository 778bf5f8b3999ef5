//! A digest of a stored session, written as the agent's own record of a summary.

use epitome_error::{ErrorKind, Result};
use epitome_formats::Loaded;
use epitome_model::{Source, Tokens, Transcript, unit_boundary_before, units};
use epitome_passes::{DigestRule, FactIndex, KeptParts, Plan, View, history};

use super::{Note, Planner, PreparedCompaction, ReplacedItems, ReplacementKind};
use crate::digest::{Chosen, Digesting};

/// The maximum number of tokens that a format adds around a summary.
const AROUND: Tokens = Tokens(80);

impl<'a, S: Source> Planner<'a, '_, S> {
    /// Replaces the old part of the context by a digest: a resume sends the digest instead of it.
    /// `None` if no digest is needed or possible. If the session cannot hold one, a note says why.
    pub(super) fn digest(
        &self,
        rule: &DigestRule,
        view: &View<'_>,
        plan: &Plan,
        notes: &mut Vec<Note>,
    ) -> Result<Option<PreparedCompaction<'a, S>>> {
        let Loaded { format, source, transcript, .. } = self.session;
        let target = self.recipe.target.stored.and_then(|target| target.tokens);
        let budget = Tokens(target.unwrap_or(rule.budget));
        if plan.tokens_before <= budget {
            return Ok(None);
        }
        if let Err(why) = format.capabilities(transcript).summary {
            notes.push(Note::NoDigest { agent: format.name, why: why.into() });
            return Ok(None);
        }
        let tail = rule.tail(view, budget).min(first_kept(transcript, &plan.kept));
        let tail = unit_boundary_before(transcript, tail);
        let digesting = Digesting { rule, view, end: tail, budget: budget.into(), around: AROUND };
        let chosen = digesting.choose(
            &mut FactIndex::default(),
            |old, _| history(transcript, source, old),
            |item| view.item_tokens(item),
        )?;
        let Some(Chosen { digest, .. }) = chosen else { return Ok(None) };
        if !digest.rules_left_out.is_empty() {
            notes.push(Note::RulesTooLong { names: digest.rules_left_out });
        }
        // The kept end may be longer than what the keep rules chose. Their reasons would not
        // explain all of it, so no reasons are reported.
        let plan = Plan { kept: KeptParts::default(), ..plan.clone() };
        let kept = &transcript.context[tail..];
        match self.in_place_of_the_beginning(&digest.text, plan, kept, "digest") {
            Ok(planned) => {
                notes.extend(planned.notes);
                let stands_for = planned
                    .stands_for
                    .map(|it| ReplacedItems { kind: ReplacementKind::Digest, ..it });
                Ok(Some(PreparedCompaction { notes: Vec::new(), stands_for, ..planned }))
            }
            Err(err) if err.kind() == ErrorKind::Refused => {
                notes.push(Note::NoDigest { agent: format.name, why: err.to_string() });
                Ok(None)
            }
            Err(err) => Err(err),
        }
    }
}

/// The index in the context of the first unit (such as a response with its results) that contains
/// something the recipe keeps. The length of the context if nothing is kept.
fn first_kept(transcript: &Transcript, kept: &KeptParts) -> usize {
    let units = units(transcript);
    let mut first =
        units.iter().filter(|unit| unit.items.iter().any(|item| kept.items.contains(item)));
    let first = first.next().and_then(|unit| unit.items.first());
    let place = first.and_then(|first| transcript.context.iter().position(|item| item == first));
    place.unwrap_or(transcript.context.len())
}
