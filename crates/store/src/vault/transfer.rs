//! Versions on their way between machines: packs to send ([`VaultPack`]), and packs that were
//! received ([`StagedVersions`]).
//!
//! Received packs are never added as they are: their numbers may be taken, and the vault may have
//! most of their versions already. What is new in them is proved and written into one pack for each
//! machine.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use epitome_model::Bytes;

use super::batch::LEVEL;
use super::merge::{Failed, Merge};
use super::read::ChunkReader;
use super::removal::stand_alone;
use super::version::{Content, FileVersions, PackVersions};
use super::{FileKey, Vault, Version, is_machine};
use crate::archive::pack::{Kind, Pack};
use crate::archive::pack_store::{FolderName, NewPack, PackBytes, PackFacts, PackStore};
use crate::archive::pieces::PieceWriter;
use crate::archive::{Digest, FolderStore, GcMode, Hash, is_damage, pack_name};
use epitome_error::{Error, ErrorKind, Result};

/// The maximum length of a received pack in bytes.
const LONGEST_PACK: u64 = 1 << 40;
/// The maximum length of a received chunk in bytes, before compression.
const LONGEST_CHUNK: u64 = 4 << 20;
/// The maximum number of a received version. It leaves room for the numbers of later versions.
const LAST_NUMBER: u64 = 1 << 40;

/// A pack to send to another machine, or to export.
pub struct VaultPack {
    /// The machine whose vault recorded the versions.
    pub machine: String,
    /// The number of the pack.
    pub number: u64,
    /// The bytes of the pack. They can be read even if the pack is deleted meanwhile.
    pub bytes: Box<dyn PackBytes>,
    /// The file of a pack that was only made to be copied; it is deleted with this value.
    #[expect(dead_code, reason = "the file is deleted when this is dropped")]
    temporary: Option<Box<dyn NewPack>>,
}

/// Received packs, which are not part of the vault yet. They are deleted with this value.
pub struct StagedVersions {
    store: Arc<dyn PackStore>,
    /// The packs of each machine.
    packs: BTreeMap<String, Vec<StagedPack>>,
}

/// A pack that is not part of the vault yet.
struct StagedPack {
    /// The number of the pack on the machine that wrote it.
    number: u64,
    new: Box<dyn NewPack>,
}

/// The result of [`Vault::receive`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedVersions {
    /// The files that have new versions, and how many.
    pub added: Vec<(FileKey, u64)>,
    /// The number of versions that the vault had already.
    pub known: u64,
    /// The number of versions of files that the caller does not want.
    pub unwanted: u64,
    /// Files, and how many of their versions were not added because they cannot be restored from
    /// what was received.
    pub damaged: Vec<(FileKey, u64)>,
    /// Files, and how many of their versions were not added because the vault has other versions
    /// with these numbers.
    pub refused: Vec<(FileKey, u64)>,
}

impl ReceivedVersions {
    /// The number of versions that were added.
    pub fn versions(&self) -> u64 {
        self.added.iter().map(|(_, versions)| versions).sum()
    }

    /// Whether the vault now has every received version, except those of unwanted files.
    pub fn is_complete(&self) -> bool {
        self.damaged.is_empty() && self.refused.is_empty()
    }
}

impl Vault {
    /// Opens the packs of all machines as they are at one moment, to copy them.
    ///
    /// # Errors
    ///
    /// `Archive` if a folder cannot be listed; the errors of opening a pack.
    pub fn open_packs(&mut self) -> Result<Vec<VaultPack>> {
        let _lock = if self.machine.is_empty() { None } else { self.lock()? };
        self.refresh()?;
        let mut packs = Vec::new();
        for (machine, number) in self.index.packs() {
            let bytes = self.store.open(&pack_name(machine, *number))?;
            let (machine, number) = (machine.clone(), *number);
            packs.push(VaultPack { machine, number, bytes, temporary: None });
        }
        Ok(packs)
    }

