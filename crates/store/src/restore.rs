//! Restoring: computes which bytes of a session file must be replaced to undo compactions.
//!
//! Nothing is written here. The result is a list of splices over the current file, which is read
//! through [`Spliced`] and written by [`LockedSession::replace`](crate::LockedSession::replace) or
//! elsewhere.

mod by_record;
mod damaged;
mod masked;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use epitome_model::{Ref, Source, Span, Splice, Stub};

use tracing::info_span;

pub use crate::archive::Blobs;
use crate::archive::{Digest, EditedRecord, Generation, Generations, Hash};
use crate::source::{Spliced, exactly, if_read};
use by_record::{Walk, check_sound};
pub use damaged::check_original;
pub use damaged::{Damage, check_stubs, restore_from, stubs_in};
use epitome_error::{Error, ErrorKind, Result};
pub use masked::adapt_to_masks;

impl Generations {
    /// The numbers of the imported generations that a restore uses or may use.
    pub fn imported_in(&self, restoration: &Restoration) -> Vec<u64> {
        let imported = self.whole.iter().filter(|it| it.imported.is_some());
        let used = imported.filter(|it| match &restoration.outcome {
            RestoreOutcome::Exact { undone } => undone.contains(&it.number),
            RestoreOutcome::ByRecord { .. } => !restoration.splices.is_empty(),
        });
        used.map(|it| it.number).collect()
    }
}

/// What to restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestoreTarget {
    /// The original: what the agent wrote.
    #[default]
    Original,
    /// The file right after the compaction with this number.
    Generation(u64),
}

/// How to restore a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restoration {
    /// The splices over the current file, sorted and disjoint.
    pub splices: Vec<Splice>,
    /// How exact the restore is, and which generations it undoes.
    pub outcome: RestoreOutcome,
}

/// How a session was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// Exactly: the bytes are proved by hash. What the agent has appended since stays at the end.
    Exact {
        /// The numbers of the generations that are undone, the newest first. Empty if there was
        /// nothing to undo.
        undone: Vec<u64>,
    },
    /// Edits are undone record by record, and no hash of the file proves the result: for example,
    /// another program has changed the file since, a part of the archive is damaged, or only a
    /// single piece is restored.
    ByRecord {
        /// The numbers of the generations that were undone exactly, as long as a hash matched,
        /// before edits were undone by record. The newest is first.
        undone: Vec<u64>,
        /// Number of edits of records that are undone. A record that was edited twice counts twice;
        /// a record that had been restored before does not count. For a single piece: the number of
        /// places at which the piece is put back.
        restored: u64,
        /// Number of edits of records that are not undone: for example, the record is not in the
        /// file as the edit left it, or its removed bytes are damaged.
        missing: u64,
    },
}

impl RestoreOutcome {
    /// The numbers of the generations that are undone exactly, the newest first.
    pub fn undone(&self) -> &[u64] {
        match self {
            RestoreOutcome::Exact { undone } | RestoreOutcome::ByRecord { undone, .. } => undone,
        }
    }
}

/// Computes how to restore `current`. `generations` are all generations of its session.
///
/// # Errors
///
/// `NotFound` if there are no generations, or if the wanted generation does not exist or does not
/// lead to this file. `Archive` if removed bytes are missing or damaged, if undoing a generation
/// does not give the file before it, or if a generation is missing that may have removed more; in
/// this last case, the file right after the missing generation can still be the target. `Refused`
/// if a record that a generation appended was changed since, or if the file restored record by
/// record would have more faults than `current`. `Changed` if `current` returns fewer bytes than
/// its length.
pub fn restore(
    current: &dyn Source,
    generations: &[Generation],
    blobs: &dyn Blobs,
    target: RestoreTarget,
) -> Result<Restoration> {
    restore_without(current, generations, &[], blobs, target)
}

