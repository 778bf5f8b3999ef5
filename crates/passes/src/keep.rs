//! Rules that keep parts of a session whole. A part stays if any rule keeps it.

use std::collections::BTreeSet;
use std::fmt;

use epitome_model::{Block, Role, Tokens, Unit, units};
use serde::{Deserialize, Serialize};

use crate::{View, digest};

/// What is kept whole. A rule that is not set keeps nothing; the rules' union is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default, expecting = "a table of what is kept")]
pub struct Keep {
    /// The last turns: a user message and everything until the next.
    pub turns: Option<u64>,
    /// The last results, with their calls.
    pub results: Option<u64>,
    /// The last messages. Everything that a model writes in a row is one message, and everything
    /// that it is sent in between is one.
    pub messages: Option<u64>,
    /// The last tokens of the context. A call is kept together with its results.
    pub tokens: Option<u64>,
    /// Limits what `tokens` keeps to this share of the session's results, in per cent (0 to 100):
    /// nearly all of a session that is hardly longer than `tokens` would stay otherwise. Results
    /// are counted because a compaction does not change their number, so that a second run keeps
    /// the same.
    #[cfg_attr(feature = "schema", schemars(range(max = 100)))]
    pub share: Option<u64>,
    /// Results that the model has not answered yet.
    pub unanswered: bool,
    /// What is kept when `turns` and `results` cover the whole session.
    #[serde(skip)]
    pub all: All,
}

/// What is kept if the rules for turns and results cover the whole session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum All {
    /// As many of the last tokens as `tokens` says, or 5,000 if it is not set. So even a recipe
    /// that keeps the last turn removes something from a session of one turn.
    #[default]
    Tail,
    /// The whole session: the user asked for this number of turns or results.
    Kept,
}

/// The number of the last tokens that are kept when turns or results would keep everything and
/// `tokens` is not set. It is a constant: a share of the session would shrink with each compaction,
/// and a second run would remove more.
const FALLBACK: u64 = 5_000;

/// Why something is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeepRule {
    /// The content is in one of the last turns.
    Turns,
    /// The content is one of the last results.
    Results,
    /// The content is one of the last messages.
    Messages,
    /// The content is within the last tokens.
    Tokens,
    /// The content is a result that the model has not answered yet.
    Unanswered,
}

impl fmt::Display for KeepRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeepRule::Turns => "turns",
            KeepRule::Results => "results",
            KeepRule::Messages => "messages",
            KeepRule::Tokens => "tokens",
            KeepRule::Unanswered => "unanswered",
        })
    }
}

/// The parts of a session that rules keep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KeptParts {
    /// Tokens of everything that is kept, without results that repeat earlier ones.
    pub tokens: Tokens,
    /// The rules that keep something, each with the number of entries that it keeps.
    pub rules: Vec<(KeepRule, u64)>,
    /// If the rules together would keep the whole session, these rules; otherwise empty.
    pub covered_everything: Vec<KeepRule>,
    /// If only the end of the session is kept, because the rules together would keep the whole
    /// session (see [`All::Tail`]): the maximum number of tokens of that end.
    pub instead: Option<Tokens>,
    /// The kept items, as indices into `Transcript::items`.
    #[serde(skip)]
    pub items: BTreeSet<usize>,
}

/// Applies the rules: marks the items in the view, and returns what is kept.
pub fn apply(keep: Keep, view: &mut View<'_>) -> KeptParts {
    let units = units(view.transcript);
    let mut kept = KeptParts::default();
    let mut items = union(keep, view, &units, &mut kept.rules);
    // Ignore entries that have only reasoning: a compaction may remove them, and a second run must
    // keep the same as the first.
    let context = view
        .transcript
        .context()
        .filter(|(_, entry)| !entry.blocks.iter().all(|block| matches!(block, Block::Thinking(_))));
    let all: BTreeSet<usize> = context.map(|(item, _)| item).collect();
    if !all.is_empty() && items.is_superset(&all) {
        kept.covered_everything = kept.rules.iter().map(|(rule, _)| *rule).collect();
        // A compaction does not change which turns and results are the last ones, but it changes
        // which items the last tokens are in. So the rule for tokens is left out here.
        let structure = Keep { tokens: None, ..keep };
        // The rule `messages` may keep the whole session: a context with so few messages is short,
        // however many tokens it has.
        let is_short = keep.messages.is_some();
        let is_meant = keep.all == All::Kept;
        if !is_short
            && !is_meant
            && union(structure, view, &units, &mut Vec::new()).is_superset(&all)
        {
            let tail = keep.tokens.unwrap_or(FALLBACK);
            kept.instead = Some(Tokens(tail));
            kept.rules.clear();
            let tail = Keep { turns: None, results: None, tokens: Some(tail), ..keep };
            items = union(tail, view, &units, &mut kept.rules);
        }
    }
    kept.tokens = items.iter().map(|&item| said_once(view, item)).sum();
    view.keep(items.iter().copied());
    kept.items = items;
    kept
}

