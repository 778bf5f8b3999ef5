//! Computes how to undo a change to a file, from the file before and after the change.

use std::collections::BTreeSet;

use epitome_model::{Source, Span, Splice};
use rayon::prelude::*;

use super::{Digest, EditedRecord, Hash, RecordHash, UndoSplice};
use crate::source::{Spliced, each_chunk, exactly};
use epitome_error::Result;

/// How to undo a change to a file: those parts of a [`Draft`](super::Draft) that are computed from
/// the file before and after the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoData {
    /// The digest of the file before the change.
    pub before: Digest,
    /// The digest of the file after the change.
    pub after: Digest,
    /// The edited records, in the order of the file after the change.
    pub records: Vec<EditedRecord>,
    /// Hashes of edited records that are also lines of the file before the change, sorted.
    pub shared: Vec<RecordHash>,
}

impl UndoData {
    /// Computes how to undo the change from `before` to `after`.
    ///
    /// The bytes that each splice removes (`before.at(splice.span)`, even if they are empty) must
    /// be archived together with the result.
    ///
    /// # Errors
    ///
    /// `Changed` if `before` returns fewer bytes than its length.
    pub fn between(before: &dyn Source, after: &Spliced<'_>) -> Result<UndoData> {
        let (of_before, (of_after, blobs)) = rayon::join(
            || lines_and_digest(before),
            || (lines_and_digest(after), blobs(before, after.splices())),
        );
        let (lines_before, digest_before) = of_before?;
        let (lines, digest_after) = of_after?;
        let records = edited_records(after, lines, blobs?)?;
        let shared = shared(lines_before, &records);
        Ok(UndoData { before: digest_before, after: digest_after, records, shared })
    }

    /// As [`UndoData::between`], but both digests have a hash of zeros, and `shared` is empty. This
    /// is faster, and enough to compute the length of a pack.
    ///
    /// # Errors
    ///
    /// `Changed` if `before` returns fewer bytes than its length.
    pub fn for_size(before: &dyn Source, after: &Spliced<'_>) -> Result<UndoData> {
        let (lines, blobs) = rayon::join(|| lines(after), || blobs(before, after.splices()));
        let records = edited_records(after, lines?, blobs?)?;
        let unknown = blake3::Hash::from_bytes([0; blake3::OUT_LEN]);
        let before = Digest::new(before.len(), &unknown);
        let after = Digest::new(after.len(), &unknown);
        Ok(UndoData { before, after, records, shared: Vec::new() })
    }
}

/// The records of the changed file that splices wrote to. `lines` are all lines of that file, and
/// `blobs` the hashes of the bytes that each splice removed.
fn edited_records(
    after: &Spliced<'_>,
    lines: Vec<Line>,
    blobs: Vec<Hash>,
) -> Result<Vec<EditedRecord>> {
    let mut lines = lines.into_iter();
    let mut blobs = blobs.into_iter();
    let mut records: Vec<EditedRecord> = Vec::new();
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
        let blob = blobs.next().expect("each splice has its hash");
        let undo = UndoSplice { at: start, len: end - start, blob };
        match records.last_mut().filter(|_| same_record) {
            Some(record) => record.splices.push(undo),
            None => {
                let splices = vec![undo];
                let at = line.span.start;
                let hash = line.hash;
                records.push(EditedRecord { at, len: 0, hash, splices });
            }
        }
        let record = records.last_mut().expect("one was just put there");
        if record.len < line.span.len() {
            // A record that is new or got more lines is hashed as a whole.
            record.len = line.span.len();
            record.hash = RecordHash::compute(&exactly(after, line.span.start..line.span.end)?);
        }
        open = Some(line);
    }
    for record in &mut records {
        record.splices.iter_mut().for_each(|splice| splice.at -= record.at);
    }
    Ok(records)
}

/// The hashes of the records that equal a line of the file before the change.
fn shared(before: Vec<Line>, records: &[EditedRecord]) -> Vec<RecordHash> {
    let edited: BTreeSet<RecordHash> = records.iter().map(|record| record.hash).collect();
    let lines = before.into_iter().map(|line| line.hash);
    let shared: BTreeSet<RecordHash> = lines.filter(|hash| edited.contains(hash)).collect();
    shared.into_iter().collect()
}

/// The hashes of the bytes that each splice removes, in the order of the splices.
fn blobs(before: &dyn Source, splices: &[Splice]) -> Result<Vec<Hash>> {
    let hashes = splices.par_iter().map(|splice| {
        let Span { start, end } = splice.span;
        Ok(Hash::compute(&exactly(before, start..end)?))
    });
    hashes.collect()
}

/// A line without its line feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The range of the line in bytes.
    pub span: Span,
    /// The hash of the line.
    pub hash: RecordHash,
}

/// All lines of a source, including the empty one after a last line feed. Their spans, and the line
/// feeds between them, cover the whole source.
pub fn lines(source: &dyn Source) -> Result<Vec<Line>> {
    let mut lines = Lines::default();
    each_chunk(source, 0..source.len(), |bytes| {
        lines.add(bytes);
        Ok(())
    })?;
    Ok(lines.end())
}

/// All lines of a source, and the digest of the whole source, which is read once.
fn lines_and_digest(source: &dyn Source) -> Result<(Vec<Line>, Digest)> {
    let mut lines = Lines::default();
    let mut whole = blake3::Hasher::new();
    each_chunk(source, 0..source.len(), |bytes| {
        lines.add(bytes);
        whole.update(bytes);
        Ok(())
    })?;
    Ok((lines.end(), Digest::new(source.len(), &whole.finalize())))
}

/// Splits bytes that arrive in chunks into lines.
#[derive(Default)]
struct Lines {
    lines: Vec<Line>,
    /// The hash of the unfinished last line.
    hasher: blake3::Hasher,
    /// The offset of the last line.
    start: u64,
    /// The number of bytes that have arrived.
    len: u64,
}

impl Lines {
    fn add(&mut self, bytes: &[u8]) {
        let mut from = 0;
        for feed in memchr::memchr_iter(b'\n', bytes) {
            self.hasher.update(&bytes[from..feed]);
            self.end_line(self.len + feed as u64);
            from = feed + 1;
        }
        self.hasher.update(&bytes[from..]);
        self.len += bytes.len() as u64;
    }

    fn end_line(&mut self, end: u64) {
        let hash = RecordHash::from(self.hasher.finalize());
        self.lines.push(Line { span: Span { start: self.start, end }, hash });
        self.hasher.reset();
        self.start = end + 1;
    }

    fn end(mut self) -> Vec<Line> {
        self.end_line(self.len);
        self.lines
    }
}
