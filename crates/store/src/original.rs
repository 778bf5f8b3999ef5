//! Computes a session as it was before it was compacted, without writing it.

use std::collections::HashSet;

use epitome_error::{Error, Result};
use epitome_model::{Ref, Source, Splice, Stub, Transcript};

use crate::archive::{Archive, Blobs, Generation, Generations, Hash, SessionKey};
use crate::restore::{Damage, Restoration, RestoreOutcome, RestoreTarget, restore_from, stubs_in};
use crate::source::if_read;
use crate::state::effective;

/// How a session becomes its original again, which includes everything that its agent has appended
/// since.
#[derive(Debug, Default)]
pub struct Original {
    /// The splices over the current session that put removed bytes back.
    pub splices: Vec<Splice>,
    /// The compactions that are in effect, oldest first.
    pub compactions: Vec<Generation>,
    /// For each compaction, the length that the original had when the compaction was made.
    pub places: Vec<u64>,
    /// The error, if some bytes could not be put back.
    pub missing: Option<Error>,
    /// Empty if `splices` restore the session exactly. If not: every piece that was removed and can
    /// be read from the archive, because it is not known which of them `splices` put back.
    pub unplaced: Vec<Vec<u8>>,
}

/// Computes how a session becomes its original again. As much as possible is put back; what is
/// missing is not an error, but named in the result.
///
/// # Errors
///
/// `Archive` if the archive cannot be listed; the errors of reading the session.
pub fn original(archive: &Archive, key: &SessionKey, source: &dyn Source) -> Result<Original> {
    let found = archive.generations(key)?;
    if found.whole.is_empty() {
        let missing = found.damaged.into_iter().next();
        return Ok(Original { missing, ..Original::default() });
    }
    if_read(source, of_generations(archive, key, source, found))
}

fn of_generations(
    archive: &Archive,
    key: &SessionKey,
    source: &dyn Source,
    found: Generations,
) -> Result<Original> {
    let target = RestoreTarget::Original;
    let strict = restore_from(archive, key, &found, source, target, Damage::Refuse);
    let missing = strict.as_ref().err().cloned();
    let way = match &strict {
        Ok(way) => Some(way.clone()),
        Err(_) => restore_from(archive, key, &found, source, target, Damage::LeaveOut).ok(),
    };
    let unplaced = match &way {
        Some(Restoration { outcome: RestoreOutcome::Exact { .. }, .. }) if missing.is_none() => {
            Vec::new()
        }
        Some(_) | None => removed_bytes(archive, key, &found.whole),
    };
    let mut compactions = effective(source, strict, found.whole);
    compactions.retain(|generation| !generation.is_restore());
    let splices = way.map(|way| way.splices).unwrap_or_default();
    let places = places(&compactions);
    Ok(Original { splices, compactions, places, missing, unplaced })
}

/// Each piece that compactions removed from a session, if it can be read from the archive.
/// Duplicates and empty pieces are left out.
fn removed_bytes(archive: &Archive, key: &SessionKey, known: &[Generation]) -> Vec<Vec<u8>> {
    let blobs = archive.blobs(key);
    let mut seen: HashSet<Hash> = HashSet::new();
    let compactions = known.iter().filter(|generation| !generation.is_restore());
    let named = compactions.flat_map(|it| it.blobs().map(move |blob| (it.number, blob)));
    named
        .filter(|(_, blob)| seen.insert(*blob))
        .filter_map(|(number, blob)| blobs.blob(number, &blob).ok())
        .filter(|bytes| !bytes.is_empty())
        .collect()
}

/// For each compaction, the length that the original had when the compaction was made: the length
/// of the file at that time, plus the bytes that earlier compactions had removed.
pub fn places(compactions: &[Generation]) -> Vec<u64> {
    let mut places: Vec<u64> = Vec::with_capacity(compactions.len());
    for (n, generation) in compactions.iter().enumerate() {
        places.push(match n.checked_sub(1) {
            None => generation.before.len,
            Some(last) => {
                let since = generation.before.len.saturating_sub(compactions[last].after.len);
                places[last] + since
            }
        });
    }
    places
}

/// The references in the stubs of a session. In a session into which all archived bytes were put
/// back, these are stubs whose bytes were not found.
pub fn stubs_left(transcript: &Transcript, source: &dyn Source) -> Vec<Ref> {
    // The source is first searched for the beginning of a stub, because parsing every text takes as
    // long as reading the session.
    let may_have_stubs = is_in(source, Stub::BEGINNING.as_bytes());
    if may_have_stubs { stubs_in(transcript, source) } else { Vec::new() }
}

/// Whether a source contains `bytes`.
fn is_in(source: &dyn Source, bytes: &[u8]) -> bool {
    const STEP: u64 = 1 << 20;
    let finder = memchr::memmem::Finder::new(bytes);
    let mut at = 0;
    while at < source.len() {
        let here = source.read(at..at + STEP + bytes.len() as u64);
        if here.is_empty() {
            break;
        }
        if finder.find(&here).is_some() {
            return true;
        }
        at += STEP;
    }
    false
}
