//! An index of the texts of a log (the growing transcript of a live context), so that a later
//! digest reads only new texts.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use epitome_model::{Block, Counter, Entry, Output, Source, Tokens, parallel};

use crate::View;
use crate::facts::{FactId, FactMap};
use crate::numbers::response_numbers;

use super::DigestRule;
use super::pieces::{
    Body, Fact, Piece, PieceFacts, PieceOrigin, PieceOrigins, Pieces, UnnumberedPiece,
};
use super::value::Occurrences;

/// The lines and facts of the texts of one log, and how often each fact occurred.
///
/// A digest made with an index ([`DigestRule::digest_with`]) is the same as one made without. An
/// index belongs to one log, one rule and one counter. Its keys are item and block numbers, so the
/// log must only grow.
#[derive(Clone, Default)]
pub struct FactIndex {
    numbers: FactMap<u32>,
    /// The facts, in the order of their numbers in the index.
    pub(super) facts: Vec<FactId>,
    pieces: HashMap<(usize, usize), Arc<Body>>,
    pub(super) occurrences: Occurrences,
}

/// A block of a log that no later entry can change.
#[derive(Clone, Copy)]
pub struct Complete<'a> {
    /// The indices of the item and the block.
    pub at: (usize, usize),
    /// The entry of the block.
    pub entry: &'a Entry,
    /// For a call, its number among the calls of the log, from 1; otherwise unused.
    pub number: u64,
    /// For a call, its result.
    pub result: Option<&'a Output>,
    /// The tokens of the block.
    pub tokens: Tokens,
}

impl FactIndex {
    /// Indexes a complete block, so that the next digest need not read it.
    pub fn learn(
        &mut self,
        rule: &DigestRule,
        source: &dyn Source,
        counter: &dyn Counter,
        complete: Complete<'_>,
    ) {
        let Complete { at, entry, number, result, tokens } = complete;
        let block: &Block = &entry.blocks[at.1];
        let Some(origin) = PieceOrigin::from_block(entry, block, number, result) else { return };
        let found = origin.read(source, counter, || tokens, rule);
        let body = self.take(at, found);
        body.count_lines(counter);
    }

    /// The pieces of the items `originals` and `kept`. Pieces that are in the index are not read
    /// again.
    pub(super) fn pieces(
        &mut self,
        view: &View<'_>,
        originals: &[usize],
        kept: &[usize],
        rule: &DigestRule,
    ) -> Pieces {
        let PieceOrigins { all, old, responses } = PieceOrigins::from_items(view, originals, kept);
        let new = all.iter().filter(|(at, origin, _)| self.piece(*at, origin).is_none());
        let new: Vec<&(_, PieceOrigin<'_>, u32)> = new.collect();
        let found = parallel::map(new, |((item, block), origin, _)| {
            let found = origin.read(view.source, view.counter, || view.tokens(*item, *block), rule);
            ((*item, *block), found)
        });
        for (at, found) in found {
            self.take(at, found);
        }
        let numbers = response_numbers(view.transcript);
        let all = all.iter().map(|(at, origin, response)| {
            let body = self.piece(*at, origin).cloned().expect("it was taken");
            let number = numbers.get(&at.0).copied().unwrap_or_default();
            Piece { body, response: *response, number }
        });
        Pieces::new(all.collect(), old, responses)
    }

    /// The piece of the position `at`, if the index has it; `None` if that piece was made of
    /// anything else than `origin`.
    fn piece(&self, at: (usize, usize), origin: &PieceOrigin<'_>) -> Option<&Arc<Body>> {
        self.pieces.get(&at).filter(|body| origin.is_of(body))
    }

    /// Numbers the facts of a new piece, and adds the piece to the index.
    fn take(&mut self, at: (usize, usize), found: UnnumberedPiece) -> Arc<Body> {
        let UnnumberedPiece { mut body, of_header, of_lines } = found;
        if let Some(full) = &mut body.full {
            full.facts = self.numbered(of_header);
        }
        for (line, facts) in body.lines.iter_mut().zip(of_lines) {
            line.facts = self.numbered(facts);
        }
        let body = Arc::new(body);
        self.pieces.insert(at, Arc::clone(&body));
        body
    }

    fn numbered(&mut self, facts: PieceFacts) -> Box<[Fact]> {
        let facts = facts.into_iter().map(|(id, kind)| {
            let next = self.facts.len() as u32;
            let number = *self.numbers.entry(id).or_insert(next);
            if number == next {
                self.facts.push(id);
            }
            Fact { number, kind }
        });
        facts.collect()
    }

    /// The number of a fact; `None` if the index does not have the fact.
    pub(super) fn number(&self, fact: FactId) -> Option<u32> {
        self.numbers.get(&fact).copied()
    }
}

impl fmt::Debug for FactIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pieces = self.pieces.len();
        let facts = self.facts.len();
        f.debug_struct("FactIndex").field("pieces", &pieces).field("facts", &facts).finish()
    }
}
