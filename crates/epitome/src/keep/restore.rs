//! Restores a version of a session to the place where its agent keeps the session.

mod completion;
mod rolled_back;
mod workspace;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use epitome_agents::{Environment, UnreadErrors, companions_of, find_agent};
use epitome_model::{Bytes, Source};
use jiff::Timestamp;
use serde::Serialize;

use super::moved::{is_superseded, numbers_before, present_path, versions_at_place};
use super::parts::{own_files, parts_of};
use super::unfinished::{IntendedFile, Intention, RestoreRecords};
use super::{Cause, FileKey, Vault, Version, place_here};
pub use completion::InterruptedRestore;
use completion::complete_all;
pub(super) use completion::complete_restores;
pub(crate) use completion::{complete_restores_of, interrupted_restores};
use rolled_back::{RolledBackFile, difference};
use workspace::Workspace;
pub(crate) use workspace::remove_abandoned;

use crate::archive::{Digest, Hash};
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::ops::{LockedFile, SessionPart, check_replaceable, replace_all};
use crate::place::Place;
use crate::rows;
use crate::source::{FileSource, copy};
use crate::store::{disk, write_new};
use crate::vault::{Committed, Put};

/// Restores one version of a kept session. Each file that belongs to the session is restored to its
/// last version that had been seen when this version was seen. If the file did not exist then, it
/// is restored to its last version from before the next version of the session or, if it did not
/// exist then either, deleted, after its present content was kept as a version. Rows of a database,
/// and files of which the vault cannot say whether they existed, are not deleted.
#[derive(Clone, Copy, Debug)]
pub struct RestoreVersion<'a> {
    /// The session, or a file that belongs to one: then only that file is restored.
    pub file: &'a FileKey,
    /// The number of the version of `file`.
    pub number: u64,
    /// Whether to continue if another process uses the session.
    pub force: bool,
}

/// What was restored. Its serde form is the JSON of `epitome restore --at --json` (`docs/json.md`),
/// to which members are only added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RestoredVersion {
    /// The name of the agent.
    pub agent: String,
    /// The id of the session.
    pub session: String,
    /// The address of the file that was written.
    #[serde(serialize_with = "epitome_model::lossy_path")]
    pub path: PathBuf,
    /// The number of the version.
    pub version: u64,
    /// When a scan saw the version.
    pub seen: Timestamp,
    /// The length of the content.
    pub bytes: Bytes,
    /// The hash of the content. The content was checked against it.
    pub blake3: Hash,
    /// Whether the file had this content already: nothing was written then.
    pub unchanged: bool,
    /// The number of the version with the content that the file had before. `None` if there was no
    /// file, in a dry run, and for a copy.
    pub replaced: Option<u64>,
    /// Whether the file was deleted, because it did not exist when the version of the session was
    /// seen. `version` is then the number of the version that says so, or 0.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// Whether the report is of a dry run, which changes nothing.
    pub dry_run: bool,
    /// The files that belong to the session and were restored or deleted with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<RestoredVersion>,
}

/// A version of a session in a temporary folder, which is removed when the value is dropped.
#[derive(Debug)]
pub struct VersionFolder {
    _folder: Workspace,
    session: PathBuf,
}

impl VersionFolder {
    /// The path of the session's file.
    pub fn session(&self) -> &Path {
        &self.session
    }
}

