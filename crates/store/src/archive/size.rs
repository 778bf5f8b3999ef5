//! The length of packs: of existing ones, and of one that would be written.

use std::collections::HashSet;

use epitome_model::{Bytes, Source, Span};
use rayon::prelude::*;

use super::pack::{self, Entry, Kind};
use super::pack_store::PackFacts;
use super::writer::LEVEL;
use super::{About, Archive, Draft, Generation, Hash, SessionKey, pack_name};
use crate::source::exactly;
use epitome_error::{Error, ErrorKind, Result};

/// Each compressor is used for at least this many pieces of removed bytes, if there are so many.
const BLOBS_PER_COMPRESSOR: usize = 64;

impl Archive {
    /// The facts about the pack of a generation that are known without opening it.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such pack; `NoPermission` or `Unreadable` if it is not accessible.
    pub fn facts(&self, key: &SessionKey, number: u64) -> Result<PackFacts> {
        self.store.facts(&pack_name(&key.folder(), number))
    }

    /// The length of the pack of a generation.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such pack; `NoPermission` or `Unreadable` if it is not accessible.
    pub fn pack_len(&self, key: &SessionKey, number: u64) -> Result<Bytes> {
        Ok(self.facts(key, number)?.len)
    }
}

/// Computes the length that a pack would have, by compressing its content. Nothing is written.
pub struct PackSize {
    key: SessionKey,
    entries: Vec<Entry>,
    held: HashSet<Hash>,
    len: u64,
    zstd: zstd::bulk::Compressor<'static>,
}

impl PackSize {
    /// The size of an empty pack for a session.
    pub fn new(key: &SessionKey) -> Result<PackSize> {
        let zstd =
            zstd::bulk::Compressor::new(LEVEL).map_err(|err| cannot_compress().because(err))?;
        let len = pack::header().len() as u64;
        let entries = Vec::new();
        let held = HashSet::new();
        let mut size = PackSize { key: key.clone(), entries, held, len, zstd };
        let about = serde_json::to_vec(key).expect("two texts always serialise");
        size.piece(Kind::Key, &[], &about)?;
        Ok(size)
    }

    /// Adds bytes of `source` that would be removed, each with its description. They are compressed
    /// on all cores. Bytes that were added already are not counted again.
    ///
    /// # Errors
    ///
    /// `Changed` if `source` returns fewer bytes than a span has.
    pub fn put_all(&mut self, source: &dyn Source, removed: &[(Span, About)]) -> Result<()> {
        let read = |span: &Span| exactly(source, span.start..span.end);
        let hashes: Result<Vec<Hash>> =
            removed.par_iter().map(|(span, _)| Ok(Hash::compute(&read(span)?))).collect();
        let mut new: Vec<(Hash, &Span, &About)> = Vec::new();
        for (hash, (span, about)) in hashes?.into_iter().zip(removed) {
            if self.held.insert(hash) {
                new.push((hash, span, about));
            }
        }
        let compressed: Result<Vec<u64>> = new
            .par_iter()
            .with_min_len(BLOBS_PER_COMPRESSOR)
            .map_init(
                || zstd::bulk::Compressor::new(LEVEL),
                |zstd, (_, span, _)| {
                    let zstd = zstd.as_mut().map_err(|_| cannot_compress())?;
                    compressed_len(&read(span)?, zstd)
                },
            )
            .collect();
        for ((hash, span, about), stored_len) in new.into_iter().zip(compressed?) {
            let about = serde_json::to_vec(about).expect("texts and numbers always serialise");
            self.add(Kind::Blob, (hash, span.len(), stored_len), &about);
        }
        Ok(())
    }

    /// The length of the whole pack, with `draft` as its generation.
    pub fn finish(mut self, draft: Draft) -> Result<Bytes> {
        // The generation may get a number with more digits than `1`. Then the pack is a few bytes
        // longer.
        let generation = Generation { number: 1, ..draft.into_generation(&self.key) };
        let manifest = serde_json::to_vec(&generation)
            .map_err(|err| Error::new(ErrorKind::Broken, "no manifest").because(err))?;
        self.piece(Kind::Manifest, &manifest, &[])?;
        let ending = pack::ending(&mut self.entries, self.len);
        Ok(Bytes(self.len + ending.len() as u64))
    }

    fn piece(&mut self, kind: Kind, raw: &[u8], about: &[u8]) -> Result<()> {
        let stored_len = compressed_len(raw, &mut self.zstd)?;
        self.add(kind, (Hash::compute(raw), raw.len() as u64, stored_len), about);
        Ok(())
    }

    /// Adds an entry for bytes: their hash, and their lengths before and after their compression.
    fn add(&mut self, kind: Kind, (hash, raw_len, stored_len): (Hash, u64, u64), about: &[u8]) {
        let about_len = u32::try_from(about.len()).unwrap_or(u32::MAX);
        let at = self.len;
        let entry = Entry { kind, hash, at, raw_len, stored_len, about_len };
        self.len += pack::record(&entry, about).len() as u64 + stored_len;
        self.entries.push(entry);
    }
}

fn compressed_len(raw: &[u8], zstd: &mut zstd::bulk::Compressor<'_>) -> Result<u64> {
    let stored = zstd.compress(raw).map_err(|err| cannot_compress().because(err))?;
    Ok(stored.len() as u64)
}

fn cannot_compress() -> Error {
    Error::new(ErrorKind::Broken, "the removed bytes cannot be compressed")
}
