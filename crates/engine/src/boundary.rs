//! Finds the index at which a context is divided: a summary or a digest replaces the part before
//! the index, and the part that begins there is kept.

use epitome_model::{Block, Entry, Role, Source, Transcript};

/// Where a context is divided, as [`with_reasoning`] decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutPlace {
    /// Divide at this index of the context.
    At(usize),
    /// No response in the allowed range begins with reasoning. The index is that of the last
    /// response before the range, in the same turn, that begins with reasoning.
    Before(usize),
}

/// Finds an index in the last turn at which a response begins that has reasoning first: in thinking
/// mode, Anthropic refuses a request in which the kept part of an unfinished turn begins with
/// anything else. The indices are tried from `end` down to `least`, then from `end` up to `most`,
/// and then from `least` down. An index before `least` is returned as [`CutPlace::Before`]. Returns
/// `end` if no such index exists, or if the whole turn is kept.
pub(crate) fn with_reasoning(
    transcript: &Transcript,
    source: &dyn Source,
    least: usize,
    end: usize,
    most: usize,
) -> CutPlace {
    let turn = (0..transcript.context.len()).rev().find(|&at| {
        sent_at(transcript, at).is_some_and(|entry| {
            entry.role == Role::User && entry.blocks.iter().any(|it| matches!(it, Block::Text(_)))
        })
    });
    let turn = turn.map_or(0, |at| at + 1);
    with_reasoning_in(turn, transcript, source, least, end, most)
}

/// Like [`with_reasoning`], except that the caller says where the last turn is: `turn` is the index
/// after the user's message that begins the turn.
pub(crate) fn with_reasoning_in(
    turn: usize,
    transcript: &Transcript,
    source: &dyn Source,
    least: usize,
    end: usize,
    most: usize,
) -> CutPlace {
    if end <= turn {
        return CutPlace::At(end);
    }
    let begins = |at: &usize| begins_with_reasoning(transcript, source, *at);
    let near = (turn.max(least)..=end).rev().find(begins);
    if let Some(at) = near.or_else(|| (end..=most).find(begins)) {
        return CutPlace::At(at);
    }
    (turn..least).rev().find(begins).map_or(CutPlace::At(end), CutPlace::Before)
}

/// The entry at an index of the context, if there is one.
fn sent_at(transcript: &Transcript, at: usize) -> Option<&Entry> {
    transcript.items[*transcript.context.get(at)?].entry()
}

/// Whether a response begins at index `at` of the context, with reasoning in the API's own format
/// (a JSON object) as its first block.
fn begins_with_reasoning(transcript: &Transcript, source: &dyn Source, at: usize) -> bool {
    let Some(entry) = sent_at(transcript, at).filter(|it| it.role == Role::Assistant) else {
        return false;
    };
    let is_continued = at > 0
        && entry.group.is_some()
        && sent_at(transcript, at - 1).is_some_and(|before| before.group == entry.group);
    match entry.blocks.first() {
        Some(Block::Thinking(thinking)) if !is_continued => {
            source.at(thinking.whole).starts_with(b"{")
        }
        Some(_) | None => false,
    }
}

/// The index in the context at which the user messages at its end begin, which the model has not
/// answered. The length of the context if there are none.
pub(crate) fn current_request(transcript: &Transcript) -> usize {
    let context = transcript.context.iter();
    let request = context.rev().take_while(|&&item| {
        transcript.items[item].entry().is_some_and(|entry| entry.role == Role::User)
    });
    transcript.context.len() - request.count()
}
