//! Adapts generations to a file in which texts are masked, so that they can still be undone.

use epitome_error::{ErrorKind, Result};
use epitome_model::{Source, Span, Splice};

use super::{Blobs, last_applied, newest_first, undo_all};
use crate::archive::{Digest, EditedRecord, Generation, RecordHash};
use crate::source::{Spliced, exactly};

/// Returns the generations that can be undone in `current` by the hash of the file, as they are
/// for the file that `masks` make of `current`: undone there, they give the file before them with
/// the same texts masked.
///
/// A generation is left out, with all older ones, if a mask begins or ends within what it inserted
/// and the other end is outside, or if its digests are wrong. If removed bytes of a generation are
/// missing, because they had the text as well, older generations are left out, and the file before
/// it keeps its digest.
///
/// # Errors
///
/// `Refused` if two masks overlap; the errors of reading `current` and of `blobs`, except missing
/// or damaged bytes.
pub fn adapt_to_masks(
    current: &dyn Source,
    masks: &[Splice],
    generations: &[Generation],
    blobs: &dyn Blobs,
) -> Result<Vec<Generation>> {
    let mut open = newest_first(generations);
    let mut view = Spliced::new(current, Vec::new())?;
    let mut masks = masks.to_vec();
    let mut adapted = Vec::new();
    loop {
        let lens: Vec<u64> = open.iter().map(|it| it.after.len).collect();
        let digests = Digest::from_prefixes(&view, &lens)?;
        let Some(idx) = last_applied(&open, &digests) else { return Ok(adapted) };
        let generation = open.remove(idx);
        let masked = Spliced::new(&view, masks.clone())?;
        let Some(mut for_masked) = adapt(generation, &masks, &masked)? else { return Ok(adapted) };
        let undo = match undo_all(generation, blobs) {
            Err(err) if err.kind() == ErrorKind::Archive => {
                adapted.push(for_masked);
                return Ok(adapted);
            }
            undo => undo?,
        };
        let remaining = masks_after_undo(&masks, &undo);
        let Some(len) = position_after(&remaining, generation.before.len) else {
            return Ok(adapted);
        };
        let before = masked.with_more(undo_all(&for_masked, blobs)?)?;
        let Some(digest) = digest_of_beginning(&before, len)? else { return Ok(adapted) };
        for_masked.before = digest;
        adapted.push(for_masked);
        drop(before);
        view = view.with_more(undo)?;
        masks = remaining;
    }
}

/// A generation as it is for `masked`, which is the file after it with `masks`. Its `before` is
/// still that of `generation`. `None` if a mask is only partly within an edit.
fn adapt(
    generation: &Generation,
    masks: &[Splice],
    masked: &Spliced<'_>,
) -> Result<Option<Generation>> {
    let mut adapted = generation.clone();
    let Some(len) = position_after(masks, generation.after.len) else { return Ok(None) };
    let Some(digest) = digest_of_beginning(masked, len)? else { return Ok(None) };
    adapted.after = digest;
    for record in &mut adapted.records {
        let old = record.hash;
        let Some(positions) = adapt_positions(record, masks) else { return Ok(None) };
        *record = positions;
        let bytes = exactly(masked, record.at..record.at + record.len)?;
        record.hash = RecordHash::compute(&bytes);
        // A line of the file before that equals the record is masked like it.
        for shared in adapted.shared.iter_mut().flatten().filter(|shared| **shared == old) {
            *shared = record.hash;
        }
    }
    if let Some(shared) = &mut adapted.shared {
        shared.sort_unstable();
        shared.dedup();
    }
    Ok(Some(adapted))
}

/// A record with its positions in the masked file. Its hash is not changed.
fn adapt_positions(record: &EditedRecord, masks: &[Splice]) -> Option<EditedRecord> {
    let at = position_after(masks, record.at)?;
    let mut adapted = record.clone();
    adapted.at = at;
    adapted.len = position_after(masks, record.at + record.len)? - at;
    for splice in &mut adapted.splices {
        let start = position_after(masks, record.at + splice.at)?;
        let end = position_after(masks, record.at + splice.at + splice.len)?;
        splice.at = start - at;
        splice.len = end - start;
    }
    Some(adapted)
}

