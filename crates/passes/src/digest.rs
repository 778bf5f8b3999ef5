//! A digest: one entry made of lines of the session, in place of its old part.
//!
//! Lines are chosen by the facts that they hold and that the model will probably use, each fact
//! counted once, per token, until a budget is spent. The digest is made from what was said first,
//! never from an earlier digest, so that a second one of the same history is the same.

mod choose;
mod focus;
mod index;
mod pieces;
mod value;
mod write;

use std::collections::BTreeSet;

use epitome_model::{Role, Tokens, Unit, units};
use serde::{Deserialize, Serialize};

use crate::facts::FactId;
use crate::pins::{fit, fitted, names, pinned_text, pins, room_beside};
use crate::{Old, View};

use choose::{Choice, DigestLimits};
pub use index::{Complete, FactIndex};
use value::Values;
pub use value::{FEATURES, Features};
pub(crate) use write::calls_of;
pub use write::{is_digest, named_calls};

/// How a digest is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DigestRule {
    /// Tokens of the context with the digest, where no target says so.
    pub budget: u64,
    /// The last responses of the model with their results stay as they are: at most so many.
    pub keep_calls: u64,
    /// They are at most these per cent of the budget, but for the last one, which stays if it is no
    /// more than half of it.
    pub keep_share: u64,
    /// A text of the user of at most so many tokens is in the digest whole; of a longer one, lines.
    pub whole_user: u64,
    /// A text of the model of at most so many tokens is in the digest whole, as long as all such
    /// texts together are at most a tenth of the budget; of more, the newest are.
    pub whole_model: u64,
    /// What the digest is to be about: lines that have words of it are worth more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
}

impl Default for DigestRule {
    fn default() -> DigestRule {
        DigestRule {
            budget: 40_000,
            keep_calls: 4,
            keep_share: 15,
            whole_user: 1_500,
            whole_model: 80,
            focus: None,
        }
    }
}

/// Times that lines are chosen, until their tokens together are about the budget.
const ROUNDS: usize = 3;

/// Of a budget, the part that a digest has at least: one in so many.
const LEAST: u64 = 10;
/// Of a budget, the part that short texts of the model may have: one in so many.
const BRIEFS: u64 = 10;

/// A digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// Its text.
    pub text: String,
    /// Its tokens.
    pub tokens: Tokens,
    /// Lines of the session in it.
    pub lines: u64,
    /// Of how many lines they were chosen.
    pub of: u64,
    /// What sets rules and is not in it because all of it does not fit: names of rule files, of
    /// skills, of tools.
    pub rules_left_out: Vec<String>,
}

impl DigestRule {
    /// Where in the context the part begins that stays as it is: an index into
    /// `Transcript::context`.
    pub fn tail(&self, view: &View<'_>, budget: Tokens) -> usize {
        tail(view, budget, Tokens(budget.0 * self.keep_share / 100), self.keep_calls)
    }

    /// Where it may begin at the earliest, if that makes it valid: it may be half of the budget.
    pub fn longest_tail(&self, view: &View<'_>, budget: Tokens) -> usize {
        tail(view, budget, Tokens(budget.0 / 2), u64::MAX)
    }

    /// The digest that is sent in place of `old.items`, made of `old.said`, in front of `old.kept`;
    /// none if there is nothing to choose from. With it and with what stays `beside` it, the
    /// context has at most `budget` tokens. It has a tenth of them for its lines whatever stays
    /// beside it, and what sets rules is in it word for word (see [`pins`]) as far as nine tenths
    /// of the budget hold it; what they do not hold it names.
    ///
    /// # Errors
    ///
    /// Says what sets rules and how many tokens that needs, if it is more than the budget.
    pub fn digest(
        &self,
        view: &View<'_>,
        old: &Old<'_>,
        budget: Tokens,
        beside: Tokens,
    ) -> Result<Option<Digest>, String> {
        self.digest_with(&mut FactIndex::default(), view, old, budget, beside)
    }

