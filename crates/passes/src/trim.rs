//! Removes messages from the middle of a context that has too many; the first and the last stay.

use std::collections::{HashMap, HashSet};

use epitome_model::{Block, Entry, Role, Source, Stub, Transcript, units};
use serde::{Deserialize, Serialize};

/// The maximum number of messages in a context, and which messages stay. As in APIs, consecutive
/// entries of the model count as one message, and so do consecutive entries that are not the
/// model's.
///
/// User messages stay in place; they become one message if nothing is left between them. Summaries
/// stay too, because they contain user messages. Responses are removed whole, with all their
/// results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table with `over`, `keep` and `head`")]
pub struct TrimRule {
    /// The number of messages above which some are removed.
    pub over: u64,
    /// The number of messages that are left, including the message that reports the cut.
    pub keep: u64,
    /// How many of the messages that are left are at the beginning.
    pub head: u64,
}

impl TrimRule {
    /// The items to remove, in the order in which they are sent. Whether an item sets rules makes
    /// no difference here. The list is empty if there are not too many messages, or if nothing but
    /// the message of an earlier cut would be removed.
    pub fn items_to_remove(&self, transcript: &Transcript, source: &dyn Source) -> Vec<usize> {
        let prompt: HashSet<usize> = transcript.head.prompt.iter().copied().collect();
        let sent: Vec<(usize, &Entry)> =
            transcript.context().filter(|(item, _)| !prompt.contains(item)).collect();
        let begins = messages(sent.iter().map(|(_, entry)| *entry));
        let n = begins.len() as u64;
        if n <= self.over {
            return Vec::new();
        }
        let tail = self.keep.saturating_sub(self.head + 1).max(1);
        let head = self.head as usize;
        let tail = n.saturating_sub(tail) as usize;
        let (Some(&from), Some(&to)) = (begins.get(head), begins.get(tail)) else {
            return Vec::new();
        };
        // If the message that reports an earlier cut is before this position, the new cut begins at
        // that message and replaces it.
        let before = sent[..from].iter().position(|(_, entry)| is_cut(entry, source));
        let (from, to) = between_units(transcript, &sent, before.unwrap_or(from), to);
        let gone: Vec<(usize, &Entry)> = sent
            .into_iter()
            .take(to)
            .skip(from)
            .filter(|(_, entry)| match entry.role {
                Role::Assistant | Role::Tool => true,
                Role::System => !entry.blocks.iter().any(|it| matches!(it, Block::Summary(_))),
                Role::User => false,
            })
            .collect();
        if gone.iter().all(|(_, entry)| is_cut(entry, source)) {
            return Vec::new();
        }
        gone.into_iter().map(|(item, _)| item).collect()
    }
}

/// The indices of the entries at which messages begin. Consecutive entries of the model are one
/// message, and so are consecutive entries that are not of the model.
pub fn messages<'e>(entries: impl Iterator<Item = &'e Entry>) -> Vec<usize> {
    let mut begins = Vec::new();
    let mut last = None;
    for (at, entry) in entries.enumerate() {
        let speaks = entry.role == Role::Assistant;
        if last.replace(speaks) != Some(speaks) {
            begins.push(at);
        }
    }
    begins
}

/// Whether an entry is the message that reports a cut.
pub fn is_cut(entry: &Entry, source: &dyn Source) -> bool {
    match (entry.role, entry.blocks.as_slice()) {
        (Role::System, [Block::Text(text)]) => Stub::parse(&text.read(source)).is_some(),
        _ => false,
    }
}

/// The range `from..to`, made smaller if one of its ends would separate a response from its
/// results.
fn between_units(
    transcript: &Transcript,
    sent: &[(usize, &Entry)],
    mut from: usize,
    mut to: usize,
) -> (usize, usize) {
    let places: HashMap<usize, usize> =
        sent.iter().enumerate().map(|(at, (item, _))| (*item, at)).collect();
    let ends: Vec<(usize, usize)> = units(transcript)
        .iter()
        .filter_map(|unit| {
            let at = unit.items.iter().filter_map(|item| places.get(item).copied());
            at.clone().min().zip(at.max())
        })
        .collect();
    loop {
        let before = (from, to);
        for &(first, last) in &ends {
            if first < from && last >= from {
                from = last + 1;
            }
            if first < to && last >= to {
                to = first;
            }
        }
        if (from, to) == before || from >= to {
            return (from, to.max(from));
        }
    }
}

#[cfg(test)]
#[path = "trim_tests.rs"]
mod tests;