impl RestoreVersion<'_> {
    /// Proves that the version can be restored, and reports what would be done. Nothing is written.
    ///
    /// # Errors
    ///
    /// The errors of [`run`](RestoreVersion::run). It is no error if the session is in use.
    pub fn plan(&self, config: &Config, vault: &Vault) -> Result<RestoredVersion> {
        let mut targets = self.targets_here(config, vault)?;
        for target in &mut targets {
            target.report.dry_run = true;
            if let Ok(present) = target.present() {
                target.report.unchanged = target.has(&present)?;
                if !target.report.unchanged {
                    target.check_replaceable(&present)?;
                }
            }
        }
        Ok(joined(targets))
    }

    /// As [`plan`](RestoreVersion::plan), for [`write_copy`](RestoreVersion::write_copy), which
    /// also works if the session itself cannot be written.
    ///
    /// # Errors
    ///
    /// `NotArchived`, `NotFound` or `Archive`, as [`run`](RestoreVersion::run).
    pub fn plan_copy(&self, vault: &Vault, out: &Path) -> Result<RestoredVersion> {
        let target = RolledBackFile::open(vault, self.file, self.number)?;
        Ok(RestoredVersion { path: out.to_owned(), dry_run: true, ..target.report })
    }

    /// Writes the version of `file` to a new file, without the files that belong to the session.
    /// The session is unchanged.
    ///
    /// # Errors
    ///
    /// The errors of [`plan_copy`](RestoreVersion::plan_copy); `Exists` if there is such a file;
    /// `Disk` or `NoPermission`.
    pub fn write_copy(&self, vault: &Vault, out: &Path) -> Result<RestoredVersion> {
        let target = RolledBackFile::open(vault, self.file, self.number)?;
        target.write_new(out).map_err(Error::while_writing)?;
        Ok(RestoredVersion { path: out.to_owned(), ..target.report })
    }

    /// Writes the version, and the files that belong to the session, to a temporary folder, so that
    /// the version can be read like a session. Of the files that belong to the session, those
    /// outside of the session's folder are left out, and so are those that are rows of a database.
    ///
    /// # Errors
    ///
    /// The errors of [`plan_copy`](RestoreVersion::plan_copy); `Disk` if the folder cannot be
    /// written.
    pub fn to_folder(&self, config: &Config, vault: &Vault) -> Result<VersionFolder> {
        let folder = Workspace::new(config)?;
        let failed = |err| Error::writing(err, "the version", folder.path());
        let own = present_path(config, vault, self.file);
        let own = own.parent().unwrap_or(Path::new(""));
        let mut session = None;
        for target in self.restored(config, vault)? {
            let path = present_path(config, vault, &target.from);
            let name = match path.strip_prefix(own) {
                _ if rows::split(&target.from.path).is_some() => None,
                Ok(name) => Some(name.to_owned()),
                Err(_) => None,
            };
            let name = match (name, &session) {
                (Some(name), _) => name,
                // The rows of a session are written as a file, which epitome reads like a session.
                (None, None) => PathBuf::from(format!("{}.jsonl", target.from.session)),
                (None, Some(_)) => continue,
            };
            let path = folder.path().join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(failed)?;
            }
            target.write_new(&path)?;
            session.get_or_insert(path);
        }
        let session = session.unwrap_or_else(|| folder.path().to_owned());
        Ok(VersionFolder { _folder: folder, session })
    }

    /// Restores the version to the place where its agent keeps the session. The present content is
    /// kept as a version first. A deleted session is created again. If one file cannot be replaced,
    /// none is. If the process is killed in between, or a deleted file cannot be created again, the
    /// next restore of the session, or the next scan of a [`Keeper`](super::Keeper), completes it.
    ///
    /// # Errors
    ///
    /// `NotArchived` if there is no such version; `NotFound` if the file was deleted in the
    /// version; `Archive` if a part of the version is missing or damaged; `InUse`, `HeldByAgent` or
    /// `Locked` if another process uses the session; `Changed` if the session is written to all the
    /// time; `Unsupported` if sessions at this place cannot be written in this way, if another
    /// machine kept the session at a place that this one does not have, or if the agent would not
    /// read the file as part of the session; the errors of replacing. The session is unchanged
    /// then. `Disk` or `NoPermission` also if, after the files were replaced, a deleted file cannot
    /// be created again or the vault cannot be written. Also the error of an earlier restore of the
    /// session that was interrupted and cannot be completed.
    pub fn run(&self, config: &Config, vault: &mut Vault) -> Result<RestoredVersion> {
        if vault.machine().is_empty() {
            *vault = config.create_vault()?;
        }
        let records = RestoreRecords::lock(config)?;
        // Restores of other sessions are left to their next restores, and to the next scan.
        let is_own =
            |file: &FileKey| (&file.agent, &file.session) == (&self.file.agent, &self.file.session);
        let left = complete_all(&records, config, vault, is_own).errors.into_iter().next();
        left.map_or(Ok(()), Err)?;
        let mut targets = self.targets_here(config, vault)?;
        keep_present(config, vault, &mut targets)?;
        let changed: Vec<&RolledBackFile> =
            targets.iter().filter(|target| !target.report.unchanged).collect();
        let files: Vec<IntendedFile> =
            changed.iter().map(|target| target.intended(vault)).collect::<Result<_>>()?;
        // A single file is replaced in one step, so it needs no record.
        let record = match files.len() {
            0 | 1 => None,
            _ => Some(records.add(&Intention::new(self.file, self.number, files.clone()))?),
        };
        let done = self
            .write(config, vault, &changed)
            .and_then(|()| keep_restored(config, vault, &changed));
        // If only some of the files were replaced, the record stays, so that the restore is
        // completed later.
        let is_ended = done.is_ok() || changed.iter().zip(&files).all(|(it, file)| it.is_as(file));
        if let Some(record) = record.filter(|_| is_ended) {
            records.remove(&record);
        }
        done.map(|()| joined(targets))
    }

    /// Replaces the files that exist, creates the deleted ones again, and deletes those that did
    /// not exist when the version was seen.
    fn write(&self, config: &Config, vault: &Vault, targets: &[&RolledBackFile]) -> Result<()> {
        let (restored, deleted): (Vec<&RolledBackFile>, Vec<&RolledBackFile>) =
            targets.iter().partition(|target| target.content.is_some());
        let deleted: Vec<&RolledBackFile> =
            deleted.into_iter().filter(|it| it.is_there()).collect();
        let (here, gone): (Vec<&RolledBackFile>, Vec<&RolledBackFile>) =
            restored.into_iter().partition(|target| target.is_there());
        // If one of the files is in use, none is changed.
        let locked = deleted.iter().map(|target| self.lock_kept(config, vault, target));
        let locked: Vec<LockedFile> = locked.collect::<Result<_>>()?;
        self.replace(config, &here)?;
        for (n, target) in gone.iter().enumerate() {
            if let Err(err) = target.make_again(vault) {
                // If no file was replaced, nothing is changed when the new ones are removed.
                if here.is_empty() {
                    gone[..n].iter().for_each(|made| drop(fs::remove_file(&made.file.path)));
                }
                return Err(err);
            }
        }
        for file in locked {
            file.file.check_unchanged()?;
            disk::remove(&file.path)
                .map_err(|err| Error::writing(err, "the folder of the session", &file.path))?;
        }
        Ok(())
    }

    /// Locks a file that is going to be deleted, and makes sure that the vault has its content.
    fn lock_kept(
        &self,
        config: &Config,
        vault: &Vault,
        target: &RolledBackFile,
    ) -> Result<LockedFile> {
        let path = &target.file.path;
        let part = SessionPart::at(path);
        check_replaceable(&part, Some(0))?;
        let locked = LockedFile::lock(config, &part, None, self.force)?;
        let present = Digest::from_source(&target.present()?)?;
        match vault.versions(&target.file).next_back() {
            Some(last) if last.digest == present => Ok(locked),
            _ => Err(Error::new(ErrorKind::Changed, "the session changed meanwhile").at(path)),
        }
    }

    /// The files to restore or delete, at their places on this machine.
    fn targets_here(&self, config: &Config, vault: &Vault) -> Result<Vec<RolledBackFile>> {
        let mut targets = self.restored(config, vault)?;
        for target in &mut targets {
            target.move_here(config, vault)?;
            target.check_place()?;
        }
        self.check_listed(config, vault, &targets)?;
        // Imported versions may name any file, so only files of the session are deleted.
        let own = targets.first().map(|target| target.file.path.clone()).unwrap_or_default();
        let parts = companions_of(find_agent(&self.file.agent), &own);
        for mut target in self.absent(config, vault)? {
            let is_file = target.move_here(config, vault).is_ok()
                && matches!(target.place, Place::File(_))
                && rows::split(&target.file.path).is_none();
            if is_file && (parts.contains(&target.file.path) || !target.is_there()) {
                targets.push(target);
            }
        }
        Ok(targets)
    }

    /// The files to restore, the session's own first.
    fn restored(&self, config: &Config, vault: &Vault) -> Result<Vec<RolledBackFile>> {
        let mut targets = vec![RolledBackFile::open(vault, self.file, self.number)?];
        for (part, version) in self.parts_then(config, vault)? {
            if let Some(version) = version.filter(|version| !version.is_deleted()) {
                targets.push(RolledBackFile::open(vault, &part, version.number)?);
            }
        }
        Ok(targets)
    }

    /// The kept files that belong to the session and did not exist when the version was seen.
    fn absent(&self, config: &Config, vault: &Vault) -> Result<Vec<RolledBackFile>> {
        let seen = vault.version(self.file, self.number)?.seen;
        let mut targets = Vec::new();
        for (part, version) in self.parts_then(config, vault)? {
            match version {
                Some(version) if version.is_deleted() => {
                    targets.push(RolledBackFile::absent(&part, version.number, version.seen));
                }
                Some(_) => {}
                None => {
                    // If the first version was removed, the file may have existed before.
                    let all = versions_at_place(config, vault, &part);
                    if all.first().is_some_and(|(_, first)| first.number == 1) {
                        targets.push(RolledBackFile::absent(&part, 0, seen));
                    }
                }
            }
        }
        let unseen = self.never_kept(config, vault)?;
        targets.extend(unseen.iter().map(|part| RolledBackFile::absent(part, 0, seen)));
        Ok(targets)
    }

    /// The files that belong to the session now and of which the vault has no version. They are
    /// newer than the version to restore, unless that is the last one: then the result is empty.
    /// Files that cannot be read are left out.
    fn never_kept(&self, config: &Config, vault: &Vault) -> Result<Vec<FileKey>> {
        let is_last = self.next_seen(config, vault).is_none();
        if is_last || self.file.part.is_some() || self.file.machine != vault.machine() {
            return Ok(Vec::new());
        }
        let own = place_here(config, vault, self.file)?;
        let kept: BTreeSet<PathBuf> =
            vault.files().filter_map(|file| place_here(config, vault, file).ok()).collect();
        let mut parts = companions_of(find_agent(&self.file.agent), &own);
        parts.retain(|path| !kept.contains(path) && FileSource::open(path).is_ok());
        let key = |path: PathBuf| {
            let part = Some(super::part_name(&path));
            FileKey { part, path, ..self.file.clone() }
        };
        Ok(parts.into_iter().map(key).collect())
    }

    /// The kept files that belong to the session, each with its last version that had been seen
    /// when the version to restore was seen. If the file did not exist then, but was made before
    /// the next version of the session was seen, with its last version from before that one.
    fn parts_then<'v>(
        &self,
        config: &Config,
        vault: &'v Vault,
    ) -> Result<Vec<(FileKey, Option<&'v Version>)>> {
        if self.file.part.is_some() {
            return Ok(Vec::new());
        }
        let seen = vault.version(self.file, self.number)?.seen;
        let until = self.next_seen(config, vault);
        let parts = parts_of(config, vault, self.file).into_iter();
        // In a home that was copied, a file may have been kept at its old place and at its new one.
        let mut newest: BTreeMap<PathBuf, (FileKey, Option<&Version>)> = BTreeMap::new();
        for part in parts.filter(|part| !is_superseded(config, vault, part)) {
            let versions = versions_at_place(config, vault, part);
            let last = |is_before: &dyn Fn(Timestamp) -> bool| {
                versions.iter().rfind(|(_, version)| is_before(version.seen))
            };
            let then = last(&|time| time <= seen);
            let later = last(&|time| until.is_none_or(|until| time < until));
            let is_there = |it: &&(FileKey, &Version)| !it.1.is_deleted();
            let then = match then.filter(is_there).or(later.filter(is_there)).or(then) {
                Some((part, version)) => (part.clone(), Some(*version)),
                None => (part.clone(), None),
            };
            let place = place_here(config, vault, part).unwrap_or_else(|_| part.path.clone());
            let time = |then: &(FileKey, Option<&Version>)| then.1.map(|version| version.seen);
            if newest.get(&place).is_none_or(|other| time(other) <= time(&then)) {
                newest.insert(place, then);
            }
        }
        Ok(newest.into_values().collect())
    }

    /// When the next version of the file was seen. `None` if the version to restore is the last
    /// one.
    fn next_seen(&self, config: &Config, vault: &Vault) -> Option<Timestamp> {
        let versions = versions_at_place(config, vault, self.file).into_iter();
        let mut later = versions.filter(|(_, version)| version.number > self.number);
        later.next().map(|(_, version)| version.seen)
    }

    /// Returns an error if the agent would not read one of the files as a file of this session:
    /// imported versions may name any file in the agent's folder, for example its settings. To find
    /// out, the contents are written to an empty home folder, and the agent's sessions in it are
    /// listed. Rows of a database, and files outside of the agent's folder, are not checked.
    ///
    /// # Errors
    ///
    /// `Unsupported`, with the file; `Archive` if the session's own file, which a file that belongs
    /// to the session needs, cannot be read from the vault; `Disk` or `NoPermission` if the
    /// contents cannot be written.
    fn check_listed(
        &self,
        config: &Config,
        vault: &Vault,
        targets: &[RolledBackFile],
    ) -> Result<()> {
        let Some(agent) = find_agent(&self.file.agent) else { return Ok(()) };
        let here = agent.folder(&config.agents);
        let files: Vec<(&RolledBackFile, &Path)> = targets
            .iter()
            .filter(|target| matches!(target.place, Place::File(_)))
            .filter_map(|target| Some((target, target.file.path.strip_prefix(&here).ok()?)))
            .collect();
        if files.is_empty() {
            return Ok(());
        }
        let home = Workspace::new(config)?;
        let failed = |err| Error::reading(err, "the version", home.path());
        let environment = Environment::from_home(&home.path().canonicalize().map_err(failed)?);
        let there = agent.folder(&environment);
        for (target, rest) in &files {
            target.content.as_ref().map_or(Ok(()), |it| write_below(&there, rest, it))?;
        }
        if self.file.part.is_some() {
            // The agent finds a file that belongs to a session only by the session's own file.
            let (rest, content) = self.own_file(config, vault, &here)?;
            write_below(&there, &rest, &content)?;
        }
        let listed = agent.sessions(&environment, &mut UnreadErrors::default());
        let own = listed.iter().find(|session| session.id == self.file.session);
        let parts = own.map(|own| companions_of(Some(agent), &own.path)).unwrap_or_default();
        for (target, rest) in files {
            let path = there.join(rest);
            let is_listed = match target.file.part {
                Some(_) => parts.contains(&path),
                None => own.is_some_and(|own| own.path == path),
            };
            if !is_listed {
                let what = format!("{} keeps no session {} there", agent.name(), self.file.session);
                return Err(Error::new(ErrorKind::Unsupported, what)
                    .at(&target.file.path)
                    .with_hint("`--out FILE` writes the version to a file; nothing was changed"));
            }
        }
        Ok(())
    }

    /// The path of the session's own file, relative to the agent's folder `here`, and the newest
    /// content of that file in the vault.
    fn own_file(
        &self,
        config: &Config,
        vault: &Vault,
        here: &Path,
    ) -> Result<(PathBuf, FileSource)> {
        let part = self.file;
        let mut own = own_files(config, vault, part).into_iter();
        let own = own.find(|file| !is_superseded(config, vault, file));
        let versions = own.map(|own| versions_at_place(config, vault, own)).unwrap_or_default();
        let newest = versions.into_iter().rfind(|(_, version)| !version.is_deleted());
        let Some((own, version)) = newest else {
            let what = "the session that it belongs to is not kept";
            return Err(Error::new(ErrorKind::Unsupported, what)
                .at(&part.path)
                .with_hint("`--out FILE` writes the version to a file; nothing was changed"));
        };
        let path = place_here(config, vault, &own)?;
        let rest = path.strip_prefix(here).unwrap_or(&path).to_owned();
        Ok((rest, vault.open_version(&own, version.number)?))
    }

    /// Replaces the present contents of all targets. If one cannot be replaced, none is.
    fn replace(&self, config: &Config, targets: &[&RolledBackFile]) -> Result<()> {
        let mut locked = Vec::new();
        for target in targets {
            let part = SessionPart::at(&target.file.path);
            let file = LockedFile::lock(config, &part, None, self.force)?;
            target.check_uncompressed(file.file.is_compressed())?;
            locked.push(file);
        }
        let mut changes = Vec::new();
        for (file, target) in locked.iter().zip(targets) {
            let Some(content) = &target.content else { continue };
            let splice = difference(file.source(), content)?;
            changes.push(file.change(vec![splice], true)?);
        }
        replace_all(config, &changes).map_err(Error::while_writing)
    }
}

