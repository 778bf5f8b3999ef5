//! A part of a transcript as a separate transcript, so that a long context is checked in little
//! time.

use std::collections::HashSet;
use std::ops::Range;

use epitome_model::{Block, Entry, Output, Transcript};

/// A transcript that consists of some items of another transcript.
pub struct Excerpt {
    /// The indices of the items in the whole transcript, sorted.
    items: Vec<usize>,
    transcript: Transcript,
}

impl Excerpt {
    /// An excerpt with `items`. Those that are in `context` are sent, in the order of `context`.
    pub fn new(whole: &Transcript, mut items: Vec<usize>, context: &[usize]) -> Excerpt {
        items.sort_unstable();
        items.dedup();
        let mut transcript = Transcript::default();
        transcript.head.cwd = whole.head.cwd.clone();
        transcript.items = items.iter().map(|&item| whole.items[item].clone()).collect();
        let mut excerpt = Excerpt { items, transcript };
        excerpt.transcript.context = excerpt.places(context);
        excerpt
    }

    /// The excerpt, as a transcript.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The indices in the excerpt of these items of the whole transcript. Items that are not in the
    /// excerpt are left out.
    pub fn places(&self, items: &[usize]) -> Vec<usize> {
        items.iter().filter_map(|&item| self.place(item)).collect()
    }

    /// The index in the excerpt of an item of the whole transcript; `None` if it is not in the
    /// excerpt.
    pub fn place(&self, item: usize) -> Option<usize> {
        self.items.binary_search(&item).ok()
    }

    /// The item of the whole transcript at an index of the excerpt.
    pub fn item(&self, place: usize) -> usize {
        self.items[place]
    }
}

/// The end of the context, beginning with the first of `items` in it. The whole context if one of
/// `items` is not in the context.
pub fn from_first<'t>(transcript: &'t Transcript, items: &HashSet<usize>) -> &'t [usize] {
    let context = &transcript.context;
    let mut left = items.len();
    let mut from = context.len();
    while left > 0 && from > 0 {
        from -= 1;
        left -= usize::from(items.contains(&context[from]));
    }
    &context[from..]
}

/// The items that contain the calls of the results in the items `results`. If several calls have
/// the same id, the newest counts.
pub fn calls_of(transcript: &Transcript, results: &[usize]) -> Vec<usize> {
    let mut wanted: HashSet<&str> = results
        .iter()
        .filter_map(|&item| transcript.items[item].entry())
        .flat_map(outputs)
        .map(|output| &*output.call)
        .collect();
    let mut found = Vec::new();
    for (item, entry) in transcript.entries().rev() {
        if wanted.is_empty() {
            break;
        }
        let made = entry.blocks.iter().filter(|block| match block {
            Block::Call(call) => wanted.remove(&*call.id),
            _ => false,
        });
        if made.count() > 0 {
            found.push(item);
        }
    }
    found
}

fn outputs(entry: &Entry) -> impl Iterator<Item = &Output> {
    entry.blocks.iter().filter_map(|block| match block {
        Block::Output(output) => Some(output),
        _ => None,
    })
}

/// The ranges in which two contexts differ: the first as indices into `before`, the second into
/// `after`. They include the items in `edited`. Outside of the ranges both contexts have the same
/// items.
pub fn difference(
    before: &[usize],
    after: &[usize],
    edited: &HashSet<usize>,
) -> (Range<usize>, Range<usize>) {
    let mut start = before.iter().zip(after).take_while(|(old, new)| old == new).count();
    let most = before.len().min(after.len()) - start;
    let pairs = before.iter().rev().zip(after.iter().rev());
    let mut same = pairs.take(most).take_while(|(old, new)| old == new).count();
    let places = before.iter().enumerate().rev().filter(|(_, item)| edited.contains(item));
    for (at, _) in places.take(edited.len()) {
        start = start.min(at);
        same = same.min(before.len() - at - 1);
    }
    (start..before.len() - same, start..after.len() - same)
}
