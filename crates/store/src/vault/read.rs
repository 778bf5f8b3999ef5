//! Reads the content of versions, and checks it against their digests.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Write};

use super::index::PackId;
use super::version::Content;
use super::{FileKey, Vault, Version};
use crate::archive::pack::{Kind, Pack};
use crate::archive::pieces::PieceWriter;
use crate::archive::{Digest, Hash, pack_name};
use crate::source::FileSource;
use epitome_error::{Error, ErrorKind, Result};

/// How many packs a [`ChunkReader`] has open at once, at most.
const OPEN: usize = 8;

/// A part of a content: the first `len` bytes of these chunks, one after the other.
pub(super) struct Segment {
    pub chunks: Vec<Hash>,
    pub len: u64,
}

/// The chunks that a content consists of.
#[derive(Default)]
pub(super) struct Parts {
    /// Each chunk, and how many of its bytes belong to the content, from its beginning.
    pub all: Vec<(Hash, u64)>,
    /// How many of the first chunks in `all` stay the same if the whole content is cut into chunks
    /// again.
    pub certain: usize,
}

impl Vault {
    /// Writes the content of a version to `out`.
    ///
    /// Every chunk is checked before it is written, and the hash of the whole at the end. After an
    /// error, what was written must not be used.
    ///
    /// # Errors
    ///
    /// `NotArchived` if there is no such version; `NotFound` if the file was deleted in it;
    /// `Archive` if a chunk that the version needs is missing or damaged (the error names the
    /// chunk), or if the content does not match the version's digest. The errors of `out`.
    pub fn write_version(&self, file: &FileKey, number: u64, out: &mut dyn Write) -> Result<()> {
        let version = self.version(file, number)?;
        if version.is_deleted() {
            let what = format!("the file was deleted in version {number}");
            return Err(Error::new(ErrorKind::NotFound, what).at(&file.path));
        }
        let mut hasher = blake3::Hasher::new();
        let mut len = 0;
        let reader = ChunkReader::new(self, &file.machine);
        for segment in self.segments(file, version)? {
            reader.each(&segment, |bytes| {
                hasher.update(bytes);
                len += bytes.len() as u64;
                out.write_all(bytes).map_err(Error::from)
            })?;
        }
        if Digest::new(len, &hasher.finalize()) == version.digest {
            return Ok(());
        }
        let what = format!("version {number} is not what was seen: it cannot be restored");
        Err(Error::new(ErrorKind::Archive, what).at(&file.path))
    }

    /// Reads the content of a version, and checks its hash.
    ///
    /// # Errors
    ///
    /// The errors of [`write_version`](Vault::write_version): then the version cannot be restored.
    pub fn prove_version(&self, file: &FileKey, number: u64) -> Result<()> {
        self.write_version(file, number, &mut io::sink())
    }

    /// Writes the content of a version to an unnamed temporary file, and checks the content against
    /// the version's digest.
    ///
    /// # Errors
    ///
    /// The errors of [`write_version`](Vault::write_version); `Disk` if the temporary file cannot
    /// be written.
    pub fn open_version(&self, file: &FileKey, number: u64) -> Result<FileSource> {
        let failed = |err| Error::writing(err, "the version", &file.path);
        let mut out = BufWriter::new(tempfile::tempfile().map_err(failed)?);
        self.write_version(file, number, &mut out)?;
        let written = out.into_inner().map_err(|err| failed(err.into_error()))?;
        FileSource::new(written, &file.path)
    }

    /// The segments that the content of a version consists of, in order.
    pub(super) fn segments(&self, file: &FileKey, version: &Version) -> Result<Vec<Segment>> {
        let mut segments = Vec::new();
        let mut at = version;
        let mut len = version.digest.len;
        let mut seen = BTreeSet::new();
        while len > 0 {
            if !seen.insert(at.number) {
                let what = format!("version {} refers to itself", version.number);
                return Err(Error::new(ErrorKind::Archive, what).at(&file.path));
            }
            let of = match &at.content {
                Content::Chunks(chunks) => {
                    segments.push(Segment { chunks: chunks.clone(), len });
                    break;
                }
                Content::Extends { of, chunks } => {
                    let base = self.base(file, *of)?;
                    if len > base.digest.len {
                        let added = len - base.digest.len;
                        segments.push(Segment { chunks: chunks.clone(), len: added });
                        len = base.digest.len;
                    }
                    base
                }
                Content::Prefix { of } => self.base(file, *of)?,
                Content::Nothing => {
                    let what = format!("version {} has no content", at.number);
                    return Err(Error::new(ErrorKind::Archive, what).at(&file.path));
                }
            };
            at = of;
        }
        segments.reverse();
        Ok(segments)
    }

    /// The version with this number, to which another version refers.
    fn base(&self, file: &FileKey, number: u64) -> Result<&Version> {
        self.index.version(file, number).ok_or_else(|| {
            let what = format!(
                "the vault has lost version {number} of this file, which others are made of"
            );
            let err = Error::new(ErrorKind::Archive, what).at(&file.path);
            match self.damaged().next() {
                Some(damage) => err.because(damage.clone()),
                None => err,
            }
        })
    }

