//! Finds which earlier content the responses of a session used.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use epitome_model::Tokens;
use epitome_passes::facts::{FactId, FactMap, FactUses};

use crate::block::{BlockKind, MeasuredBlock};
use crate::history::History;
use crate::lines::LineId;

/// The number of requests to the model after a compaction in whose responses the uses of earlier
/// facts are counted.
pub const HORIZON: usize = 40;
/// A fact is far if it last occurred more than this many requests ago.
pub const FAR: usize = 10;
/// Maximum number of compactions that are forced in one session.
const CUTS: usize = 8;

/// Generic facts: those that occur in more than 15% of the open set of recorded sessions
/// (`docs/quality.md`), and in sessions of at least three repositories.
static GENERIC: LazyLock<HashSet<FactId>> =
    LazyLock::new(|| include_str!("../generic.txt").lines().map(FactId::from_text).collect());

/// Whether a fact is common in sessions of all kinds. If a model uses such a fact, that does not
/// show that the fact came from this session.
pub fn is_generic(fact: FactId) -> bool {
    GENERIC.contains(&fact)
}

/// The earlier content that the responses of a session used.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// For each request to the model, the earlier facts that its response uses.
    pub calls: Vec<Vec<Need>>,
    /// The edits that quote earlier lines of the session, each list with the index of the request
    /// in whose response they are.
    pub edits: Vec<(usize, Vec<Edit>)>,
    /// The indices of the requests before which a compaction is forced.
    pub cuts: Vec<usize>,
    /// For each fact that is not generic, the indices of the blocks that contain it, in order.
    places: FactMap<Vec<usize>>,
}

/// A fact that a response uses and that occurred earlier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    /// The fact.
    pub fact: FactId,
    /// The weight of the fact: ln(1 + blocks before the response / blocks with the fact). The rarer
    /// a fact, the larger its weight.
    pub weight: f64,
    /// Whether the fact last occurred more than [`FAR`] requests ago.
    pub is_far: bool,
}

/// An edit of a file, for which the model needed lines that occurred earlier in the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The lines that the edit quotes and that occurred earlier in the session. Each has the index
    /// of the last block before the response that contains the line.
    pub lines: Vec<(LineId, usize)>,
    /// The index of the block that contains the most of these lines.
    pub from: usize,
}

/// A fact from before a compaction that the model wrote after it, before any other text contained
/// the fact again.
#[derive(Clone, Debug, PartialEq)]
pub struct UsedFact {
    /// The fact.
    pub fact: FactId,
    /// The text of the fact.
    pub text: String,
    /// The weight of the fact, as in [`Need`].
    pub weight: f64,
    /// The kind of text in which the fact first occurred.
    pub origin: Origin,
    /// The number of requests between the last occurrence of the fact and the compaction.
    pub age: usize,
    /// The indices of the blocks before the compaction that contain the fact.
    pub places: Vec<usize>,
}

/// The kind of text in which a fact first occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A message of the user.
    User,
    /// A text or reasoning of the model.
    Model,
    /// The arguments of a call.
    Argument,
    /// The result of a call.
    Result,
}

impl Needs {
    /// Finds the earlier content that the responses of a history used.
    pub fn from_history(history: &History) -> Needs {
        let mut needs = Needs { cuts: cuts(history), ..Needs::default() };
        let mut known: FactMap<FactPlaces> = FactMap::default();
        let mut seen = 0;
        for call in 0..history.calls.len() {
            let first = history.calls[call].pieces.0;
            while seen < first {
                needs.take(&history.pieces[seen], seen);
                for fact in history.pieces[seen].facts.iter().filter(|it| !is_generic(**it)) {
                    let known = known.entry(*fact).or_default();
                    known.pieces += 1;
                    known.last = history.call_of(seen);
                }
                seen += 1;
            }
            needs.calls.push(needed(history.response(call), &known, seen, call));
        }
        for (at, piece) in history.pieces.iter().enumerate().skip(seen) {
            needs.take(piece, at);
        }
        needs.edits = edits(history);
        needs
    }

    fn take(&mut self, piece: &MeasuredBlock, at: usize) {
        for fact in piece.facts.iter().filter(|fact| !is_generic(**fact)) {
            self.places.entry(*fact).or_default().push(at);
        }
    }

    /// The facts that occurred before the request with the index `cut`, and that the model used in
    /// its responses to the [`HORIZON`] requests from that one on, before any other text contained
    /// them again.
    pub fn used_after(&self, history: &History, cut: usize) -> Vec<UsedFact> {
        let first = history.calls[cut].pieces.0;
        let end = history.calls.get(cut + HORIZON).map(|call| call.pieces.0);
        let later = &history.pieces[first..end.unwrap_or(history.pieces.len())];
        let mut uses = FactUses::default();
        let mut used = Vec::new();
        for piece in later.iter().filter(|piece| piece.kind != BlockKind::Thinking) {
            if piece.by_model {
                uses.write(&piece.text, |fact, _, text| {
                    used.extend(self.used(history, cut, first, fact, text));
                });
            } else {
                uses.bring_back(piece.facts.iter().copied());
            }
        }
        used
    }