    /// The same digest, with what is known of the log already.
    ///
    /// # Errors
    ///
    /// As [`digest`](DigestRule::digest).
    pub fn digest_with(
        &self,
        index: &mut FactIndex,
        view: &View<'_>,
        old: &Old<'_>,
        budget: Tokens,
        beside: Tokens,
    ) -> Result<Option<Digest>, String> {
        let pieces = index.pieces(view, old.said, old.kept, self);
        if !pieces.old().iter().any(|piece| !piece.lines.is_empty()) {
            return Ok(None);
        }
        let values = Values::from_occurrences(&mut index.occurrences, &index.facts, &pieces);
        // An earlier digest is not among what was said, and may hold the last copy of a rule.
        let all: BTreeSet<usize> = old.items.iter().chain(old.said).copied().collect();
        let pins = fitted(pins(view, &Vec::from_iter(all)), budget, view.counter);
        let most = Tokens(budget.0 - budget.0 / LEAST);
        let (pins, left_out) = fit(pins, most, view.counter);
        let pinned = Tokens(budget.0 - room_beside(&pins, budget, view.counter)?.0);
        let briefs = Tokens(budget.0 / BRIEFS);
        let least = pinned + Tokens(budget.0 / LEAST);
        let budget = Tokens(budget.0.saturating_sub(beside.0)).max(least);
        let rules = pinned_text(&pins);
        let wanted = DigestLimits { rules: rules.as_deref(), briefs, focus: self.focus.as_deref() };
        let choice = Choice::weigh(index, &pieces, &values, &wanted, view.counter);
        let mut nominal = budget.0 - pinned.0;
        let mut best: Option<Digest> = None;
        let mut choosing = choice.begin(view.counter);
        // Lines are counted one by one, which is more than they are together; what stands between
        // them is not counted.
        for _ in 0..ROUNDS {
            if choosing.spent > nominal {
                choosing = choice.begin(view.counter);
            }
            choosing.spend(Tokens(nominal));
            let digest = write::digest(&pieces, &choosing.chosen, rules.as_deref(), view.counter);
            let tokens = digest.tokens.0.max(1);
            let is_better = best.as_ref().is_none_or(|best| {
                let (old, new) = (best.tokens, digest.tokens);
                if old > budget { new < old } else { new > old && new <= budget }
            });
            if is_better {
                best = Some(digest);
            }
            if tokens <= budget.0 && tokens * 100 >= budget.0 * 99 {
                break;
            }
            nominal = nominal * budget.0 * 995 / (tokens * 1_000);
        }
        let rules_left_out = names(&left_out);
        Ok(best.map(|digest| Digest { rules_left_out, ..digest }))
    }
}

/// What is known of every fact of a context, by which a digest guesses whether it is used soon.
pub fn fact_features(view: &View<'_>) -> Vec<(FactId, Features)> {
    let mut index = FactIndex::default();
    let rule = DigestRule::default();
    let pieces = index.pieces(view, &view.transcript.context, &[], &rule);
    value::features(&mut index.occurrences, &index.facts, &pieces)
}

/// Where the last responses begin that are no more than `most` tokens together, and no more than
/// `calls`; the last one counts if it leaves half of the budget.
fn tail(view: &View<'_>, budget: Tokens, most: Tokens, calls: u64) -> usize {
    let context = &view.transcript.context;
    let weight =
        |unit: &Unit| -> Tokens { unit.items.iter().map(|&item| view.item_tokens(item)).sum() };
    let is_response = |unit: &Unit| {
        let entries = unit.items.iter().filter_map(|&item| view.transcript.items[item].entry());
        entries.into_iter().any(|entry| entry.role == Role::Assistant)
    };
    let (mut kept, mut responses) = (Tokens(0), 0);
    let mut begins = context.len();
    for unit in units(view.transcript).iter().rev() {
        kept += weight(unit);
        let is_more =
            if responses > 0 { kept > most || responses >= calls } else { kept.0 > budget.0 / 2 };
        if is_more {
            break;
        }
        responses += u64::from(is_response(unit));
        let places = unit.items.iter().filter_map(|it| context.iter().position(|c| c == it));
        begins = places.min().map_or(begins, |first| begins.min(first));
    }
    begins
}

#[cfg(test)]
#[path = "digest_tests.rs"]
mod tests;
