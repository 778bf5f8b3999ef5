//! Taking out of the archive what is proved to be no longer needed.
//!
//! Nothing is deleted on an inference. What goes is moved to a trash folder in the archive first,
//! and leaves that only when the grace period is over.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use epitome_model::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    Archive, Digest, Generation, SessionKey, folders_in, names_in, numbers, pack_path,
    read_generation, removed_path,
};
use crate::regular;
use crate::store::disk::{self, GcMode};
use epitome_error::{Error, ErrorKind, Result};

/// The folder in the archive that holds what was removed.
pub(super) const TRASH: &str = ".trash";

/// How long a removable generation stays, and again in the trash: 14 days.
pub const GRACE: SignedDuration = SignedDuration::from_hours(14 * 24);

/// What is known of a generation when the archive is cleaned up.
#[derive(Clone, Debug)]
pub enum Need {
    /// A session needs it.
    Needed,
    /// It is proved that none does.
    Unneeded(Reason),
    /// It cannot be told. The error says what cannot be read.
    Unknown(Error),
}

/// Why a generation is not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The session is there and has all bytes that it removed.
    Restored,
    /// The session is gone, and no other names what was removed from it.
    Gone,
}

/// Generations of a session that are not needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// Which session.
    pub key: SessionKey,
    /// Where its file is, or was.
    pub path: PathBuf,
    /// Why.
    pub reason: Reason,
    /// How many.
    pub packs: u64,
    /// Their bytes on disk.
    pub stored: Bytes,
}

/// What [`Archive::gc`] removed, or would remove.
#[derive(Clone, Debug, Default)]
pub struct GcReport {
    /// Sessions of which packs go to the trash.
    pub sessions: Vec<Collected>,
    /// Files that killed processes left.
    pub leftovers: u64,
    /// Their bytes.
    pub leftover_bytes: Bytes,
    /// Sessions of which at least one generation stays.
    pub kept: u64,
    /// Generations that are not needed and younger than the grace period.
    pub young: u64,
    /// Packs that leave the trash for good.
    pub emptied: u64,
    /// Their bytes.
    pub emptied_bytes: Bytes,
    /// Bytes that stay in the trash.
    pub trash_bytes: Bytes,
    /// What cannot be read: what it may be needed for stays.
    pub unread: Vec<Error>,
}

/// When a cleaning up is, and what is too young for it.
#[derive(Clone, Copy, Debug)]
pub struct Grace {
    /// What is the time.
    pub now: Timestamp,
    /// How long what is not needed stays.
    pub period: SignedDuration,
}

impl Grace {
    /// Whether something of that time is old enough to go. The future is young.
    fn is_over(&self, since: Timestamp) -> bool {
        self.now.duration_since(since) >= self.period
    }
}

impl Archive {
    /// Moves the packs of generations that `judge` proves not to be needed to the trash, empties
    /// the trash of what is older than the grace period, and removes what killed processes left, in
    /// the archive, among the caches next to it and next to the sessions that it knows; or says
    /// what it would do. `judge` gets all generations of a session and answers for each.
    ///
    /// Sessions with a pack that cannot be read stay: it cannot be told what they are of.
    ///
    /// # Errors
    ///
    /// `Archive`, `NoPermission`, `Disk` when a folder cannot be listed or a pack not moved.
    pub fn gc(
        &self,
        judge: impl Fn(&[Generation]) -> Vec<Need>,
        grace: Grace,
        mode: GcMode,
    ) -> Result<GcReport> {
        let mut report = GcReport::default();
        self.empty_trash(grace, mode, &mut report)?;
        let mut swept = BTreeSet::from([self.root.clone(), self.root.with_file_name("cache")]);
        for folder in self.session_folders()? {
            swept.insert(folder.clone());
            let generations = self.collect_session(&folder, &judge, grace, mode, &mut report)?;
            let files = generations.iter().map(|it| &it.path).filter(|path| path.is_absolute());
            swept.extend(files.filter_map(|path| path.parent()).map(Path::to_owned));
        }
        for folder in swept {
            for left in disk::sweep(&folder, mode) {
                report.leftovers += 1;
                report.leftover_bytes += Bytes(left.len);
            }
        }
        for folder in self.session_folders()? {
            if mode == GcMode::Remove {
                remove_if_empty(&folder);
            }
        }
        Ok(report)
    }

