//! Where the summarised part of a context ends and the kept part begins.

use epitome_model::{Block, Role, Source, Transcript};

/// A place to cut an unfinished turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CutPlace {
    /// Cut at this place.
    At(usize),
    /// No place in the wanted range lets the kept part begin with reasoning. This is the last place
    /// before that range that does.
    Before(usize),
}

/// Finds a place to cut an unfinished turn so that the kept part begins with reasoning: Anthropic
/// refuses it otherwise in thinking mode. Returns the nearest place before `end` that is not before
/// `least`, else the nearest after `end` up to `most`; `end` if no response begins with reasoning.
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
