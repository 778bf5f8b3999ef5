//! The length of packs: of existing ones, and of one that would be written.

use std::collections::HashSet;

use epitome_model::Bytes;

use super::pack::{self, Entry, Kind};
use super::pack_store::PackFacts;
use super::writer::LEVEL;
use super::{About, Archive, Draft, Generation, Hash, SessionKey, pack_name};
use epitome_error::{Error, ErrorKind, Result};

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
        let zstd = zstd::bulk::Compressor::new(LEVEL).map_err(failed)?;
        let len = pack::header().len() as u64;
        let entries = Vec::new();
        let held = HashSet::new();
        let mut size = PackSize { key: key.clone(), entries, held, len, zstd };
        let about = serde_json::to_vec(key).expect("two texts always serialise");
        size.piece(Kind::Key, &[], &about)?;
        Ok(size)
    }

    /// Whether bytes with this hash were added already.
    pub fn holds(&self, hash: &Hash) -> bool {
        self.held.contains(hash)
    }

    /// Adds removed bytes. Bytes that were added already are not counted again.
    pub fn put(&mut self, raw: &[u8], about: &About) -> Result<()> {
        if !self.held.insert(Hash::compute(raw)) {
            return Ok(());
        }
        let about = serde_json::to_vec(about).expect("texts and numbers always serialise");
        self.piece(Kind::Blob, raw, &about)
    }

    /// The length of the whole pack.
    pub fn finish(mut self, draft: Draft) -> Result<Bytes> {
        // The number that the generation gets may have more digits than 1, which changes the length
        // by a few bytes.
        let generation = Generation { number: 1, ..draft.into_generation(&self.key) };
        let manifest = serde_json::to_vec(&generation)
            .map_err(|err| Error::new(ErrorKind::Broken, "no manifest").because(err))?;
        self.piece(Kind::Manifest, &manifest, &[])?;
        let ending = pack::ending(&mut self.entries, self.len);
        Ok(Bytes(self.len + ending.len() as u64))
    }

    fn piece(&mut self, kind: Kind, raw: &[u8], about: &[u8]) -> Result<()> {
        let stored_len = self.zstd.compress(raw).map_err(failed)?.len() as u64;
        let about_len = u32::try_from(about.len()).unwrap_or(u32::MAX);
        let hash = Hash::compute(raw);
        let raw_len = raw.len() as u64;
        let at = self.len;
        let entry = Entry { kind, hash, at, raw_len, stored_len, about_len };
        self.len += pack::record(&entry, about).len() as u64 + stored_len;
        self.entries.push(entry);
        Ok(())
    }
}

fn failed(err: std::io::Error) -> Error {
    Error::new(ErrorKind::Broken, "the removed bytes cannot be compressed").because(err)
}
