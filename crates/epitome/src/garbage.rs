//! Garbage collection: proves from the sessions themselves which generations of the archive are not
//! needed any more.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use epitome_model::{Bytes, Ref, Source};
use jiff::SignedDuration;
use memchr::memmem;

use crate::archive::{
    Archive, Digest, GcMode, GcReport, Generation, Grace, Need, Reason, RecordHash, SessionKey,
    lines,
};
use crate::config::Config;
use crate::error::Result;
use crate::keep::{FileKey, Vault};
use crate::place;
use crate::restore::{Blobs, goes_on_as_appended, walk};
use crate::source::Spliced;
use crate::store::{self, Store};
use epitome_agents::{Census, Presence};

/// The maximum work of proving that a generation is not needed. The proof searches the session's
/// file for all bytes that the generation removed; its work is the length of the file in bytes,
/// times the number of these byte strings. If it would take more, the generation is kept.
const MOST_WORK: u64 = 1 << 36;

/// Cleans up the archive: moves the generations that no session needs to the trash, or only reports
/// them, as `mode` says. See [`Archive::gc`].
///
/// A generation is removed only if it is older than `grace` and proved not to be needed. It is not
/// needed if its own session contains the removed bytes again or does not exist any more, and if
/// neither a version in the vault nor a stub in another session may need these bytes. A generation
/// that only repeats another one is not needed either. If any folder, file or database that could
/// contain a session cannot be read, no generation is removed, and the report names it.
///
/// ```
/// use epitome::archive::{GRACE, GcMode, collect_garbage};
/// use epitome::ops::{Compact, OpenSession};
///
/// # let home = tempfile::tempdir().expect("a folder");
/// # let config = epitome::Config::from_home(home.path());
/// # let path = home.path().join("session.jsonl");
/// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
/// # let run = config.begin_run("example");
/// # let recipe = epitome::built_in("epitome").expect("a recipe");
/// # let counter = epitome_tokens::Estimate::new();
/// Compact::new(&recipe, &counter, &run).run(&OpenSession::new(&config, &path))?;
/// let report = collect_garbage(&config, GRACE, GcMode::Remove)?;
/// // The session needs what was removed from it.
/// assert_eq!((report.sessions.len(), report.kept), (0, 1));
/// # Ok::<(), epitome::Error>(())
/// ```
///
/// # Errors
///
/// The errors of [`Archive::sessions`] and [`Archive::gc`], and of opening the vault.
pub fn collect_garbage(config: &Config, grace: SignedDuration, mode: GcMode) -> Result<GcReport> {
    let archive = config.archive();
    let census = Census::take(&config.agents, &archive.sessions()?);
    let vault = config.vault()?;
    let judge = Judge { config, archive, census, vault, mode, held: RefCell::default() };
    let grace = Grace { now: config.now(), period: grace };
    let mut report = judge.archive.gc(|generations| judge.needs(generations), grace, mode)?;
    let mut left = judge.vault.sweep(mode);
    let in_caches = store::disk::sweep(&config.home.join("cache"), mode);
    left.extend(in_caches.into_iter().map(|left| Bytes(left.len)));
    report.leftovers += left.len() as u64;
    report.leftover_bytes += left.into_iter().sum();
    report.unread.extend(judge.census.unread);
    report.unread.extend(judge.vault.damaged().cloned());
    Ok(report)
}

/// Decides which generations are needed.
struct Judge<'a> {
    config: &'a Config,
    archive: Archive,
    census: Census,
    /// The vault of session versions. A version in it may be compacted, and then needs the archive
    /// when it is restored.
    vault: Vault,
    mode: GcMode,
    /// The locked files of the session whose generations are being judged. Files are locked only if
    /// generations are going to be removed, so that no other epitome process compacts them between
    /// the proof and the removal.
    held: RefCell<Vec<store::LockedSession>>,
}

