//! Where a summary ends and what is kept begins.

use epitome_model::{Block, Role, Source, Transcript};

/// Where a turn that goes on can be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CutPlace {
    /// Here.
    At(usize),
    /// Nowhere that was asked for: what is kept would not begin with reasoning. It would here, at
    /// the last place before.
    Before(usize),
}

/// Where to cut a turn that goes on, so that what is kept of it begins with reasoning, as it did:
/// Anthropic refuses it otherwise while the model thinks. As near before `end` as can be and not
/// before `least`, or else behind it, and not behind `most`; where no response begins so, at `end`.
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