    /// Moves all packs of a session to the trash, whether they are needed or not, damaged ones
    /// included. Returns how many, and their bytes.
    ///
    /// # Errors
    ///
    /// `NotFound` when there are none; `NoPermission`, `Unreadable`, `Disk`.
    pub fn remove(&self, key: &SessionKey, now: Timestamp) -> Result<(u64, Bytes)> {
        let folder = self.folder(key);
        let numbers = numbers(&folder)?;
        if numbers.is_empty() {
            let what = "the archive holds nothing of this session";
            return Err(Error::new(ErrorKind::NotFound, what).at(&folder));
        }
        let stored = numbers.iter().map(|&number| size(&pack_path(&folder, number))).sum();
        self.to_trash(&folder, &numbers, now)?;
        remove_if_empty(&folder);
        Ok((numbers.len() as u64, Bytes(stored)))
    }

    /// The bytes on disk of each generation of a session, by number.
    ///
    /// # Errors
    ///
    /// `Archive` when its folder cannot be listed.
    pub fn sizes(&self, key: &SessionKey) -> Result<Vec<(u64, Bytes)>> {
        let folder = self.folder(key);
        let sized = |number| (number, Bytes(size(&pack_path(&folder, number))));
        Ok(numbers(&folder)?.into_iter().map(sized).collect())
    }

    /// Withdraws the pack of a generation after a session was not replaced, if it is seen that it
    /// was not: it begins with what the generation began with, and not with what it left.
    pub fn withdraw_if_unused(&self, generation: &Generation, session: &Path) {
        let (before, after) = (generation.before, generation.after);
        let digests = crate::place::open(session)
            .and_then(|source| Digest::of_prefixes(&source, &[before.len, after.len]));
        if digests.is_ok_and(|it| it.contains(&before) && !it.contains(&after)) {
            self.withdraw(generation);
        }
    }

    /// Removes the pack of a generation that was just written and to which nothing refers.
    pub fn withdraw(&self, generation: &Generation) {
        let folder = self.folder(&generation.key());
        let path = pack_path(&folder, generation.number);
        // It is garbage if this fails, and `gc` proves that.
        let is_last = numbers(&folder).is_ok_and(|it| it.last() == Some(&generation.number));
        if is_last && fs::remove_file(&path).is_ok() {
            remove_if_empty(&folder);
        }
    }

    /// Collects generations of one session. Returns those that can be read.
    fn collect_session(
        &self,
        folder: &Path,
        judge: &impl Fn(&[Generation]) -> Vec<Need>,
        grace: Grace,
        mode: GcMode,
        report: &mut GcReport,
    ) -> Result<Vec<Generation>> {
        let mut generations = Vec::new();
        let numbers = numbers(folder)?;
        let unread = report.unread.len();
        for &number in &numbers {
            match read_generation(&pack_path(folder, number), number) {
                Ok(generation) => generations.push(generation),
                Err(err) => report.unread.push(err),
            }
        }
        let Some(newest) = generations.last() else { return Ok(generations) };
        if report.unread.len() > unread {
            report.kept += 1;
            return Ok(generations);
        }
        let mut going = Vec::new();
        let mut reasons = BTreeSet::new();
        for (generation, need) in generations.iter().zip(judge(&generations)) {
            match need {
                Need::Needed => {}
                Need::Unknown(err) => {
                    if report.unread.iter().all(|known| known.to_string() != err.to_string()) {
                        report.unread.push(err);
                    }
                }
                Need::Unneeded(_) if !grace.is_over(since(generation)) => report.young += 1,
                Need::Unneeded(reason) => {
                    going.push(generation.number);
                    reasons.insert(reason);
                }
            }
        }
        report.kept += u64::from(going.len() < numbers.len());
        let Some(reason) = reasons.pop_last() else { return Ok(generations) };
        let stored = going.iter().map(|&number| size(&pack_path(folder, number))).sum();
        if mode == GcMode::Remove {
            self.to_trash(folder, &going, grace.now)?;
        }
        report.sessions.push(Collected {
            key: newest.key(),
            path: newest.path.clone(),
            reason,
            packs: going.len() as u64,
            stored: Bytes(stored),
        });
        Ok(generations)
    }