/// Like [`restore`]. Generations whose numbers are in `removed` may be missing from `generations`:
/// they were removed on purpose.
fn restore_without(
    current: &dyn Source,
    generations: &[Generation],
    removed: &[u64],
    blobs: &dyn Blobs,
    target: RestoreTarget,
) -> Result<Restoration> {
    let bytes = Source::len(current);
    let n = generations.len();
    let _span = info_span!("session.restore", bytes, generations = n).entered();
    if generations.is_empty() {
        let what = "the archive holds nothing of this session";
        return Err(Error::new(ErrorKind::NotFound, what));
    }
    let above = match target {
        RestoreTarget::Original => 0,
        RestoreTarget::Generation(number) => number,
    };
    let later: Vec<&Generation> = generations.iter().filter(|it| it.number > above).collect();
    let wanted = match generations.iter().find(|it| it.number == above) {
        Some(wanted) => Some(wanted),
        // A generation that cannot be read can be the target if there is a later one: its result is
        // the file before the next generation.
        None if above > 0 && later.is_empty() => return Err(no_generation(above)),
        None => None,
    };
    let known = match wanted {
        Some(_) => newest_first(generations),
        None => newest_first(later.iter().copied()),
    };
    let Some((done, began)) = exact(current, &known, blobs, wanted, above == 0)? else {
        return by_record(current, &newest_first(later), blobs, Damage::Refuse);
    };
    if wanted.is_some() {
        return Ok(done);
    }
    let missing = (above + 1..began).find(|number| {
        known.iter().all(|known| known.number != *number) && !removed.contains(number)
    });
    if let Some(number) = missing {
        return Err(unknown_before(number));
    }
    // Between the oldest undone generation and the one before it, another program may have changed
    // the file. Then no hash connects them, but edits of the older one may still be in the file.
    let older = known.iter().copied().filter(|it| it.number < began);
    continue_by_record(current, done, &newest_first(older), blobs)
}

/// Computes how to restore a single removed piece, also if its record has moved. All other edits
/// stay.
///
/// The archive does not know the resulting file. Archive the restore as a generation of its own
/// (see [`UndoData`](crate::archive::UndoData)), so that a later [`restore`] can undo it first.
///
/// # Errors
///
/// `NotFound` if no generation removed such bytes, `Refused` if the reference matches several
/// pieces, `Archive` and `Changed` as by [`restore`].
pub fn restore_block(
    current: &dyn Source,
    generations: &[Generation],
    blobs: &dyn Blobs,
    reference: &Ref,
) -> Result<Restoration> {
    if_read(current, block_restored(current, generations, blobs, reference))
}

fn block_restored(
    current: &dyn Source,
    generations: &[Generation],
    blobs: &dyn Blobs,
    reference: &Ref,
) -> Result<Restoration> {
    let hash = one_meant(generations, reference)?;
    let mut walk = Walk::from_source(current)?;
    let mut splices = Vec::new();
    let mut missing = 0;
    for generation in newest_first(generations) {
        let records = generation.records.iter();
        let mut expected = records.filter(|record| record.has_blob(&hash)).count();
        for (idx, record) in walk.matches(generation)? {
            let bytes = walk.bytes(idx)?;
            let view = Spliced::new(&bytes, walk.edits(idx))?;
            for splice in record.splices.iter().filter(|splice| splice.blob == hash) {
                let span = Span { start: splice.at, end: splice.at + splice.len };
                // There is no such span if a later generation has removed or restored these bytes.
                if let Some(span) = view.span_in_base(span) {
                    let with = blobs.blob(generation.number, &hash)?.into();
                    splices.push(Splice { span: moved(span, walk.start(idx)), with });
                }
            }
            expected = expected.saturating_sub(usize::from(record.has_blob(&hash)));
            walk.undo(idx, generation.number, record, blobs)?;
        }
        missing += expected as u64;
    }
    splices.sort_by_key(|splice| splice.span);
    let restored = splices.len() as u64;
    let outcome = RestoreOutcome::ByRecord { undone: Vec::new(), restored, missing };
    Ok(Restoration { splices, outcome })
}

