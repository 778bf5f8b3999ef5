//! Garbage collection: removes generations that are proved to be no longer needed.
//!
//! [`Archive::gc`] first moves a pack to a trash folder in the archive, and deletes it from there
//! only after the grace period.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use epitome_model::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Archive, Digest, Generation, SessionKey, is_damage, pack_name, removed_name};
use crate::store::disk::{self, GcMode};
use epitome_error::{Error, ErrorKind, Result};

/// The trash folder of the archive.
pub(super) const TRASH: &str = ".trash";

/// The default grace period, 14 days: how old an unneeded generation must be to be moved to the
/// trash, and how long its pack then stays there.
pub const GRACE: SignedDuration = SignedDuration::from_hours(14 * 24);

/// Whether a generation is needed.
#[derive(Clone, Debug)]
pub enum Need {
    /// A session needs the generation.
    Needed,
    /// It is proved that no session needs the generation.
    Unneeded(Reason),
    /// It is not known whether the generation is needed. The error says what cannot be read.
    Unknown(Error),
}

/// Why a generation is not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// The session exists and contains all bytes that the generation removed.
    Restored,
    /// The session does not exist any more, and no other session refers to the bytes removed from
    /// it.
    Gone,
}

/// The unneeded generations of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnneededGenerations {
    /// The session.
    pub key: SessionKey,
    /// The path of the session's file, which may not exist any more.
    pub path: PathBuf,
    /// Why the generations are not needed. If the reasons differ, [`Reason::Gone`].
    pub reason: Reason,
    /// Number of generations.
    pub packs: u64,
    /// The total length on disk of the packs of these generations.
    pub stored: Bytes,
}

/// The result of [`Archive::gc`]: what was removed, or with [`GcMode::Show`] would be removed.
#[derive(Clone, Debug, Default)]
pub struct GcReport {
    /// The generations whose packs are moved to the trash, with one entry for each session.
    pub sessions: Vec<UnneededGenerations>,
    /// Number of temporary files that killed processes left.
    pub leftovers: u64,
    /// Total length of the temporary files that killed processes left.
    pub leftover_bytes: Bytes,
    /// Number of sessions that keep at least one generation. Sessions without a readable pack do
    /// not count.
    pub kept: u64,
    /// Number of unneeded generations that are younger than the grace period.
    pub young: u64,
    /// Number of packs that are deleted from the trash.
    pub emptied: u64,
    /// Total length of the packs that are deleted from the trash.
    pub emptied_bytes: Bytes,
    /// Total length of the packs that were in the trash before and remain there. Packs that this
    /// collection moves to the trash do not count.
    pub trash_bytes: Bytes,
    /// The errors of packs and sessions that cannot be read. Generations that such a session may
    /// need are kept.
    pub unread: Vec<Error>,
}

/// The time of a collection, and the grace period.
#[derive(Clone, Copy, Debug)]
pub struct Grace {
    /// The current time.
    pub now: Timestamp,
    /// The age from which the pack of an unneeded generation is moved to the trash, and the time
    /// after which it is deleted from there.
    pub period: SignedDuration,
}

impl Grace {
    /// Whether the grace period is over for something that exists since `since`. False if that time
    /// is in the future.
    fn is_over(&self, since: Timestamp) -> bool {
        self.now.duration_since(since) >= self.period
    }
}

impl Archive {
    /// Removes what is not needed, or only reports it, depending on `mode`.
    ///
    /// - Packs of generations that `judge` proves not to be needed are moved to the trash, if they
    ///   are at least as old as the grace period. `judge` receives all generations of a session,
    ///   and answers for each.
    /// - Packs that have been in the trash for at least the grace period are deleted.
    /// - Temporary files of killed processes are deleted: in the archive, and next to the files of
    ///   the sessions.
    ///
    /// If a pack of a session cannot be read, all packs of that session are kept, because `judge`
    /// needs all of its generations.
    ///
    /// # Errors
    ///
    /// `Archive` if a folder cannot be listed; `NoPermission`, `Unreadable` or `Disk` if a pack
    /// cannot be moved or deleted.
    pub fn gc(
        &self,
        judge: impl Fn(&[Generation]) -> Vec<Need>,
        grace: Grace,
        mode: GcMode,
    ) -> Result<GcReport> {
        let mut report = GcReport::default();
        self.empty_trash(grace, mode, &mut report)?;
        let mut swept = BTreeSet::from([String::new()]);
        let mut next_to = BTreeSet::new();
        for folder in self.session_folders()? {
            swept.insert(folder.clone());
            let generations = self.collect_session(&folder, &judge, grace, mode, &mut report)?;
            let files = generations.iter().map(|it| &it.path).filter(|path| path.is_absolute());
            next_to.extend(files.filter_map(|path| path.parent()).map(Path::to_owned));
        }
        let in_store = swept.iter().flat_map(|folder| self.store.sweep(folder, mode));
        let next_to = next_to.iter().flat_map(|folder| disk::sweep(folder, mode));
        for len in in_store.chain(next_to.map(|left| Bytes(left.len))) {
            report.leftovers += 1;
            report.leftover_bytes += len;
        }
        for folder in self.session_folders()? {
            if mode == GcMode::Remove {
                self.store.remove_if_empty(&folder);
            }
        }
        Ok(report)
    }

