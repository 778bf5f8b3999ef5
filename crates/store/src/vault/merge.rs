//! Merges many small packs into one.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{self, Read};

use super::batch::LEVEL;
use super::chunker::each_chunk;
use super::index::versions_in;
use super::read::ChunkReader;
use super::version::{Content, FileVersions, PackVersions};
use super::{FileKey, Vault, Version};
use crate::archive::pack::{Entry, Kind, Pack};
use crate::archive::pieces::PieceWriter;
use crate::archive::{Digest, Hash, is_damage, pack_name};
use epitome_error::{Error, ErrorKind, Result};

/// How many packs of about the same size must exist before they are merged.
const MANY: usize = 32;
/// The sizes in bytes by which packs are grouped: a pack belongs to the first size that is greater
/// than its length. Packs that are not shorter than the last size are not merged.
const SIZES: [u64; 3] = [256 << 10, 8 << 20, 256 << 20];

/// What [`Vault::merge`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// The number of packs that were merged.
    pub packs: u64,
    /// The total length of the packs that were merged, in bytes.
    pub before: u64,
    /// The total length of the packs that replace them, in bytes.
    pub after: u64,
}

impl Vault {
    /// Merges packs of this machine wherever at least 32 of about one size exist.
    ///
    /// The merged pack has the same versions. Of a file that was appended to, it lists all chunks
    /// only for the newest version; older versions refer to that version as beginnings of it.
    /// Chunks that no version needs any more are left out if all packs can be read. A pack with a
    /// damaged chunk stays as it is.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if a merged pack cannot be written: the packs that it would replace
    /// are unchanged then.
    pub fn merge(&mut self) -> Result<Merged> {
        self.merge_packs(MANY)
    }

    /// Merges packs wherever at least `many`, but not less than two, of about one size exist.
    pub(super) fn merge_packs(&mut self, many: usize) -> Result<Merged> {
        let mut merged = Merged::default();
        let mut damaged = BTreeSet::new();
        while let Some(numbers) = self.mergeable(many, &damaged) {
            let _lock = self.lock()?;
            // Another process may have merged them before the lock was taken.
            if self.refresh()? && self.mergeable(many, &damaged).as_ref() != Some(&numbers) {
                continue;
            }
            match self.merge_these(&numbers) {
                Ok(Some((before, after))) => {
                    merged.packs += numbers.len() as u64;
                    merged.before += before;
                    merged.after += after;
                }
                // The name is taken: a process that does not use the lock is writing packs, too.
                Ok(None) => break,
                Err(Failed::Damaged(number)) => drop(damaged.insert(number)),
                Err(Failed::Other(err)) => return Err(err),
            }
        }
        Ok(merged)
    }

    /// The numbers of packs that should be merged into one; `None` if there are no such packs.
    fn mergeable(&self, many: usize, damaged: &BTreeSet<u64>) -> Option<BTreeSet<u64>> {
        let mut by_size: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        for (number, facts) in self.index.packs_of(&self.machine) {
            if facts.damage.is_some() || damaged.contains(&number) {
                continue;
            }
            if let Some(size) = SIZES.iter().position(|size| facts.len < *size) {
                by_size.entry(size).or_default().insert(number);
            }
        }
        by_size.into_values().find(|numbers| numbers.len() >= many.max(2))
    }

    /// Merges packs into one. Returns their lengths before and after; `None` if the name of the new
    /// pack was taken.
    fn merge_these(&mut self, numbers: &BTreeSet<u64>) -> Result<Option<(u64, u64)>, Failed> {
        let mut merge = Merge::begin(self, numbers)?;
        let mut files = merge.versions();
        files.replaces = self.index.replaced_by(&self.machine, numbers);
        for listed in &mut files.files {
            merge.join_appended(listed)?;
        }
        let before = merge.packs.iter().map(|(_, pack)| pack.len()).sum();
        let Some(name) = merge.finish(&files)? else { return Ok(None) };
        let after = self.prove(&name)?;
        for number in numbers {
            // A pack that cannot be deleted is merged again later.
            self.store.delete(&pack_name(&self.machine, *number)).ok();
        }
        self.refresh()?;
        Ok(Some((before, after)))
    }

    /// Reads all of a pack that was just written, and returns its length. If a piece is not as it
    /// was written, the pack is deleted.
    pub(super) fn prove(&self, name: &str) -> Result<u64> {
        let pack = Pack::open(self.store.open(name)?, self.store.location(name))?;
        let read = versions_in(&pack)
            .and_then(|_| pack.entries().iter().try_for_each(|entry| pack.raw(entry).map(drop)));
        if let Err(err) = read {
            self.store.delete(name).ok();
            let what = "a merged part of the vault is not as it was written; it was deleted";
            return Err(Error::new(ErrorKind::Disk, what)
                .at(&self.store.location(name))
                .because(err));
        }
        Ok(pack.len())
    }
}

