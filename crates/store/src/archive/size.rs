//! How long packs are: those on disk, and one that would be written.

use std::collections::HashSet;

use epitome_model::Bytes;

use super::pack::{self, Entry, Kind};
use super::writer::LEVEL;
use super::{About, Archive, Draft, Generation, Hash, SessionKey, pack_path};
use epitome_error::{Error, ErrorKind, Result};

impl Archive {
    /// The length of the pack of a generation.
    ///
    /// # Errors
    ///
    /// `NotFound` when there is no such pack, `NoPermission`, `Unreadable`.
    pub fn pack_len(&self, key: &SessionKey, number: u64) -> Result<Bytes> {
        let path = pack_path(&self.folder(key), number);
        let meta = path.metadata().map_err(|err| Error::reading(err, "the archive", &path))?;
        Ok(Bytes(meta.len()))
    }
}

/// Measures a pack by compressing what would be in it. Nothing is written.
pub struct PackSize {
    key: SessionKey,
    entries: Vec<Entry>,
    held: HashSet<Hash>,
    len: u64,
    zstd: zstd::bulk::Compressor<'static>,
}

impl PackSize {
    /// A pack of a session without any removed bytes.
    pub fn new(key: &SessionKey) -> Result<PackSize> {
        let zstd = zstd::bulk::Compressor::new(LEVEL).map_err(failed)?;
        let len = pack::header().len() as u64;
        let (entries, held) = (Vec::new(), HashSet::new());
        let mut size = PackSize { key: key.clone(), entries, held, len, zstd };
        let about = serde_json::to_vec(key).expect("two texts always serialise");
        size.piece(Kind::Key, &[], &about)?;
        Ok(size)
    }

    /// Adds removed bytes. The same bytes are stored once.
    pub fn put(&mut self, raw: &[u8], about: &About) -> Result<()> {
        if !self.held.insert(Hash::of(raw)) {
            return Ok(());
        }
        let about = serde_json::to_vec(about).expect("texts and numbers always serialise");
        self.piece(Kind::Blob, raw, &about)
    }

    /// The length of the whole pack.
    pub fn finish(mut self, draft: Draft) -> Result<Bytes> {
        // Its number takes a digit, more or less.
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
        let (hash, raw_len, at) = (Hash::of(raw), raw.len() as u64, self.len);
        let entry = Entry { kind, hash, at, raw_len, stored_len, about_len };
        self.len += pack::record(&entry, about).len() as u64 + stored_len;
        self.entries.push(entry);
        Ok(())
    }
}

fn failed(err: std::io::Error) -> Error {
    Error::new(ErrorKind::Broken, "the removed bytes cannot be compressed").because(err)
}