/// Writes a content to a new file below a folder. Does nothing if the file exists: of two kept
/// files at the same place, the agent lists at most one.
fn write_below(folder: &Path, rest: &Path, content: &FileSource) -> Result<()> {
    let path = folder.join(rest);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|err| Error::writing(err, "the version", parent))?;
    }
    match write_new(&path, |out| copy(content, 0..content.len(), out)) {
        Err(err) if err.kind() != ErrorKind::Exists => Err(err),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The report of the first target. The reports of the others are its parts, except those whose
/// content is the same already.
fn joined(targets: Vec<RolledBackFile>) -> RestoredVersion {
    let mut reports = targets.into_iter().map(|target| target.report);
    let own = reports.next();
    let parts = reports.filter(|report| !report.unchanged).collect();
    let own = own.expect("a session's own file is always a target");
    RestoredVersion { parts, ..own }
}

/// Keeps the present contents as versions, and notes which of them equal the contents that are to
/// be restored.
fn keep_present(config: &Config, vault: &mut Vault, targets: &mut [RolledBackFile]) -> Result<()> {
    for _ in 0..super::ATTEMPTS {
        let counted = numbers_before(config, vault, targets.iter().map(|target| &target.file));
        let mut batch = vault.begin(config.now());
        batch.count_from(counted);
        let mut is_changing = false;
        for target in targets.iter().filter(|target| target.is_there()) {
            let put = match &target.place {
                Place::File(path) => batch.put_file(&target.file, path)?,
                Place::Rows(_) | Place::Spread(_) => {
                    batch.put_snapshot(&target.file, &target.place.open()?, None)?
                }
            };
            is_changing |= put == Put::Changing;
        }
        if is_changing || batch.commit()? == Committed::Stale {
            continue;
        }
        for target in targets.iter_mut().filter(|target| target.is_there()) {
            prove_last(vault, &target.file)?;
            let last = vault.versions(&target.file).next_back();
            target.report.replaced = last.map(|last| last.number);
            target.report.unchanged = target.content.is_some()
                && last.is_some_and(|last| last.digest.blake3 == target.report.blake3);
        }
        return Ok(());
    }
    let what = "the session is written to all the time; nothing was changed";
    let path = targets.first().map(|target| target.file.path.clone()).unwrap_or_default();
    Err(Error::new(ErrorKind::Changed, what).at(&path))
}

/// Reads back the last version of a file before the file is replaced. Does nothing if there is no
/// version.
///
/// # Errors
///
/// `Archive` if the version cannot be restored: then nothing may be replaced.
fn prove_last(vault: &Vault, file: &FileKey) -> Result<()> {
    let Some(last) = vault.versions(file).next_back() else { return Ok(()) };
    vault.prove_version(file, last.number).map_err(|err| {
        let what = "the present content could not be kept; nothing was changed";
        Error::new(ErrorKind::Archive, what)
            .because(err)
            .with_hint("`epitome archive verify` names what is damaged")
    })
}

/// Records the restored contents as new versions. Each also records which version was restored
/// ([`Cause::Restored`]), unless that version belongs to another sequence of numbers. If another
/// keeper has recorded the contents first, its versions do not say that they were restored.
fn keep_restored(config: &Config, vault: &mut Vault, targets: &[&RolledBackFile]) -> Result<()> {
    let counted = numbers_before(config, vault, targets.iter().map(|target| &target.file));
    let mut batch = vault.begin(config.now());
    batch.count_from(counted);
    for target in targets {
        if target.content.is_none() {
            batch.put_deleted(&target.file);
            continue;
        }
        let place = Place::parse(&target.file.path);
        match &place {
            Place::File(path) => batch.put_file(&target.file, path)?,
            Place::Rows(_) | Place::Spread(_) => {
                batch.put_snapshot(&target.file, &place.open()?, None)?
            }
        };
        // A version number of `from` means nothing in another sequence of numbers.
        if target.is_joined {
            batch.set_cause(&target.file, Cause::Restored(target.number));
        }
    }
    batch.commit().map(drop)
}

#[cfg(test)]
mod tests;