    /// Moves all packs of a session to the trash, even if they are needed or damaged. Returns their
    /// number and total length on disk.
    ///
    /// # Errors
    ///
    /// `Archive` if the folder of the session cannot be listed; `NotFound` if there are no packs;
    /// `NoPermission`, `Unreadable` or `Disk` if they cannot be moved.
    pub fn remove(&self, key: &SessionKey, now: Timestamp) -> Result<(u64, Bytes)> {
        let folder = key.folder();
        let numbers = self.numbers(&folder)?.here;
        if numbers.is_empty() {
            let what = "the archive holds nothing of this session";
            return Err(Error::new(ErrorKind::NotFound, what).at(&self.store.location(&folder)));
        }
        let stored = numbers.iter().map(|&number| self.size(&pack_name(&folder, number))).sum();
        self.to_trash(&folder, &numbers, now)?;
        self.store.remove_if_empty(&folder);
        Ok((numbers.len() as u64, stored))
    }

    /// For each generation of a session, its number and the length of its pack on disk.
    ///
    /// # Errors
    ///
    /// `Archive` if the folder of the session cannot be listed.
    pub fn sizes(&self, key: &SessionKey) -> Result<Vec<(u64, Bytes)>> {
        let folder = key.folder();
        let numbers = self.numbers(&folder)?.here.into_iter();
        Ok(numbers.map(|number| (number, self.size(&pack_name(&folder, number)))).collect())
    }

    /// Removes the pack of a generation that was just written, if the session was certainly not
    /// replaced: its file begins with the bytes from before the compaction, and not with those from
    /// after it.
    pub fn withdraw_if_unused(&self, generation: &Generation, session: &Path) {
        let before = generation.before;
        let after = generation.after;
        let digests = crate::place::open(session)
            .and_then(|source| Digest::from_prefixes(&source, &[before.len, after.len]));
        if digests.is_ok_and(|it| it.contains(&before) && !it.contains(&after)) {
            self.withdraw(generation);
        }
    }

    /// Removes the pack of a generation that was just written and that nothing refers to. Does
    /// nothing if the session has a later pack.
    pub fn withdraw(&self, generation: &Generation) {
        let folder = generation.key().folder();
        let name = pack_name(&folder, generation.number);
        // If the pack cannot be removed, it stays until `gc` collects it.
        let last = self.numbers(&folder).ok().and_then(|numbers| numbers.here.last().copied());
        if last == Some(generation.number) && self.store.delete(&name).is_ok() {
            self.store.remove_if_empty(&folder);
        }
    }

    /// Removes the packs of older generations that `made` repeats, so that the same bytes are
    /// stored once however often a session is compacted and restored. Before the call, the session
    /// must have been replaced, and the pack of `made` must have been proved to restore it.
    pub fn remove_repeated(&self, made: &Generation) {
        // Packs that cannot be removed stay until `gc` collects them.
        let Ok(found) = self.generations(&made.key()) else { return };
        if found.whole.iter().all(|it| it != made) {
            return;
        }
        let folder = made.key().folder();
        for old in found.whole.iter().filter(|it| it.is_repeated_by(made)) {
            let is_noted = self.note_removed(&folder, old.number, Some(old)).is_ok();
            if is_noted {
                self.store.delete(&pack_name(&folder, old.number)).ok();
            }
        }
    }

    /// Writes the note that a pack was removed on purpose. `was` is the generation in the pack;
    /// `None` if it cannot be read.
    pub(super) fn note_removed(
        &self,
        folder: &str,
        number: u64,
        was: Option<&Generation>,
    ) -> Result<()> {
        let left = was.filter(|it| !it.is_restore()).map(|it| it.after);
        let text = left.map(|left| serde_json::to_vec(&RemovalNote { left }));
        let text = text.transpose().ok().flatten().unwrap_or_default();
        self.store.write_note(&removed_name(folder, number), &text)
    }

    /// Collects the garbage of one session. If one of its packs cannot be read, all are kept.
    /// Returns the generations that can be read.
    fn collect_session(
        &self,
        folder: &str,
        judge: &impl Fn(&[Generation]) -> Vec<Need>,
        grace: Grace,
        mode: GcMode,
        report: &mut GcReport,
    ) -> Result<Vec<Generation>> {
        let mut generations = Vec::new();
        let numbers = self.numbers(folder)?.here;
        let unread = report.unread.len();
        for &number in &numbers {
            match self.read_generation(&pack_name(folder, number), number) {
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
                Need::Unneeded(_) if !grace.is_over(added_at(generation)) => report.young += 1,
                Need::Unneeded(reason) => {
                    going.push(generation.number);
                    reasons.insert(reason);
                }
            }
        }
        report.kept += u64::from(going.len() < numbers.len());
        let Some(reason) = reasons.pop_last() else { return Ok(generations) };
        let stored = going.iter().map(|&number| self.size(&pack_name(folder, number))).sum();
        if mode == GcMode::Remove {
            self.to_trash(folder, &going, grace.now)?;
        }
        report.sessions.push(UnneededGenerations {
            key: newest.key(),
            path: newest.path.clone(),
            reason,
            packs: going.len() as u64,
            stored,
        });
        Ok(generations)
    }