fn union(
    keep: Keep,
    view: &View<'_>,
    units: &[Unit],
    rules: &mut Vec<(KeepRule, u64)>,
) -> BTreeSet<usize> {
    let found = [
        keep.turns.map(|turns| (KeepRule::Turns, last_turns(units, turns))),
        keep.results.map(|results| (KeepRule::Results, last_results(view, units, results))),
        keep.messages.map(|messages| (KeepRule::Messages, last_messages(view, messages))),
        keep.tokens
            .map(|tokens| (KeepRule::Tokens, last_tokens(view, units, Tokens(tokens), keep.share))),
        keep.unanswered.then(|| (KeepRule::Unanswered, unanswered(view))),
    ];
    let mut items = BTreeSet::new();
    for (rule, found) in found.into_iter().flatten() {
        if !found.is_empty() {
            rules.push((rule, found.len() as u64));
            items.extend(found);
        }
    }
    items
}

fn last_turns(units: &[Unit], turns: u64) -> Vec<usize> {
    if turns == 0 {
        return Vec::new();
    }
    let starts: Vec<usize> = (0..units.len()).filter(|&idx| units[idx].starts_turn).collect();
    let first = starts.len().checked_sub(turns as usize).map_or(0, |idx| starts[idx]);
    units[first..].iter().flat_map(|unit| unit.items.iter().copied()).collect()
}

/// The items with the last results, newest first, and the items that must stay with them, such as
/// their calls.
fn last_results(view: &View<'_>, units: &[Unit], mut results: u64) -> Vec<usize> {
    let mut found = Vec::new();
    for unit in units.iter().rev() {
        for &item in unit.items.iter().rev() {
            let n = outputs(view, item);
            if n > 0 && results > 0 {
                results = results.saturating_sub(n);
                found.push(item);
            }
        }
        if found.iter().any(|item| unit.items.contains(item)) {
            found.extend(unit.items.iter().copied().filter(|&item| outputs(view, item) == 0));
        }
        if results == 0 {
            break;
        }
    }
    found
}

fn last_messages(view: &View<'_>, messages: u64) -> Vec<usize> {
    let mut found = Vec::new();
    let mut n = 0;
    let mut side = None;
    for (item, entry) in view.transcript.context().rev() {
        let speaks = entry.role == Role::Assistant;
        n += u64::from(side != Some(speaks));
        side = Some(speaks);
        if n > messages {
            break;
        }
        found.push(item);
    }
    found
}

fn outputs(view: &View<'_>, item: usize) -> u64 {
    let entry = view.transcript.items[item].entry();
    entry.map_or(0, |entry| {
        entry.blocks.iter().filter(|block| matches!(block, Block::Output(_))).count() as u64
    })
}

fn last_tokens(view: &View<'_>, units: &[Unit], budget: Tokens, share: Option<u64>) -> Vec<usize> {
    // Count the calls that a digest replaced, too: otherwise a second compaction would keep less.
    let digested = view.transcript.context().flat_map(|(_, entry)| &entry.blocks);
    let digested = digested.filter_map(|block| digest::calls_of(block, view.source)).sum::<u64>();
    let all = digested + units.iter().map(|unit| outputs_of(view, unit)).sum::<u64>();
    let most = share.map(|share| (all * share).div_ceil(100));
    let mut spent = Tokens(0);
    let mut passed = 0;
    let mut found = Vec::new();
    for unit in units.iter().rev() {
        // Leave out results that repeat earlier ones: they are removed even from kept items.
        spent += unit.items.iter().map(|&item| said_once(view, item)).sum();
        passed += outputs_of(view, unit);
        if spent > budget || most.is_some_and(|most| passed > most) {
            break;
        }
        found.extend(unit.items.iter().copied());
    }
    found
}

fn outputs_of(view: &View<'_>, unit: &Unit) -> u64 {
    unit.items.iter().map(|&item| outputs(view, item)).sum()
}

fn said_once(view: &View<'_>, item: usize) -> Tokens {
    let blocks = view.transcript.items[item].entry().map_or(&[][..], |entry| &entry.blocks);
    let once = blocks.iter().enumerate().filter(|(_, said)| !matches!(said, Block::Repeated(_)));
    once.map(|(block, _)| view.tokens(item, block)).sum()
}

/// The items with results that the model has not answered yet.
pub(crate) fn unanswered(view: &View<'_>) -> Vec<usize> {
    let last = view.transcript.context().next_back().and_then(|(_, entry)| entry.group.as_ref());
    // Some agents store a call and its result in one record of the model.
    view.transcript
        .context()
        .rev()
        .take_while(|(item, entry)| {
            let is_of_last = entry.group.is_some() && entry.group.as_ref() == last;
            entry.role != Role::Assistant || is_of_last && outputs(view, *item) > 0
        })
        .filter(|(item, _)| outputs(view, *item) > 0)
        .map(|(item, _)| item)
        .collect()
}

#[cfg(test)]
#[path = "keep_tests.rs"]
mod tests;