    /// Makes packs that have all versions of these files and nothing else, one for each machine, to
    /// copy them. Returns them, and the number of chunks that they lack because these are lost or
    /// damaged.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if a temporary file cannot be written; the errors of opening a
    /// pack.
    pub fn packs_of_files(&self, files: &BTreeSet<FileKey>) -> Result<(Vec<VaultPack>, u64)> {
        self.sweep(GcMode::Remove);
        let mut packs = Vec::new();
        let mut missing = 0;
        let machines: BTreeSet<&String> = files.iter().map(|file| &file.machine).collect();
        for machine in machines {
            let mut listed = PackVersions::default();
            for file in files.iter().filter(|file| file.machine == *machine) {
                let versions: Vec<Version> = self.versions(file).cloned().collect();
                if !versions.is_empty() {
                    listed.files.push(FileVersions { file: file.clone(), versions });
                }
            }
            if listed.files.is_empty() {
                continue;
            }
            let mut pieces = PieceWriter::begin(&*self.store, machine, LEVEL)?;
            let chunks = listed.files.iter().flat_map(|file| &file.versions);
            let chunks: BTreeSet<&Hash> = chunks.flat_map(|it| it.content.chunks()).collect();
            let reader = ChunkReader::new(self, machine);
            for chunk in chunks {
                match reader.copy(chunk, &mut pieces) {
                    Ok(()) => {}
                    Err(err) if is_damage(&err) => missing += 1,
                    Err(err) => return Err(err),
                }
            }
            let raw = serde_json::to_vec(&listed)
                .map_err(|err| Error::new(ErrorKind::Broken, "no list of versions").because(err))?;
            pieces.put(Kind::Versions, Hash::compute(&raw), &raw, &[])?;
            let new = pieces.complete()?;
            let bytes = new.open()?;
            let machine = machine.clone();
            packs.push(VaultPack { machine, number: 1, bytes, temporary: Some(new) });
        }
        Ok((packs, missing))
    }

    /// Adds what is new in received packs. For each machine that the packs come from, everything is
    /// first read and proved, and then added in one step. In the vault, the versions still belong
    /// to the machine that recorded them. A version that the vault has is replaced only if it is
    /// damaged, and by the same content.
    ///
    /// `is_wanted` says which files may be added: for example all except those that were forgotten
    /// on this machine.
    ///
    /// # Errors
    ///
    /// `Refused` if a list of versions in the packs is damaged; `Disk` or `NoPermission` if the new
    /// pack cannot be written; `Changed` if another program is writing to the vault. Then nothing
    /// is added of the machine whose versions were being added, nor of those after it.
    pub fn receive(
        &mut self,
        staged: StagedVersions,
        is_wanted: &dyn Fn(&FileKey) -> bool,
    ) -> Result<ReceivedVersions> {
        let mut report = ReceivedVersions::default();
        for (machine, packs) in staged.packs {
            let _lock = self.lock()?;
            self.refresh()?;
            self.receive_from(&machine, packs, is_wanted, &mut report)?;
            self.refresh()?;
        }
        Ok(report)
    }

    fn receive_from(
        &self,
        machine: &str,
        mut packs: Vec<StagedPack>,
        is_wanted: &dyn Fn(&FileKey) -> bool,
        report: &mut ReceivedVersions,
    ) -> Result<()> {
        packs.sort_by_key(|pack| pack.number);
        let first = self.index.next_pack(machine);
        let numbers: BTreeSet<u64> = (first..).take(packs.len()).collect();
        let names = numbers.iter().map(|number| pack_name(machine, *number));
        let staged = names.zip(packs.into_iter().map(|pack| pack.new)).collect();
        let store = Arc::clone(&self.store);
        let overlay = Overlay { store, machine: machine.to_owned(), staged: Mutex::new(staged) };
        let incoming = Vault::in_store(Arc::new(overlay), machine.to_owned(), None)?;
        let damage = incoming.index.packs_of(machine).find_map(|(number, facts)| {
            facts.damage.as_ref().filter(|_| numbers.contains(&number))
        });
        if let Some(damage) = damage {
            return Err(refused("it holds a damaged part of a vault").because(damage.clone()));
        }
        let mut merge = Merge::begin(&incoming, &numbers).map_err(unread)?;
        merge.write_again(self.lost_chunks(machine, merge.chunks()));
        let mut listed = merge.versions();
        for list in &mut listed.files {
            let damaged = self.retain_new(&incoming, list, is_wanted, report);
            merge.write_again(self.lost_chunks(machine, damaged));
            merge.join_appended(list).map_err(unread)?;
            stand_alone(&mut merge, list).map_err(unread)?;
        }
        listed.files.retain(|list| !list.versions.is_empty());
        if listed.files.is_empty() {
            return Ok(());
        }
        let Some(name) = merge.finish(&listed).map_err(unread)? else {
            let what = "another program is writing to the vault";
            return Err(Error::new(ErrorKind::Changed, what)
                .at(&self.store.location(machine))
                .with_hint("repeat this"));
        };
        incoming.prove(&name)?;
        let added = listed.files.into_iter().map(|it| (it.file, it.versions.len() as u64));
        report.added.extend(added);
        Ok(())
    }