    /// Moves packs of a session to the trash. Before it moves a pack, it writes a note that the
    /// pack was removed on purpose.
    fn to_trash(&self, folder: &str, going: &[u64], now: Timestamp) -> Result<()> {
        let trash = format!("{TRASH}/{folder}");
        self.store.make_folder(&trash)?;
        // The newest first, so that an interruption leaves numbers without gaps.
        for &number in going.iter().rev() {
            let name = pack_name(folder, number);
            // The note records that the file after the compaction is not an original, and that the
            // number of the generation was used.
            let generation = self.read_unless_damaged(&name, number)?;
            self.note_removed(folder, number, generation.as_ref())?;
            self.move_to(&trash, &name, now)?;
        }
        self.store.flush_folder(&trash)
    }

    /// Reads the generation in a pack. `None` if the pack is damaged.
    pub(super) fn read_unless_damaged(
        &self,
        name: &str,
        number: u64,
    ) -> Result<Option<Generation>> {
        match self.read_generation(name, number) {
            Ok(generation) => Ok(Some(generation)),
            Err(err) if is_damage(&err) => Ok(None),
            Err(err) => Err(err),
        }
    }

    /// Moves a pack into the trash under an unused name.
    fn move_to(&self, trash: &str, name: &str, now: Timestamp) -> Result<()> {
        let last = name.rsplit('/').next().unwrap_or_default();
        let to = format!("{trash}/{last}.{}", now.as_second().max(0));
        if self.store.rename(name, &to)? {
            return Ok(());
        }
        let mut n = 2_u64;
        while !self.store.rename(name, &format!("{to}.{n}"))? {
            n += 1;
        }
        Ok(())
    }

    /// Deletes packs that have been in the trash for at least the grace period. With
    /// [`GcMode::Show`], only counts them.
    fn empty_trash(&self, grace: Grace, mode: GcMode, report: &mut GcReport) -> Result<()> {
        for agent in self.folders_in(TRASH)? {
            for folder in self.folders_in(&agent)? {
                for listed in self.store.list(&folder)? {
                    let Some(since) = trashed_at(listed.name()) else { continue };
                    let name = format!("{folder}/{}", listed.name());
                    let bytes = self.size(&name);
                    if !grace.is_over(since) {
                        report.trash_bytes += bytes;
                        continue;
                    }
                    if mode == GcMode::Remove {
                        self.store.delete(&name)?;
                    }
                    report.emptied += 1;
                    report.emptied_bytes += bytes;
                }
                if mode == GcMode::Remove {
                    self.store.remove_if_empty(&folder);
                }
            }
        }
        Ok(())
    }

    /// The digest that the session's file had right after a compaction whose generation was
    /// removed. `None` if there is no note about the removal, or if the note contains no digest.
    ///
    /// # Errors
    ///
    /// The errors of reading the note.
    pub(super) fn left_by_removed(&self, folder: &str, number: u64) -> Result<Option<Digest>> {
        let note = match self.store.open(&removed_name(folder, number)) {
            Ok(note) => note,
            Err(err) if err.kind() == ErrorKind::NotFound => return Ok(None),
            Err(err) => return Err(err),
        };
        let text = note.read(0..note.len());
        if let Some(err) = note.failure() {
            return Err(err);
        }
        Ok(serde_json::from_slice(&text).ok().map(|note: RemovalNote| note.left))
    }

    /// The length of a pack on disk; 0 if it is unknown.
    pub(super) fn size(&self, name: &str) -> Bytes {
        self.store.facts(name).map_or(Bytes(0), |facts| facts.len)
    }
}

/// When the grace period of a generation begins: when it was imported or, if it was not, made.
fn added_at(generation: &Generation) -> Timestamp {
    generation.imported.unwrap_or(generation.made)
}

/// The content of the note about a pack that was removed on purpose. The note is empty if the pack
/// could not be read or was that of a restore, or if an older version of epitome wrote the note.
#[derive(Serialize, Deserialize)]
struct RemovalNote {
    /// The digest of the file after the compaction.
    left: Digest,
}

/// When a pack was moved to the trash, read from its name there: `000001.pack.1767225600`, followed
/// by a dot and a number if a pack of that name was in the trash already.
fn trashed_at(name: &str) -> Option<Timestamp> {
    let (_, seconds) = name.rsplit_once(".pack.")?;
    let seconds = seconds.split_once('.').map_or(seconds, |(seconds, _)| seconds);
    Timestamp::from_second(seconds.parse().ok()?).ok()
}
