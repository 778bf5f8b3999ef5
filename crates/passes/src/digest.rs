//! A digest: one entry that consists of lines of the session, and replaces the beginning of the
//! context.
//!
//! Every digest contains the texts that set rules for the agent (as far as they fit), the short
//! messages of the user and the agent, some lines of long messages of the user, the lines of failed
//! results that report the failure, the newest short texts of the model, and the newest commands
//! that must not be given twice (a push, a deployment). Of the other lines, those with the highest
//! value per token are chosen until the budget of tokens is spent. The value of a line is the sum
//! of the values of its facts, and more for an error, a decision or a word of the topic. The value
//! of a fact is its rarity times the probability that the model will need it; a fact that the
//! digest contains already has no value.
//!
//! Lines are chosen from the original entries, never from an earlier digest, so that a second
//! digest of the same history is the same. Only a rule whose last copy is in an earlier digest is
//! taken from there.

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
use crate::pins::{pin_names, pinned_text, pins, remaining_room, shorten_to_fit, split_by_budget};
use crate::{ReplacedHistory, View};

use choose::{Choice, DigestLimits};
pub use index::{Complete, FactIndex};
use value::Values;
pub use value::{FEATURES, Features};
pub(crate) use write::calls_of;
pub use write::{is_digest, named_calls};

/// How a digest is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default, expecting = "a table of settings")]
pub struct DigestRule {
    /// Tokens that the whole context should have with the digest, if no target in tokens is given.
    pub budget: u64,
    /// Maximum number of the last responses of the model that stay unchanged, with their results.
    pub keep_calls: u64,
    /// Maximum size of the responses that stay unchanged, in per cent of the budget. The last
    /// response is an exception: it stays if it has at most half of the budget.
    pub keep_share: u64,
    /// A message of the user or the agent with at most this many tokens is included whole; of a
    /// longer one, a part.
    pub whole_user: u64,
    /// A text of the model with at most this many tokens is included whole. All such texts together
    /// have at most a tenth of the budget; if they are more, the newest are included.
    pub whole_model: u64,
    /// A topic for the digest: lines that contain its words have a higher value.
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

/// Maximum number of rounds in which lines are chosen. After each round, a limit is adjusted so
/// that the digest comes closer to the budget.
const ROUNDS: usize = 3;

/// The budget divided by this number is the minimum number of tokens for lines other than rules.
const LEAST: u64 = 10;
/// The budget divided by this number is the maximum size of all short texts of the model together,
/// in a usual digest.
const BRIEFS: u64 = 10;
/// The budget divided by this number is the maximum size of the full headers of all calls with an
/// effect together.
const EFFECTS: u64 = 20;

/// How many tokens a context may have with a digest.
#[derive(Clone, Copy, Debug)]
pub struct DigestBudget {
    /// Maximum tokens of the whole context, as far as the parts that must stay allow it.
    pub context: Tokens,
    /// Maximum tokens of all short texts of the model together.
    pub short_texts: Tokens,
}

/// The budget of a usual digest: a tenth of it for the short texts of the model.
impl From<Tokens> for DigestBudget {
    fn from(context: Tokens) -> DigestBudget {
        DigestBudget { context, short_texts: Tokens(context.0 / BRIEFS) }
    }
}

/// A digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// The text of the digest.
    pub text: String,
    /// The tokens of the text.
    pub tokens: Tokens,
    /// Number of lines of the session that the digest contains.
    pub lines: u64,
    /// Number of lines of the session from which the digest's lines were chosen.
    pub of: u64,
    /// Names of rule files, skills and tools whose rules the digest does not contain, because there
    /// is no room for all rules.
    pub rules_left_out: Vec<String>,
}

impl DigestRule {
    /// The index into `Transcript::context` at which the part that stays unchanged begins.
    pub fn tail(&self, view: &View<'_>, budget: Tokens) -> usize {
        tail(view, budget, Tokens(budget.0 * self.keep_share / 100), self.keep_calls)
    }

    /// The earliest index from which on the context has at most half of the budget. A caller may
    /// let the unchanged part begin before [`tail`](DigestRule::tail), for example to include the
    /// reasoning of an unfinished turn, but not before this index.
    pub fn longest_tail(&self, view: &View<'_>, budget: Tokens) -> usize {
        tail(view, budget, Tokens(budget.0 / 2), u64::MAX)
    }

    /// Makes the digest that replaces `old.items`, from the original entries `old.all_originals`;
    /// the context continues with `old.kept`. `None` if there are no lines to choose from.
    ///
    /// `budget` is the number of tokens that the whole context should have with the digest, and
    /// `others` the number of tokens of everything in the context except the digest. Pins (texts
    /// that set rules, see [`pins`]) are shortened if together they have more than a quarter of the
    /// budget. If they still have more than nine tenths, some are left out, but never the last one;
    /// [`Digest::rules_left_out`] names those. A tenth of the budget is always there for other
    /// lines: if `others` leaves less, the context exceeds the budget.
    ///
    /// # Errors
    ///
    /// A message with the name and the tokens of a rule, if this rule alone exceeds the budget.
    pub fn digest(
        &self,
        view: &View<'_>,
        old: &ReplacedHistory<'_>,
        budget: Tokens,
        others: Tokens,
    ) -> Result<Option<Digest>, String> {
        self.digest_with(&mut FactIndex::default(), view, old, budget, others)
    }