    /// Keeps only those versions of a received file that are wanted, that the vault lacks or cannot
    /// restore, and that can be restored from what was received. Returns the chunks of the versions
    /// that are damaged in this vault.
    fn retain_new(
        &self,
        incoming: &Vault,
        list: &mut FileVersions,
        is_wanted: &dyn Fn(&FileKey) -> bool,
        report: &mut ReceivedVersions,
    ) -> BTreeSet<Hash> {
        let mut damaged = BTreeSet::new();
        if !is_wanted(&list.file) {
            report.unwanted += list.versions.len() as u64;
            list.versions.clear();
            return damaged;
        }
        let file = list.file.clone();
        let mut refused = 0;
        let all = list.versions.iter().map(|version| version.number).collect();
        let whole = self.proved(&file, &all);
        list.versions.retain(|version| match self.index.version(&file, version.number) {
            Some(here) if here.digest == version.digest => {
                let is_whole = whole.contains(&version.number);
                report.known += u64::from(is_whole);
                if !is_whole {
                    let segments = self.segments(&file, here).unwrap_or_default();
                    damaged.extend(segments.into_iter().flat_map(|segment| segment.chunks));
                }
                !is_whole
            }
            // A text was forgotten in one of the two versions. The version in the vault stays.
            Some(here) if here.masked > 0 || version.masked > 0 => {
                report.known += 1;
                false
            }
            Some(_) => {
                refused += 1;
                false
            }
            None => true,
        });
        let new: BTreeSet<u64> = list.versions.iter().map(|version| version.number).collect();
        let proved = incoming.proved(&file, &new);
        list.versions.retain(|version| proved.contains(&version.number));
        let unproved = (new.len() - list.versions.len()) as u64;
        for version in &mut list.versions {
            // A stamp can be compared only on the machine where the file is.
            version.stamp = None;
        }
        if unproved > 0 {
            report.damaged.push((file.clone(), unproved));
        }
        if refused > 0 {
            report.refused.push((file, refused));
        }
        damaged
    }

    /// Those of `chunks` that a pack of the machine lists, but that no pack has undamaged.
    fn lost_chunks(&self, machine: &str, chunks: impl IntoIterator<Item = Hash>) -> Vec<Hash> {
        let reader = ChunkReader::new(self, machine);
        let listed = chunks.into_iter().filter(|chunk| self.index.has_chunk(machine, chunk));
        listed.filter(|chunk| reader.chunk(chunk).is_err()).collect()
    }

    /// Whether packs of the file's machine list all chunks that a version needs.
    pub(super) fn is_listed(&self, file: &FileKey, version: &Version) -> bool {
        version.is_deleted()
            || self.segments(file, version).is_ok_and(|segments| {
                let mut chunks = segments.iter().flat_map(|segment| &segment.chunks);
                chunks.all(|chunk| self.index.has_chunk(&file.machine, chunk))
            })
    }

    /// Those of the `wanted` versions of a file whose content matches their digest. Versions that
    /// are beginnings of another version are read together with it.
    fn proved(&self, file: &FileKey, wanted: &BTreeSet<u64>) -> BTreeSet<u64> {
        let mut proved = BTreeSet::new();
        let mut judged = BTreeSet::new();
        let mut prefixes: HashMap<u64, Vec<&Version>> = HashMap::new();
        for version in self.versions(file) {
            if let Content::Prefix { of } = version.content {
                prefixes.entry(of).or_default().push(version);
            }
        }
        for version in self.versions(file).rev().filter(|it| wanted.contains(&it.number)) {
            if !(1..=LAST_NUMBER).contains(&version.number) || judged.contains(&version.number) {
                continue;
            }
            if version.is_deleted() {
                proved.insert(version.number);
                continue;
            }
            let beginnings = self.beginnings(file, version, &prefixes);
            let lens: BTreeSet<u64> = beginnings.values().map(|it| it.digest.len).collect();
            for (len, digest) in self.digests(file, version, &lens) {
                for it in beginnings.values().filter(|it| it.digest.len == len) {
                    judged.insert(it.number);
                    if it.digest == digest {
                        proved.insert(it.number);
                    }
                }
            }
        }
        proved.retain(|number| wanted.contains(number));
        proved
    }