    fn used(
        &self,
        history: &History,
        cut: usize,
        first: usize,
        fact: FactId,
        text: &str,
    ) -> Option<UsedFact> {
        let places = self.places.get(&fact)?;
        let places = &places[..places.partition_point(|&place| place < first)];
        let begins = *places.first()?;
        let ends = *places.last()?;
        Some(UsedFact {
            fact,
            text: text.to_owned(),
            weight: rarity(first, places.len()),
            origin: origin(&history.pieces[begins]),
            age: cut - history.call_of(ends),
            places: places.to_vec(),
        })
    }
}

/// The blocks so far that contain a fact: their number, and the number of responses before the last
/// of them.
#[derive(Default)]
struct FactPlaces {
    pieces: usize,
    last: usize,
}

fn rarity(pieces: usize, with: usize) -> f64 {
    (1.0 + pieces as f64 / with as f64).ln()
}

fn needed(
    response: &[Arc<MeasuredBlock>],
    known: &FactMap<FactPlaces>,
    before: usize,
    call: usize,
) -> Vec<Need> {
    let mut seen = HashSet::new();
    let facts = response.iter().filter(|piece| piece.is_used()).flat_map(|piece| &piece.facts);
    let needs = facts.filter(|fact| seen.insert(**fact)).filter_map(|fact| {
        let FactPlaces { pieces, last } = *known.get(fact)?;
        let is_far = call - last > FAR;
        Some(Need { fact: *fact, weight: rarity(before, pieces), is_far })
    });
    needs.collect()
}

fn origin(piece: &MeasuredBlock) -> Origin {
    match piece.kind {
        BlockKind::Call => Origin::Argument,
        BlockKind::Result => Origin::Result,
        BlockKind::Text | BlockKind::Thinking | BlockKind::Other if piece.by_model => Origin::Model,
        BlockKind::Text | BlockKind::Thinking | BlockKind::Other => Origin::User,
    }
}

/// The edits that quote earlier lines, by the index of the request. An edit is included if at least
/// half of the lines that it quotes (rounded down), and at least one, occurred earlier in the
/// session.
fn edits(history: &History) -> Vec<(usize, Vec<Edit>)> {
    let mut held: HashMap<LineId, usize> = HashMap::new();
    let mut seen = 0;
    let mut edits = Vec::new();
    for (call, place) in history.calls.iter().enumerate() {
        while seen < place.pieces.0 {
            held.extend(history.pieces[seen].lines.iter().map(|line| (*line, seen)));
            seen += 1;
        }
        let quoted = history.response(call).iter().flat_map(|piece| &piece.quoted);
        let found: Vec<Edit> = quoted.filter_map(|lines| edit(lines, &held)).collect();
        if !found.is_empty() {
            edits.push((call, found));
        }
    }
    edits
}

fn edit(quoted: &[LineId], held: &HashMap<LineId, usize>) -> Option<Edit> {
    let lines = quoted.iter().filter_map(|line| Some((*line, *held.get(line)?)));
    let lines: Vec<(LineId, usize)> = lines.collect();
    if lines.len() < (quoted.len() / 2).max(1) {
        return None;
    }
    // If several blocks contain equally many of these lines, the block of the first such line is
    // used.
    let places = lines.iter().rev().map(|(_, place)| *place);
    let from = places.max_by_key(|from| lines.iter().filter(|(_, place)| place == from).count())?;
    Some(Edit { lines, from })
}

/// The indices of the requests before which a compaction is forced. A request is suitable if at
/// least five requests come before it and at least eight after it, and if at least 40,000 tokens
/// come before it (or two fifths of all tokens, if that is less). If more than [`CUTS`] requests
/// are suitable, [`CUTS`] of them are chosen, at even distances.
fn cuts(history: &History) -> Vec<usize> {
    let calls = history.calls.len();
    let least = Tokens(40_000.min(history.tokens().0 * 2 / 5));
    let all = (5..calls.saturating_sub(8))
        .filter(|call| history.tokens_before(history.calls[*call].pieces.0) >= least);
    let all: Vec<usize> = all.collect();
    if all.len() <= CUTS {
        return all;
    }
    let last = (all.len() - 1) as f64;
    let places = (0..CUTS).map(|n| (n as f64 * last / (CUTS - 1) as f64).round_ties_even());
    let mut cuts: Vec<usize> = places.map(|place| all[place as usize]).collect();
    cuts.dedup();
    cuts
}

#[cfg(test)]
#[path = "needs_tests.rs"]
mod tests;