/// Why undoing generations by the hash of the whole file ended: see [`exact`].
enum WayEnd {
    /// The file is the one right after the wanted generation.
    Wanted,
    /// The file before the generation that was undone last is not the result of another generation.
    Oldest,
    /// The current file is not the result of a generation, but the generation with this number was
    /// made from it: an earlier restore wrote it.
    RestoredBefore(u64),
    /// The current file is neither the result of a generation nor the file before one.
    Unknown,
}

/// Undoes generations by the hash of the whole file, the last one first. Returns the restore, and
/// the number of the generation that was made from the restored file; 0 if nothing is undone
/// because the current file is the wanted one already. `None` if no generation can be undone in
/// this way, or if a partial restore hides the original.
///
/// # Errors
///
/// If generations were undone, but the file right after the wanted one was not reached, or if a
/// generation cannot be undone.
fn exact(
    current: &dyn Source,
    generations: &[&Generation],
    blobs: &dyn Blobs,
    wanted: Option<&Generation>,
    to_the_original: bool,
) -> Result<Option<(Restoration, u64)>> {
    let mut open = generations.to_vec();
    let mut view = Spliced::new(current, Vec::new())?;
    let mut undone: Vec<&Generation> = Vec::new();
    let end = loop {
        let digests = checked_digests(&view, &open, undone.last().copied())?;
        let Some(idx) = last_applied(&open, &digests) else {
            break if undone.is_empty() {
                begun_with(current, &open, &digests)?
            } else {
                WayEnd::Oldest
            };
        };
        // Digests are compared, because two generations may have the same result.
        if wanted.is_some_and(|it| it.after == open[idx].after) {
            break WayEnd::Wanted;
        }
        let generation = open.remove(idx);
        // If two generations have the same result, one may be damaged and the other whole.
        let twin = open.iter().any(|it| it.after == generation.after);
        match undo_all(generation, blobs) {
            Err(_) if twin => continue,
            splices => view = view.with_more(splices?)?,
        }
        undone.push(generation);
    };
    let dead_end = undone.last().is_some_and(|it| it.is_restore());
    match (wanted, &end) {
        (_, WayEnd::Wanted) => {}
        // Undoing ended with a partial restore: the file before it is not the result of any
        // generation. That file is taken for the wanted one, with later changes of another program.
        (Some(wanted), _) if dead_end && undone.iter().all(|it| it.number > wanted.number) => {}
        (Some(wanted), WayEnd::Oldest) => return Err(not_on_the_way(wanted)),
        (Some(_), WayEnd::RestoredBefore(_) | WayEnd::Unknown) | (None, WayEnd::Unknown) => {
            return Ok(None);
        }
        // The file before a partial restore is not an original.
        (None, WayEnd::Oldest) if dead_end && to_the_original => return Ok(None),
        (None, WayEnd::Oldest | WayEnd::RestoredBefore(_)) => {}
    }
    let began = match end {
        WayEnd::RestoredBefore(number) => number,
        WayEnd::Wanted | WayEnd::Oldest | WayEnd::Unknown => {
            undone.last().map_or(0, |it| it.number)
        }
    };
    let undone = undone.iter().map(|it| it.number).collect();
    let outcome = RestoreOutcome::Exact { undone };
    Ok(Some((Restoration { splices: view.into_splices(), outcome }, began)))
}

/// The digests of the beginnings of the current state that are as long as the files before and
/// after the `open` generations. Returns an error if `undone`, the last undone generation, was
/// undone wrongly: then the file before it is not among these beginnings.
fn checked_digests(
    view: &Spliced<'_>,
    open: &[&Generation],
    undone: Option<&Generation>,
) -> Result<Vec<Digest>> {
    let known = open.iter().flat_map(|it| [it.before, it.after]);
    let proof = undone.map(|it| it.before);
    let lens: Vec<u64> = known.chain(proof).map(|digest| digest.len).collect();
    let digests = Digest::from_prefixes(view, &lens)?;
    match undone {
        Some(undone) if !digests.contains(&undone.before) => Err(unproved(undone)),
        Some(_) | None => Ok(digests),
    }
}

