//! The content of a vault's packs, as it is kept in memory.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::version::{FileVersions, PackVersions};
use super::{FileKey, Version, is_machine};
use crate::archive::pack::{Kind, Pack};
use crate::archive::pack_store::{FolderName, PackStore};
use crate::archive::{Hash, number_of, pack_name};
use epitome_error::{Error, ErrorKind, Result};

/// The packs that were read, and the versions in them.
#[derive(Debug, Default)]
pub(super) struct Index {
    packs: BTreeMap<PackId, PackFacts>,
    files: BTreeMap<FileKey, BTreeMap<u64, Held>>,
}

/// The machine that wrote a pack, and the number of the pack.
pub(super) type PackId = (String, u64);

/// What the index has about a pack.
#[derive(Debug, Default)]
pub(super) struct PackFacts {
    /// The hashes of the chunks in the pack, sorted.
    pub chunks: Vec<Hash>,
    /// The length of the pack on disk in bytes.
    pub len: u64,
    /// The ranges of numbers of the packs that the pack replaces.
    pub replaces: Vec<(u64, u64)>,
    /// Whether a newer pack also has one of the pack's versions: for example, a merge or a removal
    /// was interrupted before it deleted this pack.
    pub is_stale: bool,
    /// The error, if the pack cannot be opened or its list of versions cannot be read.
    pub damage: Option<Error>,
}

/// A version, and the number of the pack that it was read from.
#[derive(Debug)]
struct Held {
    version: Version,
    pack: u64,
}

impl Index {
    /// See [`Vault::refresh`](super::Vault::refresh).
    pub fn refresh(&mut self, store: &dyn PackStore) -> Result<bool> {
        let mut here = BTreeSet::new();
        for machine in store.list("")? {
            let FolderName::Folder(machine) = machine else { continue };
            if !is_machine(&machine) {
                continue;
            }
            let names = store.list(&machine)?;
            let numbers = names.iter().filter_map(|name| number_of(name.name()));
            here.extend(numbers.map(|number| (machine.clone(), number)));
        }
        let is_gone = self.packs.keys().any(|id| !here.contains(id));
        if is_gone {
            // Forget all packs and read them again: versions of a deleted pack may be in another
            // pack that was read already.
            *self = Index::default();
        }
        let mut is_new = false;
        for id in here {
            if !self.packs.contains_key(&id) {
                self.read(store, id)?;
                is_new = true;
            }
        }
        Ok(is_gone || is_new)
    }

    /// Reads one pack. Damage is recorded in the index; a pack that was deleted since it was listed
    /// is left out.
    fn read(&mut self, store: &dyn PackStore, id: PackId) -> Result<()> {
        let name = pack_name(&id.0, id.1);
        let opened = store.open(&name).and_then(|it| Pack::open(it, store.location(&name)));
        let pack = match opened {
            Ok(pack) => pack,
            Err(err) if err.kind() == ErrorKind::NotFound => return Ok(()),
            Err(err) => {
                self.packs.insert(id, PackFacts { damage: Some(err), ..PackFacts::default() });
                return Ok(());
            }
        };
        let (versions, damage) = match versions_in(&pack) {
            Ok(versions) => (versions, None),
            Err(err) => (PackVersions::default(), Some(err)),
        };
        self.add(id, &pack, versions, damage);
        Ok(())
    }

