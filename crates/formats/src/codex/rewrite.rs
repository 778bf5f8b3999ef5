//! Turns edits into replacements of bytes, and writes a new token count.

use std::collections::HashSet;

use epitome_json::write::{self, Unwritable};
use epitome_model::{At, Edit, Source, Span, Splice, Transcript};

use super::{SHAPES, append};

/// The replacements that apply `edits`.
///
/// On a resume, Codex decides by the last `token_count` whether the context is full, and then
/// summarises it. The tokens billed are accounting and must not change, so a `token_count` for the
/// smaller context is appended, as Codex does when it compacts by itself. None is appended where
/// the edits save less than that record takes: the old count is then off by a hundred tokens at
/// most.
///
/// # Errors
///
/// [`Unwritable`], as for every format.
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
    // Four bytes per token: Codex estimates the same way.
    if let Some(line) = append::count(source, sent / 4).filter(|it| (it.len() as u64) < saved) {
        let span = Span { start: source.len(), end: source.len() };
        splices.push((Splice { span, with: line.into() }, at));
    }
    Ok(splices)
}