    /// Opens a pack.
    pub(super) fn pack(&self, id: &PackId) -> Result<Pack> {
        let name = pack_name(&id.0, id.1);
        Pack::open(self.store.open(&name)?, self.store.location(&name))
    }
}

/// Reads chunks, and keeps a few packs open.
pub(super) struct ChunkReader<'v> {
    vault: &'v Vault,
    /// The machine whose packs are searched first.
    machine: &'v str,
    open: RefCell<BTreeMap<PackId, Pack>>,
}

impl<'v> ChunkReader<'v> {
    pub fn new(vault: &'v Vault, machine: &'v str) -> ChunkReader<'v> {
        ChunkReader { vault, machine, open: RefCell::default() }
    }

    /// Calls `each` with the bytes of a segment, chunk by chunk.
    pub fn each(&self, segment: &Segment, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut rest = segment.len;
        for chunk in &segment.chunks {
            if rest == 0 {
                break;
            }
            let bytes = self.chunk(chunk)?;
            let take = rest.min(bytes.len() as u64);
            each(&bytes[..usize::try_from(take).unwrap_or(bytes.len())])?;
            rest -= take;
        }
        Ok(())
    }

    /// The chunks of a version, and how many bytes of each belong to the version's content.
    pub fn parts(&self, file: &FileKey, version: &Version) -> Result<Parts> {
        let mut parts = Parts::default();
        for (n, segment) in self.vault.segments(file, version)?.into_iter().enumerate() {
            let mut rest = segment.len;
            for chunk in segment.chunks {
                if rest == 0 {
                    break;
                }
                let len = self.chunk_len(&chunk)?.min(rest);
                parts.all.push((chunk, len));
                rest -= len;
            }
            if n == 0 {
                parts.certain = parts.all.len().saturating_sub(1);
            }
        }
        Ok(parts)
    }

    fn chunk_len(&self, hash: &Hash) -> Result<u64> {
        let ids = self.vault.index.packs_with(self.machine, hash);
        let found = ids.iter().find_map(|id| {
            self.with_pack(id, |pack| pack.find(Kind::Chunk, hash).map(|entry| entry.raw_len))
                .ok()
                .flatten()
        });
        found.ok_or_else(|| self.missing(hash))
    }

    /// The bytes of a chunk, checked against its hash.
    ///
    /// # Errors
    ///
    /// `Archive` if no pack lists the chunk. If no pack that lists it has it undamaged, the error
    /// of the first of these packs: `Archive`, too, or an error of reading the pack.
    pub fn chunk(&self, hash: &Hash) -> Result<Vec<u8>> {
        let mut first = None;
        for id in self.vault.index.packs_with(self.machine, hash) {
            match self.chunk_in(&id, hash) {
                Ok(bytes) => return Ok(bytes),
                Err(err) => first = first.or(Some(err)),
            }
        }
        Err(first.unwrap_or_else(|| self.missing(hash)))
    }

    fn missing(&self, hash: &Hash) -> Error {
        let what = format!("the vault does not have the chunk {hash}");
        Error::new(ErrorKind::Archive, what).at(&self.vault.store.location(""))
    }

    /// Adds a chunk, checked against its hash, to a pack as it is stored.
    ///
    /// # Errors
    ///
    /// The errors of [`chunk`](ChunkReader::chunk); `Disk` if it cannot be written.
    pub fn copy(&self, hash: &Hash, pieces: &mut PieceWriter) -> Result<()> {
        let mut first = None;
        for id in self.vault.index.packs_with(self.machine, hash) {
            let copied = self.with_pack(&id, |pack| {
                let entry = pack.find(Kind::Chunk, hash);
                let entry = entry.ok_or_else(|| self.missing(hash))?;
                pack.raw(entry)?;
                pieces.copy(pack, entry, &[])
            });
            match copied.and_then(|copied| copied) {
                Ok(()) => return Ok(()),
                Err(err) => first = first.or(Some(err)),
            }
        }
        Err(first.unwrap_or_else(|| self.missing(hash)))
    }

    fn chunk_in(&self, id: &PackId, hash: &Hash) -> Result<Vec<u8>> {
        self.with_pack(id, |pack| match pack.find(Kind::Chunk, hash) {
            Some(entry) => pack.raw(entry),
            None => Err(pack.damaged(format!("the chunk {hash} is missing"))),
        })?
    }

    /// Calls `work` with an open pack.
    fn with_pack<T>(&self, id: &PackId, work: impl FnOnce(&Pack) -> T) -> Result<T> {
        let mut open = self.open.borrow_mut();
        if !open.contains_key(id) {
            if open.len() >= OPEN {
                open.pop_first();
            }
            open.insert(id.clone(), self.vault.pack(id)?);
        }
        Ok(work(&open[id]))
    }
}
