//! The way back from a changed file, worked out while the changes are still at hand.

use std::collections::BTreeSet;

use epitome_model::{Source, Span};

use super::{Digest, EditedRecord, Hash, RecordHash, UndoSplice};
use crate::source::{Spliced, each_chunk, exactly};
use epitome_error::Result;

/// What a [`Draft`](super::Draft) needs to know of a change: what the file was, what it is, and
/// how each edited record is undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WayBack {
    /// The file before.
    pub before: Digest,
    /// The file after.
    pub after: Digest,
    /// The edited records, in the order of the file after.
    pub records: Vec<EditedRecord>,
    /// Hashes of edited records that are also lines of the file before, sorted.
    pub shared: Vec<RecordHash>,
}

impl WayBack {
    /// The way back from `after` to the file below it.
    ///
    /// The bytes that each splice removes (`before.at(splice.span)`, empty ones too) must be put
    /// in the archive beside it.
    ///
    /// # Errors
    ///
    /// `Changed` when `before` gives fewer bytes than it has.
    pub fn of(before: &dyn Source, after: &Spliced<'_>) -> Result<WayBack> {
        let mut records: Vec<EditedRecord> = Vec::new();
        let mut lines = lines(after)?.into_iter();
        let mut open: Option<Line> = None;
        for (splice, &start) in after.splices().iter().zip(after.starts()) {
            let end = start + splice.with.len() as u64;
            let at_hand = open.take().filter(|line| start <= line.span.end);
            let same_record = at_hand.is_some();
            let first = at_hand.or_else(|| lines.find(|line| start <= line.span.end));
            let mut line = first.expect("the last line reaches to the end of the file");
            while line.span.end < end {
                let next = lines.next().expect("the last line reaches to the end of the file");
                line.span.end = next.span.end;
            }
            let undo = UndoSplice { at: start, len: end - start, blob: blob(before, splice.span)? };
            match records.last_mut().filter(|_| same_record) {
                Some(record) => record.splices.push(undo),
                None => {
                    let splices = vec![undo];
                    let (at, hash) = (line.span.start, line.hash);
                    records.push(EditedRecord { at, len: 0, hash, splices });
                }
            }
            let record = records.last_mut().expect("one was just put there");
            if record.len < line.span.len() {
                // It became longer, or is new: then the hash of the line is not yet its own.
                record.len = line.span.len();
                record.hash = RecordHash::of(&exactly(after, line.span.start..line.span.end)?);
            }
            open = Some(line);
        }
        for record in &mut records {
            record.splices.iter_mut().for_each(|splice| splice.at -= record.at);
        }
        let shared = shared(before, &records)?;
        let (before, after) = (Digest::of_source(before)?, Digest::of_source(after)?);
        Ok(WayBack { before, after, records, shared })
    }
}

/// Which records look like a line that no edit made.
fn shared(before: &dyn Source, records: &[EditedRecord]) -> Result<Vec<RecordHash>> {
    let edited: BTreeSet<RecordHash> = records.iter().map(|record| record.hash).collect();
    let lines = lines(before)?.into_iter().map(|line| line.hash);
    let shared: BTreeSet<RecordHash> = lines.filter(|hash| edited.contains(hash)).collect();
    Ok(shared.into_iter().collect())
}

fn blob(before: &dyn Source, span: Span) -> Result<Hash> {
    Ok(Hash::of(&exactly(before, span.start..span.end)?))
}

/// A line without its line feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where it is.
    pub span: Span,
    /// Of its bytes.
    pub hash: RecordHash,
}

/// All lines of a source, the empty one after a last line feed included: their spans with the line
/// feeds between them are the whole source.
pub fn lines(source: &dyn Source) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    let mut hasher = blake3::Hasher::new();
    let (mut start, mut at) = (0, 0);
    let mut end_line = |hasher: &mut blake3::Hasher, start: u64, end: u64| {
        let hash = RecordHash::from(hasher.finalize());
        lines.push(Line { span: Span { start, end }, hash });
        hasher.reset();
    };
    each_chunk(source, 0..source.len(), |bytes| {
        let mut from = 0;
        for feed in memchr::memchr_iter(b'\n', bytes) {
            hasher.update(&bytes[from..feed]);
            end_line(&mut hasher, start, at + feed as u64);
            from = feed + 1;
            start = at + from as u64;
        }
        hasher.update(&bytes[from..]);
        at += bytes.len() as u64;
        Ok(())
    })?;
    end_line(&mut hasher, start, at);
    Ok(lines)
}
