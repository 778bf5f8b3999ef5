//! Measures a compaction: how many of the facts that the model used after it are in the compacted
//! context.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use epitome_model::Tokens;
use epitome_passes::facts::{FactId, IdHasher};
use memchr::memmem;

use crate::block::MeasuredBlock;
use crate::history::History;
use crate::lines::{LineId, plain_line};
use crate::needs::{Edit, HORIZON, Needs, UsedFact};

/// The references with which the model can recall results, by the ids of their calls.
pub type References = HashMap<Box<str>, String>;

/// The lines with a fact are taken from at most this many blocks: the newest ones that contain the
/// fact.
const LOOKED_AT: usize = 4;

type Set<T> = HashSet<T, BuildHasherDefault<IdHasher>>;

/// A point in a session at which a compaction is forced.
#[derive(Clone, Debug)]
pub struct ForcedCompaction<'h> {
    history: &'h History,
    needs: &'h Needs,
    call: usize,
    first: usize,
    /// The facts that the model used after the compaction, each with lines from before the
    /// compaction that contain it.
    used: Vec<(UsedFact, Vec<&'h str>)>,
}

/// The measured quality of one compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CutFigures {
    /// The tokens of the whole history before the compaction.
    pub before: Tokens,
    /// Tokens of the context after the compaction.
    pub after: Tokens,
    /// The number of facts from before the compaction that the model used in its responses to the
    /// next [`HORIZON`] requests.
    pub used: usize,
    /// Of the used facts, the share by weight that the compacted context contains (0 to 1).
    pub recall: f64,
    /// Of the used facts, the share by weight for which the compacted context contains the fact and
    /// a whole line that had the fact before the compaction (0 to 1).
    pub in_line: f64,
    /// Of the used facts, the share by weight that the compacted context contains, or that can be
    /// recalled by a reference or a file name in it (0 to 1).
    pub recoverable: f64,
    /// The number of edits, in the first [`HORIZON`] + 1 responses after the compaction, that quote
    /// lines from before it.
    pub edits: u64,
    /// How many of `edits` quote a line from before the compaction that the compacted context does
    /// not contain.
    pub rereads: u64,
    /// Tokens of the blocks that would have to be read again for the edits in `rereads`.
    pub reread: Tokens,
}

impl<'h> ForcedCompaction<'h> {
    /// A compaction that is forced before the request with the index `call` in [`History::calls`].
    pub fn before(call: usize, history: &'h History, needs: &'h Needs) -> ForcedCompaction<'h> {
        let first = history.calls[call].pieces.0;
        let used = needs.used_after(history, call).into_iter().map(|used| {
            let lines = lines(history, &used);
            (used, lines)
        });
        ForcedCompaction { history, needs, call, first, used: used.collect() }
    }

    /// The index of the request before which the compaction takes place.
    pub fn call(&self) -> usize {
        self.call
    }

    /// Measures a compacted context. `None` if the model used no earlier fact in the responses that
    /// are examined.
    pub fn measure(
        &self,
        view: &[Arc<MeasuredBlock>],
        references: &References,
    ) -> Option<CutFigures> {
        let held = HeldContent::from_view(view);
        let mut figures = CutFigures {
            before: self.history.tokens_before(self.first),
            after: view.iter().map(|piece| piece.tokens).sum(),
            used: self.used.len(),
            ..CutFigures::default()
        };
        let all: f64 = self.used.iter().map(|(used, _)| used.weight).sum();
        for (used, lines) in &self.used {
            if !held.facts.contains(&used.fact) {
                if self.is_recoverable(used, &held, references) {
                    figures.recoverable += used.weight;
                }
                continue;
            }
            figures.recall += used.weight;
            figures.recoverable += used.weight;
            if lines.iter().any(|line| held.has_line(line)) {
                figures.in_line += used.weight;
            }
        }
        for share in [&mut figures.recall, &mut figures.in_line, &mut figures.recoverable] {
            *share /= all;
        }
        let within = self.call..=self.call + HORIZON;
        let edits = self.needs.edits.iter().filter(|(call, _)| within.contains(call));
        for edit in edits.flat_map(|(_, edits)| edits) {
            self.reread(edit, &held, &mut figures);
        }
        (all > 0.0).then_some(figures)
    }

    fn reread(&self, edit: &Edit, held: &HeldContent<'_>, figures: &mut CutFigures) {
        let mut old = edit.lines.iter().filter(|(_, place)| *place < self.first).peekable();
        if edit.from >= self.first || old.peek().is_none() {
            return;
        }
        figures.edits += 1;
        if !old.all(|(line, _)| held.lines.contains(line)) {
            figures.rereads += 1;
            figures.reread += self.history.pieces[edit.from].tokens;
        }
    }

    /// Whether a fact that the context does not contain can be recalled: the context contains a
    /// reference to an earlier block with the fact, or the name of the file of such a block.
    fn is_recoverable(
        &self,
        used: &UsedFact,
        held: &HeldContent<'_>,
        references: &References,
    ) -> bool {
        used.places.iter().map(|&place| &self.history.pieces[place]).any(|piece| {
            let reference = piece.call.as_ref().and_then(|call| references.get(call));
            let is_named = reference.is_some_and(|reference| held.says(reference));
            is_named || piece.file.as_deref().is_some_and(|file| held.names(file))
        })
    }
}