/// Whether an earlier restore wrote the current file, which is not the result of any generation.
/// This is assumed if a compaction was made from the file. Returns an error if another program has
/// changed the record that a generation appended to the file.
fn begun_with(
    current: &dyn Source,
    generations: &[&Generation],
    digests: &[Digest],
) -> Result<WayEnd> {
    let begun = generations.iter().filter(|it| digests.contains(&it.before));
    for generation in begun.clone() {
        if goes_on_as_appended(current, generation)? {
            return Err(appended_and_changed(generation));
        }
    }
    let first = begun.filter(|it| !it.is_restore()).map(|it| it.number).min();
    Ok(first.map_or(WayEnd::Unknown, WayEnd::RestoredBefore))
}

/// Whether another program has changed the record that `generation` appended to the file. This is
/// assumed if the bytes after the file before the generation begin like a JSON record, and have the
/// beginning of a stub or a line that ends where the record ended.
///
/// Call this only for a file that begins with the file before the generation, but not with the file
/// after it.
pub fn goes_on_as_appended(current: &dyn Source, generation: &Generation) -> Result<bool> {
    let from = generation.before.len;
    let to = generation.after.len;
    let has_appended = !generation.is_restore()
        && from < to
        && matches!(generation.records.as_slice(), [one] if
            matches!(one.splices.as_slice(), [it] if
                one.at + it.at == from && it.len == to - from && it.blob == Hash::compute(b"")));
    let len = Source::len(current);
    if !has_appended || len <= from {
        return Ok(false);
    }
    // The appended lines may have become longer since, so more bytes are read.
    let tail = exactly(current, from..len.min(to.saturating_add(4096)))?;
    let appended = (to - from) as usize;
    // A tail that does not begin as a record of JSON is not the appended record.
    if !tail.starts_with(b"{\"") {
        return Ok(false);
    }
    let ends_there = tail.len() >= appended && tail.get(appended - 1) == Some(&b'\n');
    Ok(ends_there || memchr::memmem::find(&tail, Stub::BEGINNING.as_bytes()).is_some())
}

fn appended_and_changed(generation: &Generation) -> Error {
    let what = format!(
        "what generation {} appended to this session was changed since: it cannot be told from \
         what the agent wrote",
        generation.number
    );
    Error::new(ErrorKind::Refused, what)
        .with_hint("`--partial` leaves it where it is, and restores what can be")
}

/// The splices that undo a generation in the file after it.
fn undo_all(generation: &Generation, blobs: &dyn Blobs) -> Result<Vec<Splice>> {
    let mut splices = Vec::new();
    for record in &generation.records {
        splices.extend(undo_record(generation.number, record, record.at, blobs)?);
    }
    Ok(splices)
}

/// The splices that undo the edits of a record that begins at the offset `from`.
fn undo_record(
    generation: u64,
    record: &EditedRecord,
    from: u64,
    blobs: &dyn Blobs,
) -> Result<Vec<Splice>> {
    let splices = record.splices.iter().map(|splice| {
        let span = Span { start: splice.at, end: splice.at + splice.len };
        let with = blobs.blob(generation, &splice.blob)?.into();
        Ok(Splice { span: moved(span, from), with })
    });
    splices.collect()
}

/// Undoes each edit whose record is still in the file, even if other records are not.
fn by_record(
    current: &dyn Source,
    generations: &[&Generation],
    blobs: &dyn Blobs,
    damage: Damage,
) -> Result<Restoration> {
    let (mut walk, missing) = undone_by_record(current, generations, blobs, damage)?;
    let restored = walk.drop_what_is_as_before()?;
    let splices = walk.into_splices();
    let spliced = Spliced::new(current, splices)?;
    check_sound(current, &spliced, agent_of(generations))?;
    let outcome = RestoreOutcome::ByRecord { undone: Vec::new(), restored, missing };
    Ok(Restoration { splices: spliced.into_splices(), outcome })
}