/// Why packs were not merged or replaced.
pub(super) enum Failed {
    /// The pack with this number, or a chunk in it, is damaged.
    Damaged(u64),
    Other(Error),
}

impl From<Error> for Failed {
    fn from(err: Error) -> Failed {
        Failed::Other(err)
    }
}

/// Packs that are being merged.
pub(super) struct Merge<'v> {
    pub vault: &'v Vault,
    packs: Vec<(u64, Pack)>,
    pieces: PieceWriter,
    /// The chunks that were written to the new pack.
    written: HashSet<Hash>,
    /// The chunks that are not written, because packs that are not merged have them.
    elsewhere: HashSet<Hash>,
}

impl<'v> Merge<'v> {
    pub fn begin(vault: &'v Vault, numbers: &BTreeSet<u64>) -> Result<Merge<'v>, Failed> {
        let mut packs = Vec::new();
        for &number in numbers {
            match vault.pack(&(vault.machine.clone(), number)) {
                Ok(pack) => packs.push((number, pack)),
                Err(err) if is_damage(&err) => return Err(Failed::Damaged(number)),
                Err(err) => return Err(Failed::Other(err)),
            }
        }
        let stay = vault.index.packs_of(&vault.machine).filter(|(it, _)| !numbers.contains(it));
        let elsewhere = stay.flat_map(|(_, facts)| facts.chunks.iter().copied()).collect();
        let pieces = PieceWriter::begin(&*vault.store, &vault.machine, LEVEL)?;
        Ok(Merge { vault, packs, pieces, written: HashSet::new(), elsewhere })
    }

    /// The chunks in the packs that are merged.
    pub fn chunks(&self) -> HashSet<Hash> {
        let entries = self.packs.iter().flat_map(|(_, pack)| pack.entries());
        entries.filter(|entry| entry.kind == Kind::Chunk).map(|entry| entry.hash).collect()
    }

    /// Makes the merge write these chunks if they are needed, although packs that are not merged
    /// list them.
    pub fn write_again(&mut self, lost: impl IntoIterator<Item = Hash>) {
        for chunk in lost {
            self.elsewhere.remove(&chunk);
        }
    }

    /// The versions in the packs that are merged.
    pub fn versions(&self) -> PackVersions {
        let numbers: BTreeSet<u64> = self.packs.iter().map(|(number, _)| *number).collect();
        self.vault.index.versions_in_packs(&self.vault.machine, &numbers)
    }

    /// Lets the newest version of each chain of appends list all its chunks. The older versions of
    /// the chain then become beginnings of that version.
    pub fn join_appended(&mut self, listed: &mut FileVersions) -> Result<(), Failed> {
        let mut joined = BTreeSet::new();
        for at in (0..listed.versions.len()).rev() {
            let newest = listed.versions[at].clone();
            if joined.contains(&newest.number) || !matches!(newest.content, Content::Extends { .. })
            {
                continue;
            }
            let mut file = listed.file.clone();
            file.machine.clone_from(&self.vault.machine);
            let Some(chunks) = self.chunks_of(&file, &newest)? else { continue };
            let older = self.appended_to(&file, &newest);
            for version in &mut listed.versions[..at] {
                if older.contains(&version.number) {
                    version.content = Content::Prefix { of: newest.number };
                }
            }
            listed.versions[at].content = Content::Chunks(chunks);
            joined.extend(older);
        }
        Ok(())
    }

    /// The numbers of the older versions to which this version refers, directly or through others,
    /// and whose content is the beginning of its content.
    pub fn appended_to(&self, file: &FileKey, version: &Version) -> BTreeSet<u64> {
        let mut older = BTreeSet::new();
        let mut at = version;
        while let Content::Extends { of, .. } | Content::Prefix { of } = at.content {
            let Some(base) = self.vault.index.version(file, of) else { break };
            // A longer version is not a beginning of this one.
            if base.digest.len > at.digest.len || base.number > version.number {
                break;
            }
            if !older.insert(of) {
                break;
            }
            at = base;
        }
        older
    }

    /// The chunks of a version after the merge: the first chunks, as far as cutting the content
    /// again would give the same ones, and new chunks of the rest, which are written. `None` if the
    /// content cannot be read or does not match the version's digest.
    pub fn chunks_of(&mut self, file: &FileKey, version: &Version) -> Result<Option<Vec<Hash>>> {
        let vault = self.vault;
        let reader = ChunkReader::new(vault, &vault.machine);
        let Ok(parts) = reader.parts(file, version) else { return Ok(None) };
        let mut hasher = blake3::Hasher::new();
        for (hash, len) in &parts.all {
            let Ok(bytes) = reader.chunk(hash) else { return Ok(None) };
            hasher.update(&bytes[..usize::try_from(*len).unwrap_or(0).min(bytes.len())]);
        }
        let digest = Digest::new(parts.all.iter().map(|(_, len)| len).sum(), &hasher.finalize());
        if digest != version.digest {
            return Ok(None);
        }
        let (certain, rest) = parts.all.split_at(parts.certain);
        let mut chunks: Vec<Hash> = certain.iter().map(|(hash, _)| *hash).collect();
        let content = PartsReader { reader: &reader, rest, now: Vec::new(), at: 0 };
        each_chunk(content, |bytes| {
            let hash = Hash::compute(bytes);
            chunks.push(hash);
            self.put(hash, bytes)
        })?;
        Ok(Some(chunks))
    }

    pub fn put(&mut self, hash: Hash, bytes: &[u8]) -> Result<()> {
        if !self.elsewhere.contains(&hash) && self.written.insert(hash) {
            self.pieces.put(Kind::Chunk, hash, bytes, &[])?;
        }
        Ok(())
    }

    /// The chunks that the merge must not lose.
    fn needed(&self, files: &PackVersions) -> HashSet<Hash> {
        let numbers: BTreeSet<u64> = self.packs.iter().map(|(number, _)| *number).collect();
        if self.vault.damaged().next().is_some() {
            // Versions that cannot be read may need any chunk.
            let chunks = self.packs.iter().flat_map(|(_, pack)| pack.entries());
            return chunks.map(|entry| entry.hash).collect();
        }
        let mut needed = self.vault.index.chunks_needed_outside(&self.vault.machine, &numbers);
        let merged = files.files.iter().flat_map(|file| &file.versions);
        needed.extend(merged.flat_map(|version| version.content.chunks()));
        needed
    }

    /// Completes the new pack. Copies the chunks of the merged packs that a version still needs and
    /// that no other pack of this machine has, and adds the list of versions `files`. Returns the
    /// name of the pack; `None` if the name was taken.
    pub fn finish(mut self, files: &PackVersions) -> Result<Option<String>, Failed> {
        let needed = self.needed(files);
        self.copy_chunks(&needed)?;
        let vault = self.vault;
        let name = pack_name(&vault.machine, vault.index.next_pack(&vault.machine));
        let raw = serde_json::to_vec(files)
            .map_err(|err| Error::new(ErrorKind::Broken, "no list of versions").because(err))?;
        self.pieces.put(Kind::Versions, Hash::compute(&raw), &raw, &[])?;
        let taken = self.pieces.finish(&name, 0)?;
        Ok(taken.is_none().then_some(name))
    }

    /// Copies those chunks of the merged packs that are needed.
    fn copy_chunks(&mut self, needed: &HashSet<Hash>) -> Result<(), Failed> {
        let packs = std::mem::take(&mut self.packs);
        for (number, pack) in &packs {
            let mut entries: Vec<&Entry> = pack
                .entries()
                .iter()
                .filter(|it| it.kind == Kind::Chunk && needed.contains(&it.hash))
                .collect();
            entries.sort_by_key(|entry| entry.at);
            for entry in entries {
                if self.written.contains(&entry.hash) || self.elsewhere.contains(&entry.hash) {
                    continue;
                }
                match pack.raw(entry) {
                    Ok(_) => {
                        self.pieces.copy(pack, entry, &[])?;
                        self.written.insert(entry.hash);
                    }
                    Err(err) if is_damage(&err) => return Err(Failed::Damaged(*number)),
                    Err(err) => return Err(Failed::Other(err)),
                }
            }
        }
        self.packs = packs;
        Ok(())
    }
}

/// Reads parts of chunks one after the other.
struct PartsReader<'a> {
    reader: &'a ChunkReader<'a>,
    rest: &'a [(Hash, u64)],
    now: Vec<u8>,
    at: usize,
}

impl Read for PartsReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.now.len() {
            let Some(((hash, len), rest)) = self.rest.split_first() else { return Ok(0) };
            self.now = self.reader.chunk(hash)?;
            self.now.truncate(usize::try_from(*len).unwrap_or(usize::MAX));
            self.at = 0;
            self.rest = rest;
        }
        let n = into.len().min(self.now.len() - self.at);
        into[..n].copy_from_slice(&self.now[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}
