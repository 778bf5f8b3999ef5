//! Finds where the part of a context ends that a summary replaces, and the kept part begins.

use epitome_model::{Block, Role, Source, Transcript};

/// A position at which an unfinished turn is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CutPlace {
    /// Divide at this index of the context.
    At(usize),
    /// At no index in the wanted range does the kept part begin with reasoning. This is the last
    /// index before that range at which it does.
    Before(usize),
}

/// Finds an index at which to divide an unfinished turn so that the kept part begins with
/// reasoning: otherwise Anthropic refuses it in thinking mode. Returns the nearest such index
/// before `end` that is not before `least`, or else the nearest after `end` up to `most`; `end` if
/// no response begins with reasoning.
pub(super) fn with_reasoning(
    transcript: &Transcript,
    source: &dyn Source,
    least: usize,
    end: usize,
    most: usize,
) -> CutPlace {
    let context = &transcript.context;
    let entry = |at: usize| context.get(at).and_then(|&item| transcript.items[item].entry());
    let asks = |at: &usize| {
        entry(*at).is_some_and(|entry| {
            entry.role == Role::User && entry.blocks.iter().any(|it| matches!(it, Block::Text(_)))
        })
    };
    let turn = (0..context.len()).rev().find(asks).map_or(0, |at| at + 1);
    if end <= turn {
        return CutPlace::At(end);
    }
    let thinks = |at: &usize| {
        let group = |at: usize| entry(at).and_then(|entry| entry.group.as_deref());
        let begins = *at == 0 || group(*at).is_none() || group(*at) != group(*at - 1);
        let first = entry(*at).filter(|it| it.role == Role::Assistant && begins);
        matches!(first.and_then(|it| it.blocks.first()), Some(Block::Thinking(thinking))
            if source.at(thinking.whole).starts_with(b"{"))
    };
    let near = (turn.max(least)..=end).rev().find(thinks);
    if let Some(at) = near.or_else(|| (end..=most).find(thinks)) {
        return CutPlace::At(at);
    }
    (turn..least).rev().find(thinks).map_or(CutPlace::At(end), CutPlace::Before)
}