/// Continues record by record after an exact restore, if the file still contains text that an older
/// generation left; otherwise the restore stays exact.
fn continue_by_record(
    current: &dyn Source,
    done: Restoration,
    older: &[&Generation],
    blobs: &dyn Blobs,
) -> Result<Restoration> {
    let RestoreOutcome::Exact { undone } = &done.outcome else { return Ok(done) };
    if older.is_empty() {
        return Ok(done);
    }
    let view = Spliced::new(current, done.splices.clone())?;
    if !Walk::from_source(&view)?.shows_traces_of(older)? {
        return Ok(done);
    }
    let (mut walk, missing) = undone_by_record(&view, older, blobs, Damage::Refuse)?;
    let restored = walk.drop_what_is_as_before()?;
    let more = walk.into_splices();
    if check_sound(&view, &Spliced::new(&view, more.clone())?, agent_of(older)).is_err() {
        // Undoing by record is given up. The exact restore stays, because it was proved by hash.
        let missing = missing + restored;
        let outcome = RestoreOutcome::ByRecord { undone: undone.clone(), restored: 0, missing };
        return Ok(Restoration { outcome, ..done });
    }
    let mut splices = view.with_more(more)?.into_splices();
    // After an earlier restore by record, the splices may lead back to the current bytes. Those
    // that change nothing are dropped.
    splices.retain(|it| *current.read(it.span.start..it.span.end) != it.with[..]);
    let (undone, restored) =
        if splices.is_empty() { (Vec::new(), 0) } else { (undone.clone(), restored) };
    Ok(Restoration { splices, outcome: RestoreOutcome::ByRecord { undone, restored, missing } })
}

/// Undoes `generations` record by record. Returns the resulting state of the file, and the number
/// of edited records that are not undone: the records of compactions that were not found in the
/// file, and with [`Damage::LeaveOut`] the records whose removed bytes are missing or damaged.
fn undone_by_record<'a>(
    current: &'a dyn Source,
    generations: &[&Generation],
    blobs: &dyn Blobs,
    damage: Damage,
) -> Result<(Walk<'a>, u64)> {
    let mut walk = Walk::from_source(current)?;
    let mut missing = 0;
    for generation in generations {
        let matches = walk.matches(generation)?;
        if !generation.is_restore() {
            missing += (generation.records.len() as u64).saturating_sub(matches.len() as u64);
        }
        for (idx, record) in matches {
            match walk.undo(idx, generation.number, record, blobs) {
                Err(err) if damage == Damage::LeaveOut && err.kind() == ErrorKind::Archive => {
                    missing += 1;
                }
                undone => undone?,
            }
        }
    }
    Ok((walk, missing))
}

fn agent_of<'g>(generations: &[&'g Generation]) -> &'g str {
    generations.first().map_or("", |generation| &generation.agent)
}

/// The result of [`walk`]. The *states* are the file itself, and what the file becomes each time
/// that another generation is undone. The *result* of a generation is the file right after it.
pub struct HashWalk {
    /// The splices over the file that lead to the last state.
    pub splices: Vec<Splice>,
    /// The numbers of the generations that were undone.
    pub undone: BTreeSet<u64>,
    /// The numbers of generations whose result is a beginning of one of the states.
    pub left: BTreeSet<u64>,
    /// The numbers of generations for which the file before them is a beginning of the last state.
    pub begun: BTreeSet<u64>,
    /// The numbers of generations whose result, or the file before them, is a beginning of a state.
    pub met: BTreeSet<u64>,
    /// The numbers of generations whose result was a beginning of a state from which an older
    /// generation, with a longer result, was undone instead.
    pub passed_over: BTreeSet<u64>,
}

