//! Removes versions from the vault, and texts from all versions.
//!
//! Packs never change. If packs contain something that is to be removed, the rest of their content
//! is written into a new pack, which is read back, and then the old packs are deleted. If the
//! process is killed in between, nothing is lost, and a repetition completes the removal.

use std::collections::{BTreeMap, BTreeSet};

use super::index::{raw_versions_in, versions_in};
use super::merge::{Failed, Merge};
use super::search::{TextSearch, is_prefix_of, unreadable};
use super::version::{Content, FileVersions};
use super::{FileKey, Vault, Version};
use crate::archive::pack::Pack;
use crate::archive::pack_name;
use crate::compressed;
use crate::forgotten::ForgottenText;
use crate::source::FileSource;
use crate::store::disk::GcMode;
use epitome_error::{Error, ErrorKind, Result};
use epitome_model::Source;

/// What [`Vault::remove`] or [`Vault::mask`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// The number of versions that are gone, or in which a text was masked.
    pub versions: u64,
    /// The number of kept files of which a version is gone or was masked.
    pub files: u64,
    /// The number of packs that were replaced.
    pub packs: u64,
    /// The total length of all packs before, in bytes.
    pub before: u64,
    /// The total length of all packs afterwards, in bytes.
    pub after: u64,
}

/// JSON that a removal may add to a list of versions. A text that is a part of it cannot be
/// forgotten.
const WORDS: [&str; 5] = [
    r#"],"replaces":[["#,
    r#","masked":"#,
    r#","content":{"chunks":[""#,
    r#","content":{"prefix":{"of":"#,
    r#","content":{"extends":{"of":"#,
];

/// The numbers of versions of files.
pub type VersionNumbers = BTreeMap<FileKey, BTreeSet<u64>>;

impl Vault {
    /// Removes versions, and all chunks that none of the remaining versions needs. A version that
    /// refers to a removed one then refers to a later version, or gets its own chunks. Numbers that
    /// do not exist are ignored.
    ///
    /// # Errors
    ///
    /// Versions are removed machine by machine; an error at one machine does not bring back those
    /// of earlier ones. `Archive` if a part of the vault cannot be read, `Disk` or `NoPermission`
    /// if a new pack cannot be written: then the machine still has all its versions. `Disk` or
    /// `NoPermission` if an old pack cannot be deleted: then that pack still has what was to be
    /// removed.
    pub fn remove(&mut self, versions: &VersionNumbers) -> Result<Removed> {
        let none = BTreeSet::new();
        self.replace_packs(
            |vault, machine| {
                let own = versions.iter().filter(|(file, _)| file.machine == machine);
                let known = own.filter(|(file, numbers)| {
                    numbers.iter().any(|number| vault.index.version(file, *number).is_some())
                });
                Ok(known.map(|(file, _)| file.clone()).collect())
            },
            |merge, listed| {
                let gone = versions.get(&listed.file).unwrap_or(&none);
                let before = listed.versions.len();
                listed.versions.retain(|version| !gone.contains(&version.number));
                stand_alone(merge, listed)?;
                Ok((before - listed.versions.len()) as u64)
            },
        )
    }

    /// Masks a text in every version of every file, and removes all chunks that have it. Compressed
    /// content is not decompressed for this: see
    /// [`compressed_versions_with`](Vault::compressed_versions_with). The versions keep their
    /// numbers and lengths, and say that something was masked in them.
    ///
    /// # Errors
    ///
    /// The errors of [`remove`](Vault::remove); `Archive` also if a version cannot be read.
    pub fn mask(&mut self, text: &ForgottenText) -> Result<Removed> {
        self.replace_packs(
            |vault, machine| Ok(vault.search(text, Some(machine))?.into_keys().collect()),
            |merge, listed| super::search::mask_versions(merge, listed, text),
        )
    }

    /// The versions that contain a text.
    ///
    /// # Errors
    ///
    /// `Archive` if a version cannot be read.
    pub fn versions_with(&self, text: &ForgottenText) -> Result<VersionNumbers> {
        self.search(text, None)
    }

    /// The versions of compressed files (`.zst`) that contain a text when they are decompressed. In
    /// these versions the text cannot be masked.
    ///
    /// # Errors
    ///
    /// `Archive` if a version cannot be read; `Disk` if it cannot be decompressed to a temporary
    /// file. A version whose compressed content is damaged or too long is skipped.
    pub fn compressed_versions_with(&self, text: &ForgottenText) -> Result<VersionNumbers> {
        let mut found = VersionNumbers::new();
        for file in self.files().filter(|file| file.path.extension().is_some_and(|it| it == "zst"))
        {
            for version in self.versions(file).filter(|version| !version.is_deleted()) {
                let Some(plain) = self.open_decompressed(file, version.number)? else { continue };
                if text.is_in(&plain.read(0..plain.len())) {
                    found.entry(file.clone()).or_default().insert(version.number);
                }
            }
        }
        Ok(found)
    }