    /// `version`, and the versions whose content is a beginning of its content, as far as the lists
    /// of versions say.
    fn beginnings<'v>(
        &'v self,
        file: &FileKey,
        version: &'v Version,
        prefixes: &HashMap<u64, Vec<&'v Version>>,
    ) -> BTreeMap<u64, &'v Version> {
        let mut found = BTreeMap::new();
        let mut next = vec![version];
        while let Some(at) = next.pop() {
            if found.insert(at.number, at).is_some() {
                continue;
            }
            let base = at.content.base().and_then(|of| self.index.version(file, of));
            next.extend(base.filter(|base| base.digest.len <= at.digest.len));
            let begin = prefixes.get(&at.number).into_iter().flatten();
            next.extend(begin.filter(|it| it.digest.len <= at.digest.len).copied());
        }
        found
    }

    /// Those of the `digests` that are digests of the first bytes of a version. The content is read
    /// once, up to the first chunk that cannot be read.
    pub fn beginnings_among(
        &self,
        file: &FileKey,
        version: &Version,
        digests: &[Digest],
    ) -> Vec<Digest> {
        let lens = digests.iter().map(|digest| digest.len);
        let lens: BTreeSet<u64> = lens.filter(|len| *len <= version.digest.len).collect();
        let mut found = match lens.is_empty() {
            true => Vec::new(),
            false => self.digests(file, version, &lens),
        };
        found.retain(|(_, digest)| digests.contains(digest));
        found.into_iter().map(|(_, digest)| digest).collect()
    }

    /// The digests of the first bytes of a version, for each of `lens`. If a chunk cannot be read,
    /// the greater lengths are left out.
    fn digests(
        &self,
        file: &FileKey,
        version: &Version,
        lens: &BTreeSet<u64>,
    ) -> Vec<(u64, Digest)> {
        let mut found = Vec::new();
        let mut lens = lens.iter().copied().peekable();
        let mut hasher = blake3::Hasher::new();
        let mut at = 0;
        let mut add = |bytes: &[u8]| {
            let end = at + bytes.len() as u64;
            let mut rest = bytes;
            while let Some(len) = lens.next_if(|len| *len <= end) {
                let (before, after) = rest.split_at(usize::try_from(len - at).unwrap_or(0));
                hasher.update(before);
                found.push((len, Digest::new(len, &hasher.finalize())));
                (rest, at) = (after, len);
            }
            hasher.update(rest);
            at = end;
        };
        add(&[]);
        let reader = ChunkReader::new(self, &file.machine);
        for segment in self.segments(file, version).unwrap_or_default() {
            let read = reader.each(&segment, |bytes| {
                add(bytes);
                Ok(())
            });
            if read.is_err() {
                break;
            }
        }
        found
    }
}

impl StagedVersions {
    /// An empty collection of packs for the vault in `home`. Nothing is written before the first
    /// pack is added.
    pub fn new(home: &std::path::Path) -> StagedVersions {
        StagedVersions::in_store(Arc::new(FolderStore::new(Vault::folder_in(home))))
    }

    /// As [`new`](StagedVersions::new), for a vault whose packs are in `store`.
    pub fn in_store(store: Arc<dyn PackStore>) -> StagedVersions {
        StagedVersions { store, packs: BTreeMap::new() }
    }

    /// Whether there are no packs.
    pub fn is_empty(&self) -> bool {
        self.packs.is_empty()
    }

