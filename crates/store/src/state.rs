//! Which compactions are in effect in a session.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

use epitome_error::Result;
use epitome_model::{Bytes, Source};
use serde::{Deserialize, Serialize};

use crate::archive::{Archive, Digest, Generation, SessionKey, is_damage, lines};
use crate::restore::{Damage, Restoration, RestoreOutcome, RestoreTarget, restore_from};
use crate::session::{Loaded, key_of};
use crate::source::if_read;

/// The compactions that are in effect in a session, the oldest first: like [`in_effect`], without
/// the generations that are restores. `path` is the address of the session.
///
/// # Errors
///
/// The errors of [`in_effect`].
pub fn compactions<S: Source>(
    session: &Loaded<S>,
    archive: &Archive,
    path: &Path,
) -> Result<Vec<Generation>> {
    let mut found = in_effect(archive, &key_of(session, path), &session.source)?;
    found.retain(|generation| !generation.is_restore());
    Ok(found)
}

/// The generations that are in effect in a session, the oldest first: those that a restore to the
/// original would undo. Empty for a session that was never compacted, or was restored completely.
///
/// If a part of the archive is damaged, the result follows from the generations that can be read,
/// and from the hashes of the file and of its records.
///
/// # Errors
///
/// `Archive` if the archive cannot be listed; the errors of reading the session; the error of
/// reading a pack, unless the pack is damaged.
pub fn in_effect(
    archive: &Archive,
    key: &SessionKey,
    source: &dyn Source,
) -> Result<Vec<Generation>> {
    let mut found = archive.generations(key)?;
    if let Some(at) = found.damaged.iter().position(|err| !is_damage(err)) {
        return Err(found.damaged.swap_remove(at));
    }
    if found.whole.is_empty() {
        return Ok(Vec::new());
    }
    let way = restore_from(archive, key, &found, source, RestoreTarget::Original, Damage::Refuse);
    if_read(source, Ok(effective(source, way, found.whole)))
}

/// Those of the `known` generations that are in effect in a session. `way` is the result of
/// computing a restore to the original.
pub(crate) fn effective(
    source: &dyn Source,
    way: Result<Restoration>,
    mut known: Vec<Generation>,
) -> Vec<Generation> {
    let numbers = match way {
        Ok(way) => match way.outcome {
            RestoreOutcome::Exact { undone } => undone.into_iter().collect(),
            RestoreOutcome::ByRecord { .. } if way.splices.is_empty() => HashSet::new(),
            RestoreOutcome::ByRecord { undone, .. } => with_records_in(source, &known, undone),
        },
        Err(_) => match last_applied(source, &known) {
            Some(newest) => [newest].into(),
            None => with_records_in(source, &known, Vec::new()),
        },
    };
    known.retain(|it| numbers.contains(&it.number));
    known
}

/// The numbers of the generations `undone`, and of those that have edited records in the session.
/// If two generations left the same record, it belongs to the newer one.
fn with_records_in(source: &dyn Source, known: &[Generation], undone: Vec<u64>) -> HashSet<u64> {
    let mut numbers: HashSet<u64> = undone.into_iter().collect();
    let present: HashSet<_> =
        lines(source).unwrap_or_default().iter().map(|line| line.hash).collect();
    let mut taken = HashSet::new();
    for generation in known.iter().rev() {
        let records =
            generation.records.iter().filter(|it| it.len > 0 && present.contains(&it.hash));
        // All records are visited, so that each counts for one generation only.
        let new = records.filter(|it| taken.insert(it.hash)).count();
        if new > 0 {
            numbers.insert(generation.number);
        }
    }
    numbers
}

/// The number of the generation that was applied last to the session: a generation whose result
/// (the file right after it) is a beginning of the session. If there are several, the one with the
/// longest result, and among these the newest.
fn last_applied(source: &dyn Source, known: &[Generation]) -> Option<u64> {
    let lens: Vec<u64> = known.iter().map(|it| it.after.len).collect();
    let digests = Digest::from_prefixes(source, &lens).unwrap_or_default();
    let fits = known.iter().filter(|it| digests.contains(&it.after));
    fits.max_by_key(|it| (it.after.len, it.number)).map(|it| it.number)
}

/// The state of a session's packs in the archive: their number, and a hash of their numbers, sizes
/// and times. It is computed without opening a pack, and changes with every compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackFingerprint {
    /// Number of packs.
    pub count: u64,
    hash: u64,
}

impl PackFingerprint {
    /// The state of a session's packs. If the archive cannot be listed, the result is that of a
    /// session without packs.
    pub fn list(archive: &Archive, key: &SessionKey) -> PackFingerprint {
        let numbers = archive.numbers(&key.folder()).unwrap_or_default().here.into_iter();
        let packs = numbers.map(|number| {
            let facts = archive.facts(key, number).ok();
            let written = facts.and_then(|it| it.written).map(|it| it.as_nanosecond());
            (number, facts.map_or(Bytes(0), |it| it.len), written)
        });
        let packs: Vec<_> = packs.collect();
        let mut hasher = DefaultHasher::new();
        packs.hash(&mut hasher);
        PackFingerprint { count: packs.len() as u64, hash: hasher.finish() }
    }

    /// A number that changes when the packs change.
    pub fn stamp(&self) -> u64 {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use epitome_error::ErrorKind;

    use super::*;

    #[test]
    fn an_archive_that_cannot_be_listed_is_an_error_and_not_an_empty_one() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let archive = Archive::new(dir.path());
        let key = SessionKey::new("claude", "s");
        let session = b"{}\n".as_slice();
        let kind =
            |found: Result<Vec<Generation>>| found.map(|it| it.len()).map_err(|err| err.kind());

        assert_eq!(kind(in_effect(&archive, &key, &session)), Ok(0));

        // A file where the folder of the session's packs belongs: it exists and cannot be listed.
        let folder = archive.store().location(&key.folder());
        std::fs::create_dir_all(folder.parent().expect("below the archive")).expect("a folder");
        std::fs::write(&folder, b"").expect("a file");
        assert_eq!(kind(in_effect(&archive, &key, &session)), Err(ErrorKind::Archive));
    }
}
