//! Writes packs.

use std::collections::HashSet;
use std::sync::Arc;

use super::pack::{Entry, Kind};
use super::pack_store::{NewPack, PackStore};
use super::pieces::PieceWriter;
use super::{About, Draft, Generation, Hash, SessionKey, numbers, pack_name};
use epitome_error::{Error, ErrorKind, Result};

/// The zstd compression level.
pub(crate) const LEVEL: i32 = 3;

/// A pack that is being written. It is not visible before [`commit`](PackWriter::commit), and is
/// deleted if this value is dropped.
pub struct PackWriter {
    store: Arc<dyn PackStore>,
    key: SessionKey,
    pieces: PieceWriter,
    held: HashSet<Hash>,
}

impl PackWriter {
    pub(crate) fn begin(store: Arc<dyn PackStore>, key: &SessionKey) -> Result<PackWriter> {
        let mut pieces = PieceWriter::begin(&*store, &key.folder(), LEVEL)?;
        let about = serde_json::to_vec(key).expect("two texts always serialise");
        pieces.put(Kind::Key, Hash::compute(&[]), &[], &about)?;
        Ok(PackWriter { store, key: key.clone(), pieces, held: HashSet::new() })
    }

    /// Adds removed bytes to the pack and returns their hash. If the same bytes are added again,
    /// they are stored once, with the first description.
    ///
    /// # Errors
    ///
    /// `Disk` if the bytes cannot be written, `Refused` if they are longer than 1 GiB. The pack is
    /// unusable then.
    pub fn put(&mut self, raw: &[u8], about: About) -> Result<Hash> {
        let hash = Hash::compute(raw);
        if self.held.contains(&hash) {
            return Ok(hash);
        }
        let about = serde_json::to_vec(&about).expect("texts and numbers always serialise");
        self.pieces.put(Kind::Blob, hash, raw, &about)?;
        self.held.insert(hash);
        Ok(hash)
    }

    /// Completes the pack, and gives it the next free number. When this returns, the pack survives
    /// a power cut.
    ///
    /// # Errors
    ///
    /// `Broken` if `draft` could not be undone: it names bytes that were not added, or ranges that
    /// overlap or are too long. `Disk` or `NoPermission` if the pack cannot be written. The pack is
    /// then deleted.
    pub fn commit(self, draft: Draft) -> Result<Generation> {
        let generation = draft.into_generation(&self.key);
        self.finish(generation, None)
    }

    /// Completes the pack with a generation. The generation gets the number `wanted` if that is
    /// free, otherwise the next free number.
    pub(crate) fn finish(
        mut self,
        mut generation: Generation,
        wanted: Option<u64>,
    ) -> Result<Generation> {
        generation.check(&self.held)?;
        let end = self.pieces.len();
        let mut wanted = wanted;
        let folder = self.key.folder();
        loop {
            generation.number = match wanted.take() {
                Some(number) => number,
                None => numbers(&*self.store, &folder)?.next(),
            };
            let manifest = serde_json::to_vec(&generation)
                .map_err(|err| Error::new(ErrorKind::Broken, "no manifest").because(err))?;
            self.pieces.put(Kind::Manifest, Hash::compute(&manifest), &manifest, &[])?;
            // The manifest contains the number, so it is written again if the number is taken.
            match self.pieces.finish(&pack_name(&folder, generation.number), end)? {
                None => return Ok(generation),
                Some(pieces) => self.pieces = pieces,
            }
        }
    }

    /// Cuts off a complete pack at `end`, where its manifest begins, so that a new manifest can be
    /// written. `entries` are the entries of the pieces before `end`.
    pub(crate) fn resume(
        pack: Box<dyn NewPack>,
        store: Arc<dyn PackStore>,
        key: &SessionKey,
        entries: Vec<Entry>,
        end: u64,
    ) -> Result<PackWriter> {
        let blobs = entries.iter().filter(|entry| entry.kind == Kind::Blob);
        let held = blobs.map(|entry| entry.hash).collect();
        let folder = store.location(&key.folder());
        let pieces = PieceWriter::resume(pack, folder, LEVEL, entries, end)?;
        Ok(PackWriter { store, key: key.clone(), pieces, held })
    }
}
