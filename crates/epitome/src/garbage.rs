//! Garbage collection: finds out which generations of the archive are still needed, and proves it
//! from the sessions themselves.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use epitome_model::{Ref, Source};
use jiff::SignedDuration;
use memchr::memmem;

use crate::archive::{
    Archive, Digest, GcMode, GcReport, Generation, Grace, Need, Reason, RecordHash, lines,
};
use crate::config::Config;
use crate::error::Result;
use crate::place;
use crate::restore::{Blobs, goes_on_as_appended, walk};
use crate::source::Spliced;
use crate::store::{self, Store};
use epitome_agents::{Census, Presence};

/// The maximum number of bytes that are searched for removed ones; beyond that, a proof is given
/// up.
const MOST_WORK: u64 = 1 << 36;

/// Cleans up the archive: moves what no session needs to the trash, or only reports it. See
/// [`Archive::gc`].
///
/// A generation is removed only if it is older than `grace` and proved not to be needed: its
/// session contains all bytes again that it removed; or its session is gone, and no other session
/// refers to what was removed from it. If any folder, file or database that could contain a session
/// cannot be read, nothing is removed, and the report names it.
///
/// ```
/// use epitome::archive::{GRACE, GcMode, collect_garbage};
/// use epitome::ops::{Compact, OpenSession};
///
/// # let home = tempfile::tempdir().expect("a folder");
/// # let config = epitome::Config::of_home(home.path());
/// # let path = home.path().join("session.jsonl");
/// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
/// # let run = config.begin_run("example");
/// # let recipe = epitome::built_in("epitome").expect("a recipe");
/// # let counter = epitome_tokens::Estimate::new();
/// Compact::new(&recipe, &counter, &run).run(&OpenSession::at(&config, &path))?;
/// let report = collect_garbage(&config, GRACE, GcMode::Remove)?;
/// // The session needs what was removed from it.
/// assert_eq!((report.sessions.len(), report.kept), (0, 1));
/// # Ok::<(), epitome::Error>(())
/// ```
///
/// # Errors
///
/// `Archive`, `NoPermission` or `Disk` if the archive cannot be listed or a pack cannot be moved.
pub fn collect_garbage(config: &Config, grace: SignedDuration, mode: GcMode) -> Result<GcReport> {
    let archive = config.archive();
    let census = Census::take(&config.agents, &archive.sessions()?);
    // The locks, so that no other epitome process compacts a session between the proof and the
    // removal.
    let held: RefCell<Vec<store::Session>> = RefCell::default();
    let hold = |file: &Path| match mode {
        GcMode::Show => Ok(()),
        GcMode::Remove => {
            let session = Store::new(&config.home).open_for_edit(file)?;
            held.borrow_mut().push(session);
            Ok(())
        }
    };
    let judge = |generations: &[Generation]| {
        held.borrow_mut().clear();
        judge(&archive, &census, &hold, generations)
    };
    let grace = Grace { now: config.now(), period: grace };
    let mut report = archive.gc(judge, grace, mode)?;
    report.unread.extend(census.unread.iter().cloned());
    Ok(report)
}

/// Judges each generation of a session. `hold` locks a file against changes by other processes.
fn judge(
    archive: &Archive,
    census: &Census,
    hold: &dyn Fn(&Path) -> Result<()>,
    generations: &[Generation],
) -> Vec<Need> {
    let all = |need: Need| vec![need; generations.len()];
    let Some(first) = generations.first() else { return Vec::new() };
    let key = first.key();
    let mut files: BTreeSet<PathBuf> = census.files_of(&key).iter().cloned().collect();
    for generation in generations {
        match census.presence(&generation.path) {
            Presence::There => drop(files.insert(generation.path.clone())),
            Presence::Gone => {}
            Presence::Unknown(err) => return all(Need::Unknown(err)),
        }
    }
    // A place that cannot be read may contain a session that needs any of the generations. The
    // report names it.
    if !census.unread.is_empty() {
        return all(Need::Needed);
    }
    let names_one =
        |it: &Generation| it.blobs().any(|blob| census.stubs.contains(&blob.reference()));
    if files.is_empty() {
        return if census.knows(&key) || generations.iter().any(names_one) {
            all(Need::Needed)
        } else {
            all(Need::Unneeded(Reason::Gone))
        };
    }
    let mut unneeded: BTreeSet<u64> = generations.iter().map(|it| it.number).collect();
    for file in files {
        // Most sessions need what was removed from them, and that is decided without a lock.
        let proved = of_file(archive, &file, generations).and_then(|proved| {
            if proved.is_empty() {
                Ok(proved)
            } else {
                hold(&file).and_then(|()| of_file(archive, &file, generations))
            }
        });
        match proved {
            Ok(proved) => unneeded.retain(|number| proved.contains(number)),
            Err(err) => return all(Need::Unknown(err)),
        }
    }
    // Another session may refer to what was removed from this one.
    let kept = generations.iter().filter(|it| !unneeded.contains(&it.number));
    let kept: HashSet<Ref> = kept.flat_map(Generation::blobs).map(|it| it.reference()).collect();
    let is_named = |it: &Generation| {
        let mut names = it.blobs().map(|blob| blob.reference());
        names.any(|name| census.stubs.contains(&name) && !kept.contains(&name))
    };
    let need = |it: &Generation| {
        if unneeded.contains(&it.number) && !is_named(it) {
            Need::Unneeded(Reason::Restored)
        } else {
            Need::Needed
        }
    };
    generations.iter().map(need).collect()
}

