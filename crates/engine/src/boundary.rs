//! Finds the index at which a context is divided: a summary or a digest replaces the part before
//! the index, and the part that begins there is kept.

use epitome_model::{Block, Entry, Role, Source, Transcript};

/// A position at which an unfinished turn is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutPlace {
    /// Divide at this index of the context.
    At(usize),
    /// No index in the wanted range is one at which the kept part would begin with reasoning. This
    /// is the last such index before the range.
    Before(usize),
}

/// Finds an index within the last turn at which the kept part would begin with reasoning. In
/// thinking mode Anthropic refuses a request in which the kept part of an unfinished turn begins
/// with anything else. Returns the nearest such index from `end` down to `least`, or else the
/// nearest from `end` up to `most`, or else the last such index before `least`, as
/// [`CutPlace::Before`]. Returns `end` if all entries after the last message of the user would be
/// kept anyway, or if there is no such index.
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
/// after its message of the user.
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

/// The entry at an index of the context; `None` if the context is shorter, or if the item at that
/// index is no entry.
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

/// The index in the context of the first user message after which only user messages follow: the
/// model has not answered these messages. The length of the context if the context does not end
/// with a user message.
pub(crate) fn current_request(transcript: &Transcript) -> usize {
    let context = transcript.context.iter();
    let request = context.rev().take_while(|&&item| {
        transcript.items[item].entry().is_some_and(|entry| entry.role == Role::User)
    });
    transcript.context.len() - request.count()
}
