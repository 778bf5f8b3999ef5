//! Edits into replacements of bytes, and the token count of what is left.

use std::collections::HashSet;

use epitome_model::{At, Edit, Source, Span, Splice, Transcript};

use super::{SHAPES, append};
use crate::write::{self, Unwritable};

/// The replacements that carry out `edits`.
///
/// By the last `token_count` Codex decides on a resume whether the context is full, and then
/// summarises it. What was billed is accounting and stays, so a `token_count` for the smaller
/// context is written behind the end, as Codex writes one when it compacts by itself. Where the
/// edits save less than that record takes, none is written: the old count is off by a hundred
/// tokens at most.
///
/// # Errors
///
/// [`Unwritable`] as for every format.
pub fn rewrite(
    transcript: &Transcript,
    source: &dyn Source,
    edits: &[Edit],
) -> Result<Vec<(Splice, At)>, Unwritable> {
    let mut splices = write::splices(transcript, source, edits, &SHAPES)?;
    let mut context: Vec<Span> = transcript.context().map(|(_, entry)| entry.record.span).collect();
    // Items may share a record.
    context.sort_unstable();
    context.dedup();
    let known: HashSet<Span> = context.iter().copied().collect();
    let (mut saved, mut sent) = (0, context.iter().map(|it| it.len()).sum::<u64>());
    for (splice, at) in &splices {
        let less = splice.span.len().saturating_sub(splice.with.len() as u64);
        saved += less;
        if known.contains(&transcript.items[at.item()].record().span) {
            sent -= less;
        }
    }
    let is_sent = |at: &At| known.contains(&transcript.items[at.item()].record().span);
    let Some((_, at)) = splices.iter().find(|(_, at)| is_sent(at)) else { return Ok(splices) };
    let at = *at;
    // Four bytes a token: what Codex reckons with, too.
    if let Some(line) = append::count(source, sent / 4).filter(|it| (it.len() as u64) < saved) {
        let span = Span { start: source.len(), end: source.len() };
        splices.push((Splice { span, with: line.into() }, at));
    }
    Ok(splices)
}