    fn add(&mut self, id: PackId, pack: &Pack, versions: PackVersions, damage: Option<Error>) {
        let chunks = pack.entries().iter().filter(|entry| entry.kind == Kind::Chunk);
        let chunks = chunks.map(|entry| entry.hash).collect();
        let mut stale = BTreeSet::new();
        let replaces = versions.replaces;
        for FileVersions { mut file, versions } in versions.files {
            file.machine.clone_from(&id.0);
            let known = self.files.entry(file).or_default();
            for version in versions {
                let held = Held { version, pack: id.1 };
                match known.entry(held.version.number) {
                    // Two packs have the version, for example after an interrupted merge: the newer
                    // pack is used.
                    Entry::Occupied(mut old) if old.get().pack < id.1 => {
                        stale.insert(old.insert(held).pack);
                    }
                    Entry::Occupied(_) => drop(stale.insert(id.1)),
                    Entry::Vacant(free) => drop(free.insert(held)),
                }
            }
        }
        let is_stale = stale.remove(&id.1);
        for number in stale {
            if let Some(facts) = self.packs.get_mut(&(id.0.clone(), number)) {
                facts.is_stale = true;
            }
        }
        self.packs.insert(id, PackFacts { chunks, len: pack.len(), replaces, is_stale, damage });
    }

    pub fn files(&self) -> impl Iterator<Item = &FileKey> {
        self.files.keys()
    }

    pub fn versions(&self, file: &FileKey) -> impl DoubleEndedIterator<Item = &Version> {
        self.files.get(file).into_iter().flat_map(|all| all.values().map(|held| &held.version))
    }

    pub fn version(&self, file: &FileKey, number: u64) -> Option<&Version> {
        Some(&self.files.get(file)?.get(&number)?.version)
    }

    pub fn damaged(&self) -> impl Iterator<Item = &Error> {
        self.packs.values().filter_map(|pack| pack.damage.as_ref())
    }

    pub fn size(&self) -> (u64, u64) {
        (self.packs.len() as u64, self.packs.values().map(|pack| pack.len).sum())
    }

    /// All packs, by machine and number.
    pub fn packs(&self) -> impl Iterator<Item = &PackId> {
        self.packs.keys()
    }

    /// The packs of a machine, in order of their numbers.
    pub fn packs_of(&self, machine: &str) -> impl DoubleEndedIterator<Item = (u64, &PackFacts)> {
        let all = (machine.to_owned(), 0)..=(machine.to_owned(), u64::MAX);
        self.packs.range(all).map(|(id, facts)| (id.1, facts))
    }

    /// The packs that have a chunk: first those of `machine`, the newest first.
    pub fn packs_with(&self, machine: &str, chunk: &Hash) -> Vec<PackId> {
        let has = |facts: &PackFacts| facts.chunks.binary_search(chunk).is_ok();
        let own = self.packs_of(machine).rev().filter(|(_, facts)| has(facts));
        let mut found: Vec<PackId> = own.map(|(number, _)| (machine.to_owned(), number)).collect();
        let others = self.packs.iter().filter(|(id, facts)| id.0 != machine && has(facts));
        found.extend(others.map(|(id, _)| id.clone()));
        found
    }

    /// Whether a pack of a machine has a chunk.
    pub fn has_chunk(&self, machine: &str, chunk: &Hash) -> bool {
        self.packs_of(machine).any(|(_, facts)| facts.chunks.binary_search(chunk).is_ok())
    }

    /// The machines that have packs.
    pub fn machines(&self) -> BTreeSet<String> {
        self.packs.keys().map(|id| id.0.clone()).collect()
    }

    /// The pack that a version was read from.
    pub fn pack_of(&self, file: &FileKey, number: u64) -> Option<u64> {
        Some(self.files.get(file)?.get(&number)?.pack)
    }

    /// The chunks named by the versions of those files of a machine for which `is_meant` is true.
    pub fn chunks_named(
        &self,
        machine: &str,
        is_meant: impl Fn(&FileKey) -> bool,
    ) -> HashSet<Hash> {
        let files = self.files.iter().filter(|(file, _)| file.machine == machine);
        let meant = files.filter(|(file, _)| is_meant(file));
        let held = meant.flat_map(|(_, all)| all.values());
        held.flat_map(|held| held.version.content.chunks().iter().copied()).collect()
    }