    /// The decompressed content of a version of a compressed file. `None` if the version is not
    /// compressed, or if its compressed content is damaged or too long.
    ///
    /// # Errors
    ///
    /// `Archive` if the version cannot be read; `Disk` if it cannot be decompressed to a temporary
    /// file.
    pub fn open_decompressed(&self, file: &FileKey, number: u64) -> Result<Option<FileSource>> {
        let stored = self.open_version(file, number)?;
        if !compressed::is_compressed(&stored)? {
            return Ok(None);
        }
        match compressed::open(&stored, compressed::LIMIT) {
            Err(err) if err.kind() == ErrorKind::Unreadable => Ok(None),
            opened => Ok(Some(opened?.0)),
        }
    }

    /// Returns an error if a text is in the vault's own records, where it cannot be masked: names
    /// of packs, files and sessions, and lists of versions.
    ///
    /// # Errors
    ///
    /// `Refused` if the text is in such a record; the error names the session if the record is only
    /// of that session. `Archive` if a list cannot be read.
    pub fn check_records(&self, text: &ForgottenText) -> Result<()> {
        for (machine, number) in self.index.packs() {
            let name = pack_name(machine, *number);
            let pack = match self.store.open(&name) {
                Err(err) if err.kind() == ErrorKind::NotFound => continue,
                opened => Pack::open(opened?, self.store.location(&name))?,
            };
            for list in versions_in(&pack)?.files {
                let raw = serde_json::to_vec(&list).map_err(|err| {
                    Error::new(ErrorKind::Broken, "a list of versions is no JSON").because(err)
                })?;
                if text.is_in(&raw) {
                    let place = format!("the vault, {} {}", list.file.agent, list.file.session);
                    return Err(text.in_records(&place));
                }
            }
            let list = raw_versions_in(&pack)?;
            if text.is_in(&list) || text.is_in(name.as_bytes()) {
                return Err(text.in_records("the vault, in every list of versions"));
            }
        }
        if WORDS.iter().any(|words| text.is_in(words.as_bytes())) {
            return Err(text.in_records("the vault, in every list of versions"));
        }
        Ok(())
    }

    /// The number of chunks that no version needs, such as those that an interrupted removal left.
    pub fn unneeded_chunks(&self) -> u64 {
        let count_of = |machine: String| {
            let needed = self.index.chunks_named(&machine, |_| true);
            let packs = self.index.packs_of(&machine);
            let chunks = packs.flat_map(|(_, facts)| facts.chunks.iter());
            chunks.filter(|chunk| !needed.contains(chunk)).count() as u64
        };
        self.index.machines().into_iter().map(count_of).sum()
    }

    fn search(&self, text: &ForgottenText, machine: Option<&str>) -> Result<VersionNumbers> {
        let mut found = VersionNumbers::new();
        for of in self.index.machines() {
            if machine.is_some_and(|machine| machine != of) {
                continue;
            }
            let mut search = TextSearch::new(self, &of, text);
            for file in self.files().filter(|file| file.machine == of) {
                for version in self.versions(file) {
                    if !search.occurrences(file, version)?.is_empty() {
                        found.entry(file.clone()).or_default().insert(version.number);
                    }
                }
            }
        }
        Ok(found)
    }

