//! Finds the original entries that a digest or a summary replaced.

use std::collections::{BTreeSet, HashMap};

use epitome_model::{Block, Entry, Source, Transcript};

use crate::digest::is_digest;

/// The original items of the history up to the end of `old`, in the order of the session. `old` are
/// the items at the beginning of a context. Digests are replaced by the entries they were made of;
/// summaries stay, in addition to the entries they replaced.
///
/// The history follows the parents of entries. Where that is not possible, it continues with the
/// entry before in the file: if the session has no parents, if the parent is a record that no model
/// sees, and before a summary whose parent is unknown.
pub fn history(transcript: &Transcript, source: &dyn Source, old: &[usize]) -> Vec<usize> {
    let is_summary = |entry: &Entry| entry.blocks.iter().any(|it| matches!(it, Block::Summary(_)));
    let is_digest = |entry: &Entry| entry.blocks.iter().any(|it| is_digest(it, source));
    let is_tree = transcript.entries().any(|(_, entry)| entry.parent.is_some());
    let by_id: HashMap<&str, usize> = transcript
        .entries()
        .filter_map(|(item, entry)| Some((entry.id.as_deref()?, item)))
        .collect();
    let earlier = |item: usize| {
        let is_said = |entry: &Entry| !entry.repeated;
        transcript.items[..item].iter().rposition(|it| it.entry().is_some_and(is_said))
    };
    let before = |item: usize, entry: &Entry| {
        match entry.parent.as_deref() {
            None if is_tree && !is_summary(entry) => None,
            None => earlier(item),
            // The parent may be a record that is no entry: no model sees it.
            Some(parent) => by_id.get(parent).copied().or_else(|| earlier(item)),
        }
    };
    // The parent of a summary may be an entry that is kept after it.
    let mut passed = BTreeSet::new();
    let mut next = old.first().copied();
    while let Some(item) = next.filter(|item| passed.insert(*item)) {
        next = transcript.items[item].entry().and_then(|entry| before(item, entry));
    }
    let seen: BTreeSet<usize> = old.iter().copied().chain(passed).collect();
    let is_said = |item: &usize| {
        let entry = transcript.items[*item].entry();
        let is_prompt = transcript.head.prompt.contains(item);
        entry.is_some_and(|entry| !is_digest(entry) && !entry.repeated && !is_prompt)
    };
    seen.into_iter().filter(is_said).collect()
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