    /// The versions of a machine that were read from these packs.
    pub fn versions_in_packs(&self, machine: &str, packs: &BTreeSet<u64>) -> PackVersions {
        let mut found = PackVersions::default();
        for (file, all) in self.files.iter().filter(|(file, _)| file.machine == machine) {
            let versions = all.values().filter(|held| packs.contains(&held.pack));
            let versions: Vec<Version> = versions.map(|held| held.version.clone()).collect();
            if !versions.is_empty() {
                found.files.push(FileVersions { file: file.clone(), versions });
            }
        }
        found
    }

    /// The chunks named by those versions of a machine that were read from packs other than these.
    pub fn chunks_needed_outside(&self, machine: &str, packs: &BTreeSet<u64>) -> HashSet<Hash> {
        let own = self.files.iter().filter(|(file, _)| file.machine == machine);
        let held = own.flat_map(|(_, all)| all.values());
        let outside = held.filter(|held| !packs.contains(&held.pack));
        outside.flat_map(|held| held.version.content.chunks().iter().copied()).collect()
    }

    /// Makes the recorded length of a version wrong.
    #[cfg(test)]
    pub fn change_digest(&mut self, file: &FileKey, number: u64) {
        let held = self.files.get_mut(file).and_then(|all| all.get_mut(&number));
        held.expect("the version").version.digest.len -= 1;
    }

    /// The ranges of numbers that a pack must list as replaced if it replaces these `packs` of a
    /// machine: their own numbers, and the numbers of the packs that they had replaced.
    pub fn replaced_by(&self, machine: &str, packs: &BTreeSet<u64>) -> Vec<(u64, u64)> {
        let of_these = self.packs_of(machine).filter(|(number, _)| packs.contains(number));
        let mut ranges: Vec<(u64, u64)> = packs.iter().map(|number| (*number, *number)).collect();
        ranges.extend(of_these.flat_map(|(_, facts)| facts.replaces.iter().copied()));
        ranges.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (first, last) in ranges {
            match joined.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last)
                }
                Some(_) | None => joined.push((first, last)),
            }
        }
        joined
    }

    /// Whether a readable pack of a machine replaces the pack with this number.
    pub fn is_replaced(&self, machine: &str, pack: u64) -> bool {
        self.packs_of(machine)
            .flat_map(|(_, facts)| &facts.replaces)
            .any(|(first, last)| (*first..=*last).contains(&pack))
    }

    /// Whether a pack that cannot be read may contain later versions of a file than `number`: it is
    /// a pack of the file's machine, and its number is higher than that of the pack with this
    /// version. If the file has no such version, any pack of the machine that cannot be read may.
    pub fn may_have_later(&self, file: &FileKey, number: u64) -> bool {
        let held = self.files.get(file).and_then(|versions| versions.get(&number));
        let pack = held.map_or(0, |held| held.pack);
        self.packs_of(&file.machine).any(|(number, facts)| number > pack && facts.damage.is_some())
    }

    /// The number for the next pack of a machine.
    pub fn next_pack(&self, machine: &str) -> u64 {
        self.packs_of(machine).next_back().map_or(0, |(number, _)| number) + 1
    }
}

/// The versions in a pack.
///
/// # Errors
///
/// `Archive` if the list of versions is missing or damaged; the errors of reading the pack.
pub(super) fn versions_in(pack: &Pack) -> Result<PackVersions> {
    let raw = raw_versions_in(pack)?;
    serde_json::from_slice(&raw).map_err(|err| {
        pack.damaged("the versions in this part of the vault are damaged").because(err)
    })
}

/// The list of versions in a pack, as it is stored.
///
/// # Errors
///
/// `Archive` if the list is missing or damaged; the errors of reading the pack.
pub(super) fn raw_versions_in(pack: &Pack) -> Result<Vec<u8>> {
    let Some(entry) = pack.entries().iter().find(|entry| entry.kind == Kind::Versions) else {
        return Err(pack.damaged("this part of the vault does not say what versions it has"));
    };
    pack.raw(entry)
}