/// The masks outside of what `undo` replaces, at their positions after the undo. Both are sorted.
fn masks_after_undo(masks: &[Splice], undo: &[Splice]) -> Vec<Splice> {
    let outside = |mask: &&Splice| {
        !undo.iter().any(|it| it.span.start <= mask.span.start && mask.span.end <= it.span.end)
    };
    let moved = masks.iter().filter(outside).filter_map(|mask| {
        let start = position_after(undo, mask.span.start)?;
        let span = Span { start, end: start + mask.span.len() };
        Some(Splice { span, with: mask.with.clone() })
    });
    moved.collect()
}

/// Where the byte at the position `at` is after `splices`. `None` if a splice removes it together
/// with a byte before it.
fn position_after(splices: &[Splice], at: u64) -> Option<u64> {
    let mut position = at;
    for Splice { span, with } in splices.iter().take_while(|it| it.span.start < at) {
        if span.end > at {
            return None;
        }
        position = position + with.len() as u64 - span.len();
    }
    // Nothing is removed between an insertion and `at`, which it moves.
    let inserted = splices.iter().filter(|it| it.span.start == at && it.span.end == at);
    Some(position + inserted.map(|it| it.with.len() as u64).sum::<u64>())
}

/// The digest of the first `len` bytes; `None` if there are fewer.
fn digest_of_beginning(source: &dyn Source, len: u64) -> Result<Option<Digest>> {
    Ok(Digest::from_prefixes(source, &[len])?.pop())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::{RestoreOutcome, RestoreTarget, restore};
    use super::*;
    use crate::archive::{Draft, Hash, SessionKey, UndoData};
    use epitome_error::Error;
    use epitome_model::Tokens;
    use proptest::prelude::*;

    /// The bytes that edits removed.
    #[derive(Default)]
    struct Removed(HashMap<Hash, Vec<u8>>);

    impl Blobs for Removed {
        fn blob(&self, _generation: u64, hash: &Hash) -> Result<Vec<u8>> {
            let missing = || Error::new(ErrorKind::Archive, "these bytes are not here");
            self.0.get(hash).cloned().ok_or_else(missing)
        }
    }

    /// An edit of a file: where it begins, in thousandths of the file, how many bytes it removes at
    /// most, and what it inserts.
    type Edit = (u64, u64, String);

    /// Edits `file` and returns the new file with the generation that undoes it. No edit removes an
    /// `s`, because a removed text that is forgotten cannot be put back.
    fn compacted(
        number: u64,
        file: &[u8],
        edits: &[Edit],
        removed: &mut Removed,
    ) -> (Vec<u8>, Generation) {
        let mut splices: Vec<Splice> = Vec::new();
        let mut edits = edits.to_vec();
        edits.sort();
        for (at, len, with) in edits {
            let start =
                (at * file.len() as u64 / 1000).max(splices.last().map_or(0, |it| it.span.end + 1));
            if start > file.len() as u64 {
                break;
            }
            let rest = &file[start as usize..];
            let is_kept = |byte: &u8| *byte == b's';
            let most = rest.iter().position(is_kept).unwrap_or(rest.len()) as u64;
            let span = Span { start, end: start + len.min(most) };
            splices.push(Splice { span, with: with.into_bytes().into() });
        }
        for Splice { span, .. } in &splices {
            let bytes = &file[span.start as usize..span.end as usize];
            removed.0.insert(Hash::compute(bytes), bytes.to_vec());
        }
        let source = file.to_vec();
        let after = Spliced::new(&source, splices).expect("splices");
        let undo = UndoData::between(&source, &after).expect("undo data");
        let draft = Draft {
            path: "session.jsonl".into(),
            recipe: "test".to_owned(),
            made: jiff::Timestamp::UNIX_EPOCH,
            run: None,
            part_of: None,
            parts: Vec::new(),
            before: undo.before,
            after: undo.after,
            records: undo.records,
            tokens_before: Tokens(0),
            tokens_after: Tokens(0),
            edits: [("test".to_owned(), 1)].into(),
            shared: Some(undo.shared),
        };
        let mut generation = draft.into_generation(&SessionKey::new("pi", "test"));
        generation.number = number;
        (after.read(0..after.len()).into_owned(), generation)
    }

    /// A mask for each `s`.
    fn masks(file: &[u8]) -> Vec<Splice> {
        let found = memchr::memchr_iter(b's', file).map(|at| at as u64);
        found
            .map(|at| Splice { span: Span { start: at, end: at + 1 }, with: b"<...>"[..].into() })
            .collect()
    }

    fn masked(file: &[u8]) -> Vec<u8> {
        String::from_utf8_lossy(file).replace('s', "<...>").into_bytes()
    }

    /// The original of `file`, which must be proved by hash.
    fn restored(file: &[u8], generations: &[Generation], removed: &Removed) -> Vec<u8> {
        let way = restore(&file, generations, removed, RestoreTarget::Original);
        let way = way.expect("the generations can be undone");
        assert!(matches!(way.outcome, RestoreOutcome::Exact { .. }), "{:?}", way.outcome);
        let view = Spliced::new(&file, way.splices).expect("splices");
        view.read(0..view.len()).into_owned()
    }

    fn edits() -> impl Strategy<Value = Vec<Edit>> {
        prop::collection::vec((0..1000_u64, 0..30_u64, "[abs\n]{0,8}"), 0..5)
    }

    proptest! {
        #[test]
        fn compactions_of_a_masked_file_restore_the_masked_original(
            original in "[a-es\n]{0,120}",
            first in edits(),
            second in edits(),
            appended in "[a-es\n]{0,20}",
        ) {
            let mut removed = Removed::default();
            let original = original.into_bytes();
            let (file, one) = compacted(1, &original, &first, &mut removed);
            let (mut file, two) = compacted(2, &file, &second, &mut removed);
            file.extend(appended.bytes());
            let generations = [one, two];
            let original = restored(&file, &generations, &removed);
            let adapted = adapt_to_masks(&file, &masks(&file), &generations, &removed)
                .expect("the file can be read");
            let original_of_masked = restored(&masked(&file), &adapted, &removed);
            prop_assert_eq!(original_of_masked, masked(&original));
        }
    }

    #[test]
    fn a_generation_stays_whose_removed_bytes_are_forgotten() {
        let mut removed = Removed::default();
        let original = b"one s\ntwo\nthree".to_vec();
        let edits = [(500, 3, "stub".to_owned())];
        let (file, generation) = compacted(1, &original, &edits, &mut removed);
        let before = generation.before;
        let adapted = adapt_to_masks(&file, &masks(&file), &[generation], &Removed::default());
        let adapted = adapted.expect("the file can be read");
        let digests: Vec<(Digest, Digest)> =
            adapted.iter().map(|it| (it.before, it.after)).collect();
        assert_eq!(digests, [(before, Digest::from_bytes(&masked(&file)))]);
    }

    #[test]
    fn a_mask_over_the_edge_of_an_edit_ends_it() {
        let mut removed = Removed::default();
        let original = b"aaaa bbbb cccc".to_vec();
        let edits = [(400, 4, "XXXX".to_owned())];
        let (file, generation) = compacted(1, &original, &edits, &mut removed);
        let over = Splice { span: Span { start: 3, end: 7 }, with: b"-"[..].into() };
        let adapted = adapt_to_masks(&file, &[over], &[generation], &removed);
        assert_eq!(adapted.expect("the file can be read"), []);
    }
}