/// Undoes generations by the hash of the whole file, the last one first, until none matches.
pub fn walk(
    current: &dyn Source,
    generations: &[Generation],
    blobs: &dyn Blobs,
) -> Result<HashWalk> {
    let mut undone = BTreeSet::new();
    let mut left = BTreeSet::new();
    let mut met = BTreeSet::new();
    let mut passed_over = BTreeSet::new();
    let mut open = newest_first(generations);
    let mut splices = Vec::new();
    loop {
        let view = Spliced::new(current, splices)?;
        let known = generations.iter().flat_map(|it| [it.before.len, it.after.len]);
        let digests = Digest::from_prefixes(&view, &known.collect::<Vec<u64>>())?;
        let mut begun = BTreeSet::new();
        for generation in generations {
            if digests.contains(&generation.before) {
                begun.insert(generation.number);
            }
            if digests.contains(&generation.after) {
                left.insert(generation.number);
            }
        }
        met.extend(begun.union(&left));
        let mut next = None;
        while let Some(idx) = last_applied(&open, &digests) {
            let generation = open.remove(idx);
            // If two generations have the same result, one may be damaged and the other whole.
            let undo = match undo_all(generation, blobs) {
                Err(err) if err.kind() == ErrorKind::Archive => continue,
                undo => undo?,
            };
            let before = Spliced::new(current, view.splices().to_vec())?.with_more(undo)?;
            if Digest::from_prefixes(&before, &[generation.before.len])? == [generation.before] {
                next = Some((generation.number, before.into_splices()));
                break;
            }
        }
        let Some((number, more)) = next else {
            let splices = view.into_splices();
            return Ok(HashWalk { splices, undone, left, begun, met, passed_over });
        };
        let newer = open.iter().filter(|it| it.number > number && digests.contains(&it.after));
        passed_over.extend(newer.map(|it| it.number));
        undone.insert(number);
        splices = more;
    }
}

fn moved(span: Span, by: u64) -> Span {
    Span { start: span.start + by, end: span.end + by }
}

/// The index of the generation that was applied last to a file: a generation whose result is a
/// beginning of the file. If there are several, the one with the longest result, and among these
/// the newest. `prefixes` are digests of beginnings of the file.
///
/// The newest generation is not always the last one applied: a later compaction of a copy of the
/// session may have appended the same record as the first of two compactions of this file.
fn last_applied(newest_first: &[&Generation], prefixes: &[Digest]) -> Option<usize> {
    let fits = (0..newest_first.len()).filter(|&idx| prefixes.contains(&newest_first[idx].after));
    fits.max_by_key(|&idx| (newest_first[idx].after.len, Reverse(idx)))
}

fn newest_first<'g>(generations: impl IntoIterator<Item = &'g Generation>) -> Vec<&'g Generation> {
    let mut sorted: Vec<&Generation> = generations.into_iter().collect();
    sorted.sort_by_key(|generation| Reverse(generation.number));
    sorted
}

fn no_generation(number: u64) -> Error {
    Error::new(ErrorKind::NotFound, format!("this session has no generation {number}"))
}

/// The hash of the removed piece that `reference` refers to. Returns an error unless there is
/// exactly one.
fn one_meant(generations: &[Generation], reference: &Ref) -> Result<Hash> {
    let meant =
        generations.iter().flat_map(Generation::blobs).filter(|hash| hash.matches(reference));
    let mut meant: Vec<Hash> = meant.collect();
    meant.sort_unstable();
    meant.dedup();
    match meant[..] {
        [hash] => Ok(hash),
        [] => {
            let what = format!("nothing named {reference} was removed from this session");
            Err(Error::new(ErrorKind::NotFound, what))
        }
        _ => {
            let what = format!("{reference} may mean {} removed pieces", meant.len());
            Err(Error::new(ErrorKind::Refused, what).with_hint("give more digits"))
        }
    }
}

fn unproved(generation: &Generation) -> Error {
    let what = format!("undoing generation {} does not give what was there", generation.number);
    Error::new(ErrorKind::Archive, what)
}

fn not_on_the_way(generation: &Generation) -> Error {
    let what = format!("generation {} does not lead to this file", generation.number);
    Error::new(ErrorKind::NotFound, what)
}

fn unknown_before(number: u64) -> Error {
    let what = format!("generation {number} of this session is missing or damaged");
    let hint = format!("`--generation {number}` goes back to what it left, as far as can be known");
    Error::new(ErrorKind::Archive, what).with_hint(hint)
}
