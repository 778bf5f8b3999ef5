//! Turns edits into replacements of bytes, and writes a new token count.

use std::collections::HashSet;

use epitome_json::write::{self, Unwritable};
use epitome_model::{At, Edit, Source, Span, Splice, Transcript};

use super::{SHAPES, append};

/// The replacements that apply `edits`.
///
/// On a resume, Codex computes from the last `token_count` whether the context is full, and if so,
/// summarises it. The existing counts are accounting values and must not change. So a new
/// `token_count` with the size of the smaller context is appended, as Codex does when it compacts
/// by itself, but not if it would be as long as the bytes that the edits save, or longer.
///
/// # Errors
///
/// [`Unwritable`] if an edit cannot be written into the records.
pub fn rewrite(
    transcript: &Transcript,
    source: &dyn Source,
    edits: &[Edit],
) -> Result<Vec<(Splice, At)>, Unwritable> {
    let mut splices = write::splices(transcript, source, edits, &SHAPES)?;
    let mut context: Vec<Span> = transcript.context().map(|(_, entry)| entry.record.span).collect();
    // Several items may share a record.
    context.sort_unstable();
    context.dedup();
    let known: HashSet<Span> = context.iter().copied().collect();
    let mut saved = 0;
    let mut sent = context.iter().map(|it| it.len()).sum::<u64>();
    for (splice, at) in &splices {
        let less = splice.span.len().saturating_sub(splice.with.len() as u64);
        saved += less;
        if known.contains(&transcript.items[at.item()].record().span) {
            sent -= less;
        }
    }
    let mut places = splices.iter().map(|(_, at)| *at);
    let first = places.find(|at| known.contains(&transcript.items[at.item()].record().span));
    let Some(at) = first else { return Ok(splices) };
    // Four bytes are counted as one token, as Codex does.
    if let Some(line) = append::count(source, sent / 4).filter(|it| (it.len() as u64) < saved) {
        let span = Span { start: source.len(), end: source.len() };
        splices.push((Splice { span, with: line.into() }, at));
    }
    Ok(splices)
}