    /// Moves packs of a session to the trash. A small file says of each that it is not missing.
    fn to_trash(&self, folder: &Path, going: &[u64], now: Timestamp) -> Result<()> {
        let failed = |err, path: &Path| Error::writing(err, "the archive", path);
        let inside = folder.strip_prefix(&self.root).unwrap_or(folder);
        let trash = self.root.join(TRASH).join(inside);
        disk::private_folder(&trash)?;
        // Newest first: what is left after an interruption is a beginning without gaps.
        for &number in going.iter().rev() {
            let path = pack_path(folder, number);
            // What it left is never taken for an original, and its number never given again.
            let generation = read_generation(&path, number).ok();
            let left = generation.filter(|it| !it.is_way_back()).map(|it| it.after);
            let text = left.map(|left| serde_json::to_vec(&Mark { left }));
            let text = text.transpose().ok().flatten().unwrap_or_default();
            let note = removed_path(folder, number);
            fs::write(&note, text).map_err(|err| failed(err, &note))?;
            move_beside(&path, &trash, now).map_err(|err| failed(err, &path))?;
        }
        disk::flush_folder(&trash).map_err(|err| failed(err, &trash))
    }

    /// Deletes what has been in the trash for longer than the grace period.
    fn empty_trash(&self, grace: Grace, mode: GcMode, report: &mut GcReport) -> Result<()> {
        for agent in folders_in(&self.root.join(TRASH))? {
            for folder in folders_in(&agent)? {
                for name in names_in(&folder)? {
                    let Some(since) = name.to_str().and_then(trashed_at) else { continue };
                    let path = folder.join(&name);
                    let bytes = Bytes(size(&path));
                    if !grace.is_over(since) {
                        report.trash_bytes += bytes;
                        continue;
                    }
                    if mode == GcMode::Remove {
                        let failed = |err| Error::writing(err, "the archive", &path);
                        fs::remove_file(&path).map_err(failed)?;
                    }
                    report.emptied += 1;
                    report.emptied_bytes += bytes;
                }
                if mode == GcMode::Remove {
                    remove_if_empty(&folder);
                }
            }
        }
        Ok(())
    }
}

/// When a generation came into the archive.
fn since(generation: &Generation) -> Timestamp {
    generation.imported.unwrap_or(generation.made)
}

/// What is left of a pack that was removed on purpose. Older versions left nothing.
#[derive(Serialize, Deserialize)]
struct Mark {
    /// The file as the generation left it.
    left: Digest,
}

/// What the generation left that was removed, if that is known.
pub(super) fn left_by_removed(folder: &Path, number: u64) -> Option<Digest> {
    let text = regular::read(&removed_path(folder, number)).ok()?;
    serde_json::from_slice(&text).ok().map(|mark: Mark| mark.left)
}

/// Moves a pack into the trash under a name that nothing has.
fn move_beside(path: &Path, trash: &Path, now: Timestamp) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("{name}.{}", now.as_second().max(0));
    let mut n = 1_u64;
    loop {
        let to = match n {
            1 => trash.join(&name),
            _ => trash.join(format!("{name}.{n}")),
        };
        match fs::hard_link(path, &to) {
            Ok(()) => return fs::remove_file(path),
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => n += 1,
            // A disk without hard links.
            Err(_) if fs::symlink_metadata(&to).is_err() => return fs::rename(path, &to),
            Err(_) => n += 1,
        }
    }
}

/// When a pack came into the trash, as its name says: `000001.pack.1767225600`, and with a number
/// behind it where that was taken.
fn trashed_at(name: &str) -> Option<Timestamp> {
    let (_, seconds) = name.rsplit_once(".pack.")?;
    let seconds = seconds.split_once('.').map_or(seconds, |(seconds, _)| seconds);
    Timestamp::from_second(seconds.parse().ok()?).ok()
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

/// Removes the folder of a session, and that of its agent, if nothing is in them.
fn remove_if_empty(folder: &Path) {
    let removed: io::Result<()> = fs::remove_dir(folder);
    if let (Ok(()), Some(parent)) = (removed, folder.parent()) {
        fs::remove_dir(parent).ok();
    }
}