    /// For each machine, replaces some packs by one new pack: those with a version of the files
    /// that `affected` returns, those with a chunk that no other file names, and those that [are
    /// stale](super::index::PackFacts::is_stale). `change` changes the versions of each of these
    /// files, and returns how many versions it removed or changed.
    fn replace_packs(
        &mut self,
        affected: impl Fn(&Vault, &str) -> Result<BTreeSet<FileKey>>,
        mut change: impl FnMut(&mut Merge<'_>, &mut FileVersions) -> Result<u64, Failed>,
    ) -> Result<Removed> {
        self.refresh()?;
        let mut removed = Removed { before: self.size().1, ..Removed::default() };
        for machine in self.index.machines() {
            let own = std::mem::replace(&mut self.machine, machine);
            let replaced = self.replace_packs_of_machine(&affected, &mut change, &mut removed);
            self.machine = own;
            replaced?;
        }
        removed.after = self.size().1;
        Ok(removed)
    }

    /// Does what [`replace_packs`](Vault::replace_packs) does, for the packs of `self.machine`.
    fn replace_packs_of_machine(
        &mut self,
        affected: &impl Fn(&Vault, &str) -> Result<BTreeSet<FileKey>>,
        change: &mut impl FnMut(&mut Merge<'_>, &mut FileVersions) -> Result<u64, Failed>,
        removed: &mut Removed,
    ) -> Result<()> {
        let lock = self.lock()?;
        self.store.sweep(&self.machine, GcMode::Remove);
        loop {
            self.refresh()?;
            self.check_readable()?;
            let files = affected(self, &self.machine)?;
            let numbers = self.packs_to_replace(&files);
            if numbers.is_empty() {
                break;
            }
            let mut merge = Merge::begin(self, &numbers).map_err(|err| self.unread(err))?;
            let mut listed = merge.versions();
            listed.replaces = self.index.replaced_by(&self.machine, &numbers);
            let mut versions = 0;
            for list in &mut listed.files {
                list.file.machine.clone_from(&self.machine);
                if files.contains(&list.file) {
                    versions += change(&mut merge, list).map_err(|err| self.unread(err))?;
                }
            }
            listed.files.retain(|list| !list.versions.is_empty());
            let Some(name) = merge.finish(&listed).map_err(|err| self.unread(err))? else {
                // A process that does not use the lock is writing packs, too.
                continue;
            };
            self.prove(&name)?;
            removed.versions += versions;
            removed.files += files.len() as u64;
            removed.packs += numbers.len() as u64;
            self.delete_packs(&numbers)?;
            break;
        }
        drop(lock);
        self.proved.clear();
        self.refresh().map(drop)
    }

    /// Deletes packs, those with the highest numbers first, because versions mostly refer to
    /// versions in packs with lower numbers. Tries all packs even if one cannot be deleted.
    fn delete_packs(&self, numbers: &BTreeSet<u64>) -> Result<()> {
        let mut failed = None;
        for number in numbers.iter().rev() {
            let deleted = self.store.delete(&pack_name(&self.machine, *number));
            failed = failed.or(deleted.err().filter(|err| err.kind() != ErrorKind::NotFound));
        }
        self.store.flush_folder(&self.machine)?;
        match failed {
            None => Ok(()),
            Some(err) => {
                let what = "a part of the vault could not be deleted: it still has what was to go";
                Err(Error::new(err.kind(), what).because(err))
            }
        }
    }

    /// The packs of this machine that have a version of these files or a chunk that no other file
    /// names, and those that [are stale](super::index::PackFacts::is_stale).
    fn packs_to_replace(&self, files: &BTreeSet<FileKey>) -> BTreeSet<u64> {
        let needed = self.index.chunks_named(&self.machine, |file| !files.contains(file));
        let packs = self.index.packs_of(&self.machine);
        let with_rest = packs.filter(|(_, facts)| {
            facts.is_stale || facts.chunks.iter().any(|chunk| !needed.contains(chunk))
        });
        let mut numbers: BTreeSet<u64> = with_rest.map(|(number, _)| number).collect();
        for file in files {
            let versions = self.versions(file);
            numbers.extend(versions.filter_map(|it| self.index.pack_of(file, it.number)));
        }
        numbers
    }

    /// The error for packs that could not be merged. A damaged pack stays as it is, because what is
    /// damaged cannot be copied.
    fn unread(&self, failed: Failed) -> Error {
        match failed {
            Failed::Other(err) => err,
            Failed::Damaged(number) => {
                let what = "a part of the vault is damaged, and stays as it is";
                let location = self.store.location(&pack_name(&self.machine, number));
                Error::new(ErrorKind::Archive, what)
                    .at(&location)
                    .with_hint("`epitome archive verify` names what is lost")
            }
        }
    }
}

/// Removes all references to versions of a file that are not in the list. A version with such a
/// reference then refers to a later version in the list, if that one begins with the same content,
/// or else gets its own chunks.
pub(super) fn stand_alone(merge: &mut Merge<'_>, listed: &mut FileVersions) -> Result<(), Failed> {
    let numbers: BTreeSet<u64> = listed.versions.iter().map(|it| it.number).collect();
    let is_broken =
        |version: &Version| version.content.base().is_some_and(|of| !numbers.contains(&of));
    if !listed.versions.iter().any(is_broken) {
        return Ok(());
    }
    // The newest version of each chain of appends gets chunks, and the older ones become beginnings
    // of it.
    merge.join_appended(listed)?;
    let file = listed.file.clone();
    for at in (0..listed.versions.len()).rev() {
        let version = listed.versions[at].clone();
        if !is_broken(&version) {
            continue;
        }
        let longer = listed.versions[at + 1..].iter().find(|later| {
            matches!(later.content, Content::Chunks(_))
                && later.digest.len >= version.digest.len
                && is_prefix_of(merge, &file, version.number, later.number)
        });
        let content = match longer {
            Some(longer) => Content::Prefix { of: longer.number },
            None => match merge.chunks_of(&file, &version)? {
                Some(chunks) => Content::Chunks(chunks),
                None => return Err(Failed::Other(unreadable(&file, version.number))),
            },
        };
        listed.versions[at].content = content;
    }
    Ok(())
}
