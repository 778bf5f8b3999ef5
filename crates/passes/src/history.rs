//! Finds the original entries that a digest or a summary replaced.

use std::collections::{BTreeSet, HashMap};

use epitome_model::{Block, Entry, Source, Transcript};

use crate::digest::is_digest;

/// The original entries for `old`, the items at the beginning of a context, in the order of the
/// session: for a digest the entries that it was made of, for a summary the summary and the entries
/// that it replaced, and every other entry itself.
///
/// The history follows the parents of entries. In three cases it continues with the previous entry
/// of the file instead: if no entry of the session has a parent, if the parent is not an entry (no
/// model sees it), and at a summary without a parent.
pub fn history(transcript: &Transcript, source: &dyn Source, old: &[usize]) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    if let Some(&first) = old.first() {
        Parents::from_transcript(transcript).add_history(first, &mut seen);
    }
    seen.extend(old);
    seen.into_iter().filter(|&item| is_original(transcript, source, item)).collect()
}

/// The original entries of the [`history`] of each of `items` alone, together, in the order of the
/// session. The time does not grow with the number of items: what several histories have in common
/// is visited once.
pub fn histories(transcript: &Transcript, source: &dyn Source, items: &[usize]) -> Vec<usize> {
    if items.is_empty() {
        return Vec::new();
    }
    let parents = Parents::from_transcript(transcript);
    let mut seen = BTreeSet::new();
    for &item in items {
        parents.add_history(item, &mut seen);
    }
    seen.into_iter().filter(|&item| is_original(transcript, source, item)).collect()
}

/// Whether an item is an original entry: not a part of what the model is sent before the
/// conversation, not a copy of earlier entries, and not a digest. False for a record that no model
/// sees.
fn is_original(transcript: &Transcript, source: &dyn Source, item: usize) -> bool {
    if transcript.head.prompt.contains(&item) {
        return false;
    }
    let Some(entry) = transcript.items[item].entry() else { return false };
    !entry.repeated && !entry.blocks.iter().any(|block| is_digest(block, source))
}

/// The entries of a session by their ids: they show which entry precedes another.
struct Parents<'t> {
    transcript: &'t Transcript,
    by_id: HashMap<&'t str, usize>,
    /// Whether any entry has a parent.
    is_tree: bool,
}

impl<'t> Parents<'t> {
    fn from_transcript(transcript: &'t Transcript) -> Parents<'t> {
        let ids =
            transcript.entries().filter_map(|(item, entry)| Some((entry.id.as_deref()?, item)));
        Parents {
            transcript,
            by_id: ids.collect(),
            is_tree: transcript.entries().any(|(_, entry)| entry.parent.is_some()),
        }
    }

    /// Adds an item and the items that precede it in the history to `seen`. Ends at an item that is
    /// in `seen` already: a history may go in a circle, because the parent of a summary may be an
    /// entry that is kept after the summary.
    fn add_history(&self, item: usize, seen: &mut BTreeSet<usize>) {
        let mut next = Some(item);
        while let Some(item) = next.filter(|item| seen.insert(*item)) {
            next = self.transcript.items[item].entry().and_then(|it| self.before(item, it));
        }
    }

    /// The item of the entry that precedes `entry` in the history. `None` if `entry` is the first.
    fn before(&self, item: usize, entry: &Entry) -> Option<usize> {
        let is_summary = entry.blocks.iter().any(|block| matches!(block, Block::Summary(_)));
        match entry.parent.as_deref() {
            None if self.is_tree && !is_summary => None,
            None => self.earlier(item),
            // The parent may be a record that is not an entry, and that no model sees.
            Some(parent) => self.by_id.get(parent).copied().or_else(|| self.earlier(item)),
        }
    }

    /// The last item before `item` that is an entry and not a copy of earlier entries; `None` if
    /// there is no such item.
    fn earlier(&self, item: usize) -> Option<usize> {
        let items = &self.transcript.items[..item];
        items.iter().rposition(|item| item.entry().is_some_and(|entry| !entry.repeated))
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
