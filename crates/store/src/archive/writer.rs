//! Writes packs.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use super::pack::{self, Entry, Kind};
use super::pack_store::{NewPack, PackStore};
use super::{About, Draft, Generation, Hash, SessionKey, numbers, pack_name};
use epitome_error::{Error, ErrorKind, Result};

/// The zstd compression level.
pub(crate) const LEVEL: i32 = 3;

/// A pack that is being written. It is not visible before [`commit`](PackWriter::commit), and is
/// deleted if this value is dropped.
pub struct PackWriter {
    store: Arc<dyn PackStore>,
    key: SessionKey,
    out: BufWriter<Box<dyn NewPack>>,
    at: u64,
    entries: Vec<Entry>,
    held: HashSet<Hash>,
    zstd: zstd::bulk::Compressor<'static>,
}

impl PackWriter {
    pub(crate) fn begin(store: Arc<dyn PackStore>, key: &SessionKey) -> Result<PackWriter> {
        let pack = store.begin(&key.folder())?;
        let mut writer = PackWriter {
            zstd: compressor(&*store, key)?,
            store,
            key: key.clone(),
            out: BufWriter::new(pack),
            at: 0,
            entries: Vec::new(),
            held: HashSet::new(),
        };
        writer.write(&pack::header())?;
        let about = serde_json::to_vec(key).expect("two texts always serialise");
        writer.piece(Kind::Key, &[], &about)?;
        Ok(writer)
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
        self.piece(Kind::Blob, raw, &about)?;
        self.held.insert(hash);
        Ok(hash)
    }

    /// Completes the pack, and gives it the next free number. When this returns, the pack survives
    /// a power cut.
    ///
    /// # Errors
    ///
    /// `Broken` if `draft` could not be undone: it names bytes that were not added, or ranges that
    /// overlap. `Disk` or `NoPermission` if the pack cannot be written. The pack is then deleted.
    pub fn commit(self, draft: Draft) -> Result<Generation> {
        let generation = draft.into_generation(&self.key);
        self.finish(generation, None)
    }

    /// Completes the pack with a generation. Its number is `wanted` if that is free, otherwise the
    /// next free one.
    pub(crate) fn finish(
        mut self,
        mut generation: Generation,
        wanted: Option<u64>,
    ) -> Result<Generation> {
        generation.check(&self.held)?;
        let end = self.at;
        let mut wanted = wanted;
        let folder = self.key.folder();
        loop {
            generation.number = match wanted.take() {
                Some(number) => number,
                None => numbers(&*self.store, &folder)?.next(),
            };
            let manifest = serde_json::to_vec(&generation)
                .map_err(|err| Error::new(ErrorKind::Broken, "no manifest").because(err))?;
            self.piece(Kind::Manifest, &manifest, &[])?;
            let ending = pack::ending(&mut self.entries, self.at);
            self.write(&ending)?;
            let writing = |err| failed(err, &*self.store, &self.key);
            let pack = self.out.into_inner().map_err(|err| writing(err.into_error()))?;
            let Some(mut pack) = pack.put(&pack_name(&folder, generation.number))? else {
                return Ok(generation);
            };
            // The manifest contains the number, so it is written again.
            pack.truncate(end).map_err(writing)?;
            self.out = BufWriter::new(pack);
            self.at = end;
            self.entries.retain(|entry| entry.kind != Kind::Manifest);
        }
    }

    /// Continues a complete pack at `end`, where its manifest begins, so that a new manifest can
    /// replace it. `entries` are those of the pieces before `end`.
    pub(crate) fn resume(
        mut pack: Box<dyn NewPack>,
        store: Arc<dyn PackStore>,
        key: &SessionKey,
        entries: Vec<Entry>,
        end: u64,
    ) -> Result<PackWriter> {
        pack.truncate(end).map_err(|err| failed(err, &*store, key))?;
        let zstd = compressor(&*store, key)?;
        let blobs = entries.iter().filter(|entry| entry.kind == Kind::Blob);
        let held = blobs.map(|entry| entry.hash).collect();
        let out = BufWriter::new(pack);
        Ok(PackWriter { store, key: key.clone(), out, at: end, entries, held, zstd })
    }

    fn piece(&mut self, kind: Kind, raw: &[u8], about: &[u8]) -> Result<()> {
        if raw.len() as u64 > pack::LONGEST {
            return Err(too_long());
        }
        let stored = self.zstd.compress(raw).map_err(|err| failed(err, &*self.store, &self.key))?;
        let entry = Entry {
            kind,
            hash: Hash::compute(raw),
            at: self.at,
            raw_len: raw.len() as u64,
            stored_len: stored.len() as u64,
            about_len: u32::try_from(about.len()).map_err(|_| too_long())?,
        };
        self.write(&pack::record(&entry, about))?;
        self.write(&stored)?;
        self.entries.push(entry);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes).map_err(|err| failed(err, &*self.store, &self.key))
    }
}

fn too_long() -> Error {
    Error::new(ErrorKind::Refused, "a removed piece is too long")
}

fn compressor(store: &dyn PackStore, key: &SessionKey) -> Result<zstd::bulk::Compressor<'static>> {
    zstd::bulk::Compressor::new(LEVEL).map_err(|err| failed(err, store, key))
}

fn failed(err: io::Error, store: &dyn PackStore, key: &SessionKey) -> Error {
    Error::writing(err, "the archive", &store.location(&key.folder()))
}
