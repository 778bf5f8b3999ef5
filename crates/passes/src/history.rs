//! Finds the original entries that a digest or a summary replaced.

use std::collections::HashMap;

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
    let mut history = Histories::new(transcript);
    if let Some(&first) = old.first() {
        history.add_history(first);
    }
    old.iter().for_each(|&item| history.seen[item] = true);
    history.originals(source)
}

/// The original entries of the [`history`] of each of `items` alone, together, in the order of the
/// session. The time does not grow with the number of items: what several histories have in common
/// is visited once.
pub fn histories(transcript: &Transcript, source: &dyn Source, items: &[usize]) -> Vec<usize> {
    if items.is_empty() {
        return Vec::new();
    }
    let mut histories = Histories::new(transcript);
    for &item in items {
        histories.add_history(item);
    }
    histories.originals(source)
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

/// Collects the [`history`] of each of several items: the item, and all that precede it in the
/// conversation.
struct Histories<'t> {
    transcript: &'t Transcript,
    /// Whether any entry has a parent.
    is_tree: bool,
    /// The entries by their ids; empty if no entry has a parent.
    by_id: HashMap<&'t str, usize>,
    /// For each item, whether it is in one of the histories.
    seen: Vec<bool>,
}

impl<'t> Histories<'t> {
    fn new(transcript: &'t Transcript) -> Histories<'t> {
        let is_tree = transcript.entries().any(|(_, entry)| entry.parent.is_some());
        let mut by_id = HashMap::new();
        if is_tree {
            let entries = transcript.entries();
            by_id.extend(entries.filter_map(|(item, entry)| Some((entry.id.as_deref()?, item))));
        }
        Histories { transcript, is_tree, by_id, seen: vec![false; transcript.items.len()] }
    }

    /// Adds an item and the items that precede it in the history. Ends at an item that was added
    /// before: the items before it were added, too, or the history goes in a circle because the
    /// parent of a summary is an entry that is kept after the summary.
    fn add_history(&mut self, item: usize) {
        let mut next = Some(item);
        while let Some(item) = next.filter(|item| !self.seen[*item]) {
            self.seen[item] = true;
            next = self.transcript.items[item].entry().and_then(|it| self.before(item, it));
        }
    }

    /// The original entries of the histories, in the order of the session.
    fn originals(&self, source: &dyn Source) -> Vec<usize> {
        let seen = self.seen.iter().enumerate().filter(|(_, is_seen)| **is_seen);
        seen.map(|(item, _)| item)
            .filter(|&item| is_original(self.transcript, source, item))
            .collect()
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
