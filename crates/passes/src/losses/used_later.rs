//! Finds what an agent needed later of the content that a compaction had removed.

use std::collections::{HashMap, HashSet};

use epitome_model::{Block, Call, Output, Role, Tokens, ToolKind};

use super::lost::{CallTarget, Placed, is_same as alike, path, text_of};
use super::{RepeatReason, RepeatedCall, UsedFact};
use crate::View;
use crate::facts::{FactId, FactMap, FactUses, each_fact};

/// The part of a session after a compaction.
pub(super) struct LaterUse<'v, 'a> {
    view: &'v View<'a>,
    items: &'v [usize],
    /// The results with their positions, by the id of their call.
    results: HashMap<&'a str, (usize, usize, &'a Output)>,
}

/// The changes that the agent made after the compaction.
#[derive(Default)]
struct Changed {
    files: HashSet<String>,
    /// The texts of patches: one patch may change several files.
    patches: String,
}

impl<'v, 'a> LaterUse<'v, 'a> {
    pub fn new(view: &'v View<'a>, items: &'v [usize]) -> LaterUse<'v, 'a> {
        let mut results = HashMap::new();
        for &item in items {
            let Some(entry) = view.transcript.items[item].entry() else { continue };
            for (block, said) in entry.blocks.iter().enumerate() {
                if let Block::Output(output) = said {
                    results.entry(&*output.call).or_insert((item, block, output));
                }
            }
        }
        LaterUse { view, items, results }
    }

    /// Returns the facts that the agent used although they had been removed. Records in each piece
    /// how many of the piece's facts were used, and which call was the first to repeat the piece's
    /// call.
    pub fn needs(
        &self,
        pieces: &mut [Placed],
        gone: &FactMap<(usize, usize)>,
        targets: &HashMap<CallTarget, Vec<usize>>,
        before: &View<'_>,
    ) -> Vec<UsedFact> {
        let places: HashMap<(usize, usize), usize> =
            pieces.iter().enumerate().map(|(idx, (_, at))| (*at, idx)).collect();
        let mut changed = Changed::default();
        let mut uses = FactUses::default();
        let mut used = Vec::new();
        for &item in self.items {
            let Some(entry) = self.view.transcript.items[item].entry() else { continue };
            if entry.repeated {
                continue;
            }
            for (block, said) in entry.blocks.iter().enumerate() {
                let text = text_of(self.view, said);
                if entry.role == Role::Assistant {
                    uses.write(&text, |id, kind, fact| {
                        let Some(at) = gone.get(&id) else { return };
                        if let Some(&idx) = places.get(at) {
                            pieces[idx].0.used += 1;
                        }
                        let from = before.transcript.items[at.0].record().line;
                        let line = entry.record.line;
                        used.push(UsedFact { fact: fact.to_owned(), kind, line, from });
                    });
                } else {
                    each_fact(&text, |_, fact| uses.bring_back([FactId::from_text(fact)]));
                }
                if let Block::Call(call) = said {
                    self.call(call, (item, block), before, pieces, targets, &changed);
                    changed.note(self.view, call, &text);
                }
            }
        }
        used
    }

    /// Records a call that repeats the call of a removed result, unless an earlier call has done
    /// so.
    fn call(
        &self,
        call: &Call,
        at: (usize, usize),
        before: &View<'_>,
        pieces: &mut [Placed],
        targets: &HashMap<CallTarget, Vec<usize>>,
        changed: &Changed,
    ) {
        let Some(found) = CallTarget::from_call(self.view, call).and_then(|it| targets.get(&it))
        else {
            return;
        };
        let result = self.results.get(&*call.id);
        let text = result.map(|(_, _, output)| output.text(self.view.source));
        let may_be = found.iter().copied().filter(|&idx| {
            call.part.is_none() || part_of(before, block_of(before, &pieces[idx])) == call.part
        });
        let best = may_be.max_by_key(|&idx| {
            let removed = block_of(before, &pieces[idx]);
            let is_part = part_of(before, removed) == call.part;
            (is_same(before, removed, text.as_deref()), is_part, pieces[idx].0.tokens)
        });
        let Some(idx) = best else { return };
        let is_same = is_same(before, block_of(before, &pieces[idx]), text.as_deref());
        let (piece, _) = &mut pieces[idx];
        if piece.again.is_some() {
            return;
        }
        let because = if is_same {
            RepeatReason::Same
        } else if changed.is_why(self.view, call) {
            RepeatReason::Changed
        } else {
            RepeatReason::Gone
        };
        piece.again = Some(RepeatedCall {
            line: self.view.transcript.items[at.0].record().line,
            call_tokens: self.view.tokens(at.0, at.1),
            result_tokens: result
                .map_or(Tokens(0), |(item, block, _)| self.view.tokens(*item, *block)),
            because,
        });
    }
}

/// The block of a removed piece, in the context before the compaction; `None` if the item of the
/// piece is not an entry.
fn block_of<'t>(before: &View<'t>, piece: &Placed) -> Option<&'t Block> {
    let (item, block) = piece.1;
    Some(&before.transcript.items[item].entry()?.blocks[block])
}

/// The part of a file that the call of a result read; `None` for the whole file.
fn part_of(before: &View<'_>, block: Option<&Block>) -> Option<Box<str>> {
    match block? {
        Block::Output(output) => before.call_of(output)?.part.clone(),
        _ => None,
    }
}

/// Whether most of `text`, the text of a result, consists of lines of a removed block (about nine
/// tenths).
fn is_same(before: &View<'_>, removed: Option<&Block>, text: Option<&str>) -> bool {
    removed.zip(text).is_some_and(|(removed, text)| alike(text, &text_of(before, removed)))
}

impl Changed {
    fn note(&mut self, view: &View<'_>, call: &Call, arguments: &str) {
        if !call.kind.changes_file() {
            return;
        }
        if let Some(target) = &call.target {
            self.files.insert(path(view, &view.text(target)).to_owned());
        }
        if call.kind == ToolKind::Patch {
            self.patches.push_str(arguments);
        }
    }

    /// Whether these changes may explain that the result of this call is different. Always true for
    /// a command, which is assumed to be run for the current state.
    fn is_why(&self, view: &View<'_>, call: &Call) -> bool {
        match (call.kind, &call.target) {
            (ToolKind::Shell, _) => true,
            (ToolKind::Read, Some(target)) => {
                let target = view.text(target);
                let path = path(view, &target);
                self.files.contains(path) || self.patches.contains(path)
            }
            _ => !self.files.is_empty() || !self.patches.is_empty(),
        }
    }
}