    /// Adds a copy of a pack: the `len` bytes that `from` returns. `machine` has it under `number`.
    ///
    /// # Errors
    ///
    /// `Refused` if it is not a pack of a vault, is cut off or too long, or if `machine` is not the
    /// name of a machine; `NewerFormat` if a newer version of epitome wrote it; `Disk` if it cannot
    /// be copied; the errors of reading `from`.
    pub fn add(&mut self, machine: &str, number: u64, len: u64, from: &mut dyn Read) -> Result<()> {
        if !is_machine(machine) {
            return Err(refused("it holds a part of a vault without the name of a machine"));
        }
        if len > LONGEST_PACK {
            return Err(refused("it holds a pack that is too long"));
        }
        if self.packs.is_empty() {
            self.store.sweep("", GcMode::Remove);
        }
        let mut new = self.store.begin("")?;
        let copied = io::copy(&mut from.take(LONGEST_PACK), &mut new)
            .map_err(|err| Error::writing(err, "the vault", &self.store.location("")))?;
        if copied != len {
            return Err(refused("the export is cut off"));
        }
        let pack = match Pack::open(new.open()?, new.location()) {
            Ok(pack) => pack,
            Err(err) if err.kind() == ErrorKind::Archive => {
                return Err(refused("it holds a damaged part of a vault").because(err));
            }
            Err(err) => return Err(err),
        };
        let is_expected = pack.entries().iter().all(|entry| match entry.kind {
            Kind::Chunk => entry.raw_len <= LONGEST_CHUNK,
            Kind::Versions => true,
            Kind::Key | Kind::Blob | Kind::Manifest => false,
        });
        if !is_expected {
            return Err(refused("it holds something that is not a part of a vault"));
        }
        self.packs.entry(machine.to_owned()).or_default().push(StagedPack { number, new });
        Ok(())
    }
}

fn refused(what: &str) -> Error {
    Error::new(ErrorKind::Refused, what)
}

fn unread(failed: Failed) -> Error {
    match failed {
        Failed::Other(err) => err,
        Failed::Damaged(_) => refused("it holds a damaged part of a vault"),
    }
}

/// A vault's packs, and staged packs that appear as the newest ones of a machine.
struct Overlay {
    store: Arc<dyn PackStore>,
    machine: String,
    /// The staged packs, by name.
    staged: Mutex<BTreeMap<String, Box<dyn NewPack>>>,
}

impl std::fmt::Debug for Overlay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Overlay").field("store", &self.store).finish_non_exhaustive()
    }
}

impl PackStore for Overlay {
    fn list(&self, folder: &str) -> Result<Vec<FolderName>> {
        let mut names: BTreeSet<FolderName> = self.store.list(folder)?.into_iter().collect();
        if folder.is_empty() {
            names.insert(FolderName::Folder(self.machine.clone()));
        }
        let staged = self.staged.lock().unwrap_or_else(PoisonError::into_inner);
        let in_folder =
            staged.keys().filter_map(|name| name.strip_prefix(folder)?.strip_prefix('/'));
        names
            .extend(in_folder.filter(|_| !folder.is_empty()).map(|it| FolderName::File(it.into())));
        Ok(names.into_iter().collect())
    }

    fn begin(&self, folder: &str) -> Result<Box<dyn NewPack>> {
        self.store.begin(folder)
    }

    fn open(&self, name: &str) -> Result<Box<dyn PackBytes>> {
        let staged = self.staged.lock().unwrap_or_else(PoisonError::into_inner);
        match staged.get(name) {
            Some(pack) => pack.open(),
            None => self.store.open(name),
        }
    }

    fn facts(&self, name: &str) -> Result<PackFacts> {
        self.store.facts(name)
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.store.delete(name)
    }

    fn rename(&self, name: &str, to: &str) -> Result<bool> {
        self.store.rename(name, to)
    }

    fn write_note(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.store.write_note(name, bytes)
    }

    fn make_folder(&self, folder: &str) -> Result<()> {
        self.store.make_folder(folder)
    }

    fn flush_folder(&self, folder: &str) -> Result<()> {
        self.store.flush_folder(folder)
    }

    fn remove_if_empty(&self, folder: &str) {
        self.store.remove_if_empty(folder);
    }

    fn sweep(&self, folder: &str, mode: GcMode) -> Vec<Bytes> {
        self.store.sweep(folder, mode)
    }

    fn location(&self, name: &str) -> PathBuf {
        self.store.location(name)
    }
}