/// The lines that contain a fact, from the newest blocks with the fact.
fn lines<'h>(history: &'h History, used: &UsedFact) -> Vec<&'h str> {
    let finder = memmem::Finder::new(&used.text);
    let places = used.places.iter().rev().take(LOOKED_AT);
    let mut lines = Vec::new();
    for text in places.map(|&place| &*history.pieces[place].text) {
        let mut end = 0;
        for at in finder.find_iter(text.as_bytes()).collect::<Vec<_>>() {
            // Of several occurrences in a line, the first is enough.
            if at >= end {
                let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
                end = text[at..].find('\n').map_or(text.len(), |len| at + len);
                lines.push(&text[start..end]);
            }
        }
    }
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// What a context contains: its blocks, and the facts and lines in them.
struct HeldContent<'v> {
    view: &'v [Arc<MeasuredBlock>],
    facts: Set<FactId>,
    lines: Set<LineId>,
}

impl<'v> HeldContent<'v> {
    fn from_view(view: &'v [Arc<MeasuredBlock>]) -> HeldContent<'v> {
        let facts = view.iter().flat_map(|piece| piece.facts.iter().copied()).collect();
        let lines = view.iter().flat_map(|piece| piece.lines.iter().copied()).collect();
        HeldContent { view, facts, lines }
    }

    /// Whether the context contains `line`, as a line or as a part of a line. Line numbers and
    /// indentation are ignored. Always true for a line of fewer than eight characters.
    fn has_line(&self, line: &str) -> bool {
        let Some(id) = LineId::from_line(line) else { return true };
        self.lines.contains(&id) || self.says(plain_line(line))
    }

    /// Whether any block of the context contains a text.
    fn says(&self, text: &str) -> bool {
        let finder = memmem::Finder::new(text);
        self.view.iter().any(|piece| finder.find(piece.text.as_bytes()).is_some())
    }

    /// Whether the context names a file: by its name alone, or with the folder before it.
    fn names(&self, file: &str) -> bool {
        let mut names = file.rsplit('/');
        let last = names.next().unwrap_or(file);
        let two = names.next().filter(|folder| !folder.is_empty());
        let two = two.map(|folder| FactId::from_text(&format!("{folder}/{last}")));
        self.facts.contains(&FactId::from_text(last))
            || two.is_some_and(|it| self.facts.contains(&it))
    }
}

#[cfg(test)]
#[path = "forced_tests.rs"]
mod tests;