/// The numbers of the generations that a file does not need.
fn of_file(archive: &Archive, file: &Path, generations: &[Generation]) -> Result<BTreeSet<u64>> {
    let source = place::open(file)?;
    let Some(first) = generations.first() else { return Ok(BTreeSet::new()) };
    let proved = unneeded(&source, generations, &archive.blobs(&first.key()))?;
    source.failure().map_or(Ok(proved), Err)
}

/// The numbers of the generations of a session that `current` does not need: without them, a
/// restore of the others still gives everything back.
///
/// A generation is not needed if `current` begins with the file before it, or if `current` contains
/// all bytes that the generation removed and none that it left.
pub(crate) fn unneeded(
    current: &dyn Source,
    generations: &[Generation],
    blobs: &dyn Blobs,
) -> Result<BTreeSet<u64>> {
    let compactions = || generations.iter().filter(|it| !it.is_way_back());
    let walked = walk(current, &compactions().cloned().collect::<Vec<_>>(), blobs)?;
    let restored = Spliced::new(current, walked.splices)?;
    let mut unneeded = BTreeSet::new();
    let mut open = Vec::new();
    // A generation is a duplicate if an equal one was undone on the way: either can do the restore.
    let is_twin = |it: &Generation| {
        let mut undone = compactions().filter(|other| walked.undone.contains(&other.number));
        let blobs: HashSet<_> = it.blobs().collect();
        !walked.undone.contains(&it.number)
            && undone.any(|other| {
                // A file outside of the agents' folders can only be found again by the path in its
                // generation.
                other.path == it.path
                    && other.before == it.before
                    && other.after == it.after
                    && other.blobs().collect::<HashSet<_>>().is_superset(&blobs)
            })
    };
    unneeded.extend(compactions().filter(|it| is_twin(it)).map(|it| it.number));
    for generation in compactions().filter(|it| !walked.left.contains(&it.number)) {
        // The records that the agent appended may still be there in another form.
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
    // A restore that was archived as a generation: the file before it is there again, or still is.
    let backs = || generations.iter().filter(|it| it.is_way_back());
    let lens: Vec<u64> = backs().flat_map(|it| [it.before.len, it.after.len]).collect();
    let digests = Digest::of_prefixes(current, &lens)?;
    let is_before = |it: &&Generation| {
        it.before.len > 0 && digests.contains(&it.before) && !digests.contains(&it.after)
    };
    unneeded.extend(backs().filter(is_before).map(|it| it.number));
    // The generation of a restore is needed only as long as that of a compaction is.
    if compactions().all(|it| unneeded.contains(&it.number)) {
        unneeded.extend(generations.iter().map(|it| it.number));
    }
    Ok(unneeded)
}

/// Whether a file contains all bytes that a generation removed, and none that it left.
fn has_all(
    bytes: &[u8],
    lines: &HashSet<RecordHash>,
    generation: &Generation,
    blobs: &dyn Blobs,
) -> Result<bool> {
    let shared = generation.shared.as_deref().unwrap_or_default();
    let is_left = |hash: &RecordHash| lines.contains(hash) && !shared.contains(hash);
    if generation.records.iter().any(|it| it.len == 0 || is_left(&it.hash)) {
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
