//! Messages are cut out of the middle when there are too many: the first and the last stay.

use std::collections::{HashMap, HashSet};

use epitome_model::{Block, Entry, Role, Source, Stub, Transcript, units};
use serde::{Deserialize, Serialize};

/// How many messages a context may have, and which of them stay. Neighbours of one side are one
/// message, as wires have it.
///
/// Words of the user stay where they stand, and are one message once nothing stands between them.
/// So do summaries, which hold such words. What goes is whole replies with all their results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrimRule {
    /// More messages than this are too many.
    pub over: u64,
    /// So many are left, with the one that says what went.
    pub keep: u64,
    /// Of these, the first of the context.
    pub head: u64,
}

impl TrimRule {
    /// The items that go, in the order in which they are sent: nothing if the messages are few
    /// enough, or nothing but what an earlier cut has left would go.
    pub fn middle(&self, transcript: &Transcript, source: &dyn Source) -> Vec<usize> {
        let prompt: HashSet<usize> = transcript.head.prompt.iter().copied().collect();
        let sent: Vec<(usize, &Entry)> =
            transcript.context().filter(|(item, _)| !prompt.contains(item)).collect();
        let begins = messages(sent.iter().map(|(_, entry)| *entry));
        let n = begins.len() as u64;
        if n <= self.over {
            return Vec::new();
        }
        let tail = self.keep.saturating_sub(self.head + 1).max(1);
        let (head, tail) = (self.head as usize, n.saturating_sub(tail) as usize);
        let (Some(&from), Some(&to)) = (begins.get(head), begins.get(tail)) else {
            return Vec::new();
        };
        // What an earlier cut left is among the user's words behind the first messages.
        let says_what_went = |entry: &Entry| is_cut(entry, source);
        let before = sent[..from].iter().position(|(_, entry)| says_what_went(entry));
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
        if gone.iter().all(|(_, entry)| says_what_went(entry)) {
            return Vec::new();
        }
        gone.into_iter().map(|(item, _)| item).collect()
    }
}

/// Where each message begins among these entries.
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

/// Whether an entry says what an earlier cut took.
pub fn is_cut(entry: &Entry, source: &dyn Source) -> bool {
    match (entry.role, entry.blocks.as_slice()) {
        (Role::System, [Block::Text(text)]) => Stub::parse(&text.read(source)).is_some(),
        _ => false,
    }
}

/// The same range, smaller where it would part a reply from its results.
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
