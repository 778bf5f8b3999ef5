//! Finds the original entries of a history. A summary is made of the originals, and not of the
//! stubs that edits put in their place.

use std::collections::HashSet;

use epitome_model::{Block, Source, Transcript};

use super::Log;
use crate::lines;

/// The original items to summarise, and all original items: see
/// [`FindOriginals`](crate::FindOriginals).
pub fn originals_before(source: &dyn Source, kept: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut log = Log::default();
    lines(source, |line| log.line(&line, &mut ()));
    (originals_in_context(&log, kept), all_originals(log.transcript(), kept))
}

/// The items to summarise: the context before `kept`, without the prompt. An item that an edit made
/// is replaced by its original, also if the edit emptied it. Earlier summaries are included
/// unchanged.
pub fn originals_in_context(log: &Log, kept: &[usize]) -> Vec<usize> {
    let slots = log.slots();
    let prompt = &log.transcript().head.prompt;
    let end = kept.first().and_then(|first| slots.iter().position(|item| item == first));
    let goes = slots[..end.unwrap_or(slots.len())].iter().filter(|item| !prompt.contains(item));
    goes.map(|&item| log.original_of(item)).collect()
}

/// The original items of the entries that have an id, except the prompt, summaries and the entries
/// `kept`; also of entries that earlier summaries replaced. Of the items with one id, the first is
/// the original, and the others are edited versions.
pub fn all_originals(transcript: &Transcript, kept: &[usize]) -> Vec<usize> {
    let ids = kept.iter().filter_map(|&item| transcript.items[item].entry()?.id.as_deref());
    let mut seen: HashSet<&str> = ids.collect();
    let entries = transcript.entries().filter(|(item, entry)| {
        !transcript.head.prompt.contains(item)
            && !entry.blocks.iter().any(|block| matches!(block, Block::Summary(_)))
    });
    let firsts = entries.filter(|(_, entry)| entry.id.as_deref().is_some_and(|id| seen.insert(id)));
    firsts.map(|(item, _)| item).collect()
}