    /// Makes the same digest as [`digest`](DigestRule::digest), but does not read texts again whose
    /// facts `index` already contains. The short texts of the model may have a budget of their own.
    ///
    /// # Errors
    ///
    /// The same as of [`digest`](DigestRule::digest).
    pub fn digest_with(
        &self,
        index: &mut FactIndex,
        view: &View<'_>,
        old: &ReplacedHistory<'_>,
        budget: impl Into<DigestBudget>,
        others: Tokens,
    ) -> Result<Option<Digest>, String> {
        let DigestBudget { context: budget, short_texts: briefs } = budget.into();
        let pieces = index.pieces(view, old.all_originals, old.kept, self);
        if !pieces.old().iter().any(|piece| !piece.lines.is_empty()) {
            return Ok(None);
        }
        let values = Values::from_occurrences(&mut index.occurrences, &index.facts, &pieces);
        // The originals contain no earlier digest, but an earlier digest in `old.items` may hold
        // the last copy of a rule.
        let all: BTreeSet<usize> = old.items.iter().chain(old.all_originals).copied().collect();
        let pins = shorten_to_fit(pins(view, &Vec::from_iter(all)), budget, view.counter);
        let most = Tokens(budget.0 - budget.0 / LEAST);
        let (pins, left_out) = split_by_budget(pins, most, view.counter);
        let pinned = Tokens(budget.0 - remaining_room(&pins, budget, view.counter)?.0);
        let least = pinned + Tokens(budget.0 / LEAST);
        // The tokens that the digest itself may have.
        let room = Tokens(budget.0.saturating_sub(others.0)).max(least);
        let rules = pinned_text(&pins);
        let limits = DigestLimits {
            rules: rules.as_deref(),
            briefs,
            effects: Tokens(budget.0 / EFFECTS),
            focus: self.focus.as_deref(),
        };
        let choice = Choice::weigh(index, &pieces, &values, &limits, view.counter);
        let mut limit = room.0 - pinned.0;
        let mut best: Option<Digest> = None;
        let mut choosing = choice.begin(view.counter);
        // `limit` is the maximum of the sum of the tokens of the chosen lines, each counted alone.
        // The digest may have fewer tokens than this sum, because lines have more tokens alone than
        // in one text, or more, because the marks between lines are not in the sum. So `limit` is
        // adjusted, and lines are chosen again.
        for _ in 0..ROUNDS {
            if choosing.spent > limit {
                choosing = choice.begin(view.counter);
            }
            choosing.spend(Tokens(limit));
            let digest = write::digest(&pieces, &choosing.chosen, rules.as_deref(), view.counter);
            let tokens = digest.tokens.0.max(1);
            let is_better = best.as_ref().is_none_or(|best| {
                let old = best.tokens;
                let new = digest.tokens;
                if old > room { new < old } else { new > old && new <= room }
            });
            if is_better {
                best = Some(digest);
            }
            if tokens <= room.0 && tokens * 100 >= room.0 * 99 {
                break;
            }
            limit = limit * room.0 * 995 / (tokens * 1_000);
        }
        let rules_left_out = pin_names(&left_out);
        Ok(best.map(|digest| Digest { rules_left_out, ..digest }))
    }
}

/// The features of every fact of a context. A digest computes from them how likely the model is to
/// use the fact.
pub fn fact_features(view: &View<'_>) -> Vec<(FactId, Features)> {
    let mut index = FactIndex::default();
    let rule = DigestRule::default();
    let pieces = index.pieces(view, &view.transcript.context, &[], &rule);
    value::features(&mut index.occurrences, &index.facts, &pieces)
}

/// The index in the context at which the last responses begin: at most `calls` of them, with at
/// most `most` tokens in all. The last response is included even with more tokens, up to half of
/// the budget.
fn tail(view: &View<'_>, budget: Tokens, most: Tokens, calls: u64) -> usize {
    let context = &view.transcript.context;
    let mut kept = Tokens(0);
    let mut responses = 0;
    let mut begins = context.len();
    for unit in units(view.transcript).iter().rev() {
        kept += unit.items.iter().map(|&item| view.item_tokens(item)).sum();
        let is_more =
            if responses > 0 { kept > most || responses >= calls } else { kept.0 > budget.0 / 2 };
        if is_more {
            break;
        }
        responses += u64::from(is_response(view, unit));
        let places = unit.items.iter().filter_map(|it| context.iter().position(|c| c == it));
        begins = places.min().map_or(begins, |first| begins.min(first));
    }
    begins
}

fn is_response(view: &View<'_>, unit: &Unit) -> bool {
    let mut entries = unit.items.iter().filter_map(|&item| view.transcript.items[item].entry());
    entries.any(|entry| entry.role == Role::Assistant)
}

#[cfg(test)]
#[path = "digest_tests.rs"]
mod tests;
