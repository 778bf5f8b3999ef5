//! Looking after the archive: is every byte there, and what is no longer needed.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use epitome_model::Bytes;

use super::pack::{Contents, Kind, Pack};
use super::{Archive, Generation, Hash, SessionKey, numbers, pack_path, read_generation};
use crate::error::{Error, ErrorKind, Result};
use crate::store::disk;

/// Whether garbage is only named or taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcMode {
    /// Say what would go.
    Show,
    /// Remove it.
    Remove,
}

/// What [`Archive::verify`] saw.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// Sessions with at least one pack.
    pub sessions: u64,
    /// Packs, damaged ones included.
    pub packs: u64,
    /// Pieces of removed bytes that are what their hash says.
    pub blobs: u64,
    /// Their bytes.
    pub raw: Bytes,
    /// The bytes of all packs on disk.
    pub stored: Bytes,
    /// What is wrong, one error a fault. Each names its pack.
    pub faults: Vec<Error>,
}

/// A session that no file refers to any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// Which.
    pub key: SessionKey,
    /// Where its file was.
    pub path: PathBuf,
    /// Its packs.
    pub packs: u64,
    /// Their bytes on disk.
    pub stored: Bytes,
}

/// What [`Archive::gc`] removed, or would remove.
#[derive(Clone, Debug, Default)]
pub struct GcReport {
    /// Sessions whose packs go.
    pub sessions: Vec<Collected>,
    /// Files that killed processes left.
    pub leftovers: u64,
    /// Their bytes.
    pub leftover_bytes: Bytes,
    /// Sessions that stay because a session file refers to them.
    pub kept: u64,
    /// Packs that cannot be read: their sessions stay, whether something refers to them or not.
    pub unread: Vec<Error>,
}

impl Archive {
    /// Reads everything and says what is not as it was written.
    ///
    /// # Errors
    ///
    /// `NoPermission`, `Unreadable` when a folder cannot be listed. Damage is no error but a fault
    /// in the report.
    pub fn verify(&self) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        for folder in self.session_folders()? {
            let numbers = numbers(&folder)?;
            report.sessions += u64::from(!numbers.is_empty());
            let mut last = 0;
            for number in numbers {
                if number > last + 1 {
                    let path = pack_path(&folder, last + 1);
                    report.faults.push(super::lost(&path, last + 1));
                }
                last = number;
                report.packs += 1;
                let path = pack_path(&folder, number);
                let home = path.strip_prefix(&self.root).ok().and_then(Path::parent);
                match verify_pack(&path, &mut report) {
                    Ok(key) if Some(key.folder().as_path()) != home => {
                        report.faults.push(super::foreign(&path));
                    }
                    Ok(_) => {}
                    Err(err) => report.faults.push(err),
                }
            }
        }
        Ok(report)
    }

    /// Removes the packs of sessions of which no generation is `referred` to any more, and what
    /// killed processes left, in the archive, among the caches beside it and beside the sessions
    /// that it knows; or says what it would remove.
    ///
    /// Sessions with a pack that cannot be read stay: nobody knows what they are of.
    ///
    /// # Errors
    ///
    /// `NoPermission`, `Unreadable`, `Disk` when a folder cannot be listed or a pack not removed.
    pub fn gc(&self, referred: impl Fn(&Generation) -> bool, mode: GcMode) -> Result<GcReport> {
        let mut report = GcReport::default();
        let mut swept = BTreeSet::from([self.root.clone(), self.root.with_file_name("cache")]);
        for folder in self.session_folders()? {
            swept.insert(folder.clone());
            let generations = collect_session(&folder, &referred, mode, &mut report)?;
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
                // Goes only if it is empty.
                fs::remove_dir(&folder).ok();
                folder.parent().map(fs::remove_dir);
            }
        }
        Ok(report)
    }
}

/// Collects one session, if it is to go. Returns its generations that can be read.
fn collect_session(
    folder: &Path,
    referred: &impl Fn(&Generation) -> bool,
    mode: GcMode,
    report: &mut GcReport,
) -> Result<Vec<Generation>> {
    let mut generations = Vec::new();
    let mut stored = 0;
    let numbers = numbers(folder)?;
    let unread = report.unread.len();
    for &number in &numbers {
        let path = pack_path(folder, number);
        stored += fs::metadata(&path).map_or(0, |meta| meta.len());
        match read_generation(&path, number) {
            Ok(generation) => generations.push(generation),
            Err(err) => report.unread.push(err),
        }
    }
    let Some(newest) = generations.last() else { return Ok(generations) };
    if report.unread.len() > unread || generations.iter().any(referred) {
        report.kept += 1;
        return Ok(generations);
    }
    if mode == GcMode::Remove {
        // Newest first: what is left after an interruption is a beginning without gaps.
        for &number in numbers.iter().rev() {
            let path = pack_path(folder, number);
            fs::remove_file(&path).map_err(|err| Error::writing(err, "the archive", &path))?;
        }
    }
    report.sessions.push(Collected {
        key: newest.key(),
        path: newest.path.clone(),
        packs: numbers.len() as u64,
        stored: Bytes(stored),
    });
    Ok(generations)
}

/// Reads all of a pack. Returns whose it is.
pub(super) fn verify_pack(path: &Path, report: &mut VerifyReport) -> Result<SessionKey> {
    let pack = Pack::open(path)?;
    report.stored += Bytes(pack.len());
    let fault = |what: &str| Error::new(ErrorKind::Archive, what).at(path);
    if pack.contents == Contents::Rebuilt {
        report.faults.push(fault("the table of contents is damaged; the bytes can be read"));
    }
    if !pack.has_header() {
        report.faults.push(fault("the first bytes are damaged; the others can be read"));
    }
    let mut held: HashSet<Hash> = HashSet::new();
    for entry in pack.entries() {
        if !pack.has_record(entry) {
            report.faults.push(fault("a record is damaged; its bytes can be read"));
        }
        match pack.raw(entry) {
            Err(err) => report.faults.push(err),
            Ok(raw) if entry.kind == Kind::Blob => {
                report.blobs += 1;
                report.raw += Bytes(raw.len() as u64);
                held.insert(entry.hash);
            }
            Ok(_) => {}
        }
    }
    let generation = pack.generation()?;
    if let Err(err) = generation.check(&held) {
        report.faults.push(fault("this generation cannot be undone").because(err));
    }
    let key = pack.key()?;
    if key != generation.key() {
        report.faults.push(fault("a pack names two sessions"));
    }
    Ok(key)
}