impl Judge<'_> {
    /// Decides for each generation of a session whether it is needed.
    fn needs(&self, generations: &[Generation]) -> Vec<Need> {
        self.held.borrow_mut().clear();
        let Some(first) = generations.first() else { return Vec::new() };
        let key = first.key();
        let files = match self.files(&key, generations) {
            Ok(files) => files,
            Err(err) => return vec![Need::Unknown(err); generations.len()],
        };
        // All generations are kept if something could not be read (the report names it), because it
        // may be a session that needs them, or if the vault may have a version of this session.
        if !self.census.unread.is_empty() || self.may_be_in_vault(&key, generations) {
            return vec![Need::Needed; generations.len()];
        }
        if files.is_empty() {
            let stubs = &self.census.stubs;
            let mut blobs = generations.iter().flat_map(Generation::blobs);
            let is_needed =
                self.census.knows(&key) || blobs.any(|blob| stubs.contains(&blob.reference()));
            let need = if is_needed { Need::Needed } else { Need::Unneeded(Reason::Gone) };
            return vec![need; generations.len()];
        }
        match self.restored(&files, generations) {
            Ok(restored) => self.needs_of_others(&restored, generations),
            Err(err) => vec![Need::Unknown(err); generations.len()],
        }
    }

    /// Whether the vault has a version of a session, which may be a compacted one. Also true if a
    /// part of the vault cannot be read.
    fn may_be_in_vault(&self, key: &SessionKey, generations: &[Generation]) -> bool {
        let is_kept = |file: &FileKey| {
            let is_part = file.part.as_deref() == Some(&*key.id);
            let is_session = file.agent == key.agent && (file.session == key.id || is_part);
            is_session || generations.iter().any(|generation| generation.path == file.path)
        };
        self.vault.damaged().next().is_some() || self.vault.files().any(is_kept)
    }

    /// The files of a session: where the agents keep it, and where it was compacted.
    ///
    /// # Errors
    ///
    /// The error of the check, if it is unknown whether a file exists.
    fn files(&self, key: &SessionKey, generations: &[Generation]) -> Result<BTreeSet<PathBuf>> {
        let mut files: BTreeSet<PathBuf> = self.census.files_of(key).iter().cloned().collect();
        for generation in generations {
            match self.census.presence(&generation.path) {
                Presence::There => drop(files.insert(generation.path.clone())),
                Presence::Gone => {}
                Presence::Unknown(err) => return Err(err),
            }
        }
        Ok(files)
    }

    /// The numbers of the generations that none of these files needs.
    fn restored(
        &self,
        files: &BTreeSet<PathBuf>,
        generations: &[Generation],
    ) -> Result<BTreeSet<u64>> {
        let mut restored: BTreeSet<u64> = generations.iter().map(|it| it.number).collect();
        for file in files {
            // A file is locked only if at least one of these generations is not needed by it, which
            // is rare. It is then examined again, because it may have changed before it was locked.
            let mut unneeded = of_file(&self.archive, file, generations)?;
            if !unneeded.is_empty() {
                self.hold(file)?;
                unneeded = of_file(&self.archive, file, generations)?;
            }
            restored.retain(|number| unneeded.contains(number));
        }
        Ok(restored)
    }

    /// Locks a file against other epitome processes, if generations are going to be removed.
    fn hold(&self, file: &Path) -> Result<()> {
        if self.mode == GcMode::Remove {
            let session = Store::new(&self.config.home).open_for_edit(file)?;
            self.held.borrow_mut().push(session);
        }
        Ok(())
    }

    /// Decides for each generation of a session whether it is needed. `restored` contains the
    /// numbers of the generations that the session itself does not need. Such a generation is still
    /// needed if the stub of another session refers to its bytes, and no generation that is kept
    /// has these bytes.
    fn needs_of_others(&self, restored: &BTreeSet<u64>, generations: &[Generation]) -> Vec<Need> {
        let kept = generations.iter().filter(|it| !restored.contains(&it.number));
        let kept: HashSet<Ref> =
            kept.flat_map(Generation::blobs).map(|it| it.reference()).collect();
        let needs = generations.iter().map(|generation| {
            let mut names = generation.blobs().map(|blob| blob.reference());
            let is_named =
                names.any(|name| self.census.stubs.contains(&name) && !kept.contains(&name));
            if restored.contains(&generation.number) && !is_named {
                Need::Unneeded(Reason::Restored)
            } else {
                Need::Needed
            }
        });
        needs.collect()
    }
}

/// The numbers of the generations that a file does not need.
fn of_file(archive: &Archive, file: &Path, generations: &[Generation]) -> Result<BTreeSet<u64>> {
    let source = place::open(file)?;
    let Some(first) = generations.first() else { return Ok(BTreeSet::new()) };
    let proved = unneeded(&source, generations, &archive.blobs(&first.key()))?;
    source.failure().map_or(Ok(proved), Err)
}

/// The numbers of the generations of a session that `current` does not need: a restore with the
/// remaining generations still gives everything back.
///
/// A compaction's generation is not needed if `current` begins with the file as it was before; if
/// `current` contains all bytes that the compaction removed, and neither stubs nor records that it
/// wrote; or if another generation that is in effect can restore the same bytes.
pub(crate) fn unneeded(
    current: &dyn Source,
    generations: &[Generation],
    blobs: &dyn Blobs,
) -> Result<BTreeSet<u64>> {
    let (backs, compactions): (Vec<Generation>, Vec<Generation>) =
        generations.iter().cloned().partition(Generation::is_restore);
    let walked = walk(current, &compactions, blobs)?;
    let restored = Spliced::new(current, walked.splices)?;
    let mut unneeded = BTreeSet::new();
    let mut open = Vec::new();
    let (undone, others): (Vec<&Generation>, Vec<&Generation>) =
        compactions.iter().partition(|it| walked.undone.contains(&it.number));
    // Undoing the compactions one by one may have skipped a generation. Such a generation is not
    // needed if one that was undone can restore the same bytes.
    let twins = others
        .into_iter()
        .filter(|other| undone.iter().any(|undone| restores_as_well(undone, other)));
    unneeded.extend(twins.map(|it| it.number));
    for generation in compactions.iter().filter(|it| !walked.left.contains(&it.number)) {
        // A generation is kept if the session may still contain the record that its compaction
        // appended, changed by another program since.
        if goes_on_as_appended(&restored, generation)? {
            continue;
        }
        if walked.begun.contains(&generation.number) && generation.before.len > 0 {
            unneeded.insert(generation.number);
        } else {
            open.push(generation);
        }
    }
    if !open.is_empty() {
        let bytes = restored.read(0..restored.len());
        let hashes = lines(&restored)?.into_iter().map(|line| line.hash).collect();
        for generation in open {
            if has_all(&bytes, &hashes, generation, blobs)? {
                unneeded.insert(generation.number);
            }
        }
    }
    // A restore is archived as a generation, too. This generation is not needed if the session
    // begins with the file from before the restore, and not with the file from after it.
    let lens: Vec<u64> = backs.iter().flat_map(|it| [it.before.len, it.after.len]).collect();
    let digests = Digest::from_prefixes(current, &lens)?;
    let is_before = backs.iter().filter(|it| {
        it.before.len > 0 && digests.contains(&it.before) && !digests.contains(&it.after)
    });
    unneeded.extend(is_before.map(|it| it.number));
    // The generation of a restore is needed only while the generation of some compaction is needed.
    if compactions.iter().all(|it| unneeded.contains(&it.number)) {
        unneeded.extend(generations.iter().map(|it| it.number));
    }
    Ok(unneeded)
}

/// Whether the generation `one` can restore all that `other` can.
fn restores_as_well(one: &Generation, other: &Generation) -> bool {
    let blobs: HashSet<_> = one.blobs().collect();
    // The paths must be equal, because a file outside of the agents' folders can be found again
    // only by the path in its generation.
    one.path == other.path
        && one.before == other.before
        && one.after == other.after
        && other.blobs().all(|blob| blobs.contains(&blob))
}

/// Whether a file contains all bytes that a compaction removed, and no stub or record that the
/// compaction wrote. Also false if the compaction left a record empty, because that cannot be
/// searched for, or if the search would take more than [`MOST_WORK`].
fn has_all(
    bytes: &[u8],
    lines: &HashSet<RecordHash>,
    generation: &Generation,
    blobs: &dyn Blobs,
) -> Result<bool> {
    let shared = generation.shared.as_deref().unwrap_or_default();
    let mut records = generation.records.iter();
    if records.any(|it| it.len == 0 || lines.contains(&it.hash) && !shared.contains(&it.hash)) {
        return Ok(false);
    }
    let removed: BTreeSet<_> = generation.blobs().collect();
    let names: HashSet<Vec<u8>> =
        removed.iter().map(|hash| hash.reference().to_string().into_bytes()).collect();
    let mut words = bytes.windows(1 + Ref::DIGITS).filter(|word| word[0] == b'k');
    if words.any(|word| names.contains(word)) {
        return Ok(false);
    }
    if removed.len() as u64 * bytes.len() as u64 > MOST_WORK {
        return Ok(false);
    }
    for hash in removed {
        let raw = blobs.blob(generation.number, &hash)?;
        if memmem::find(bytes, &raw).is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}
