//! Writes a pack of any kind, piece by piece.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use super::Hash;
use super::pack::{self, Entry, Kind, Pack};
use super::pack_store::{NewPack, PackStore};
use epitome_error::{Error, ErrorKind, Result};

/// A pack that is being written, piece by piece. It is not visible before
/// [`finish`](PieceWriter::finish) or [`replace`](PieceWriter::replace), and is deleted if this
/// value is dropped.
pub(crate) struct PieceWriter {
    out: BufWriter<Box<dyn NewPack>>,
    at: u64,
    entries: Vec<Entry>,
    zstd: zstd::bulk::Compressor<'static>,
    /// The folder of the pack, for error messages.
    folder: PathBuf,
}

impl PieceWriter {
    /// Begins a pack in a folder of a store. `level` is the zstd compression level.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the pack cannot be created.
    pub fn begin(store: &dyn PackStore, folder: &str, level: i32) -> Result<PieceWriter> {
        let pack = store.begin(folder)?;
        let mut writer = PieceWriter::over(pack, store.location(folder), level)?;
        writer.write(&pack::header())?;
        Ok(writer)
    }

    /// Cuts off a complete pack at `end`, where its last piece begins, so that another last piece
    /// can be written. `entries` are the entries of the pieces before `end`.
    pub fn resume(
        mut pack: Box<dyn NewPack>,
        folder: PathBuf,
        level: i32,
        entries: Vec<Entry>,
        end: u64,
    ) -> Result<PieceWriter> {
        pack.truncate(end).map_err(|err| Error::writing(err, "the archive", &folder))?;
        let mut writer = PieceWriter::over(pack, folder, level)?;
        writer.at = end;
        writer.entries = entries;
        Ok(writer)
    }

    fn over(pack: Box<dyn NewPack>, folder: PathBuf, level: i32) -> Result<PieceWriter> {
        let zstd = zstd::bulk::Compressor::new(level)
            .map_err(|err| Error::writing(err, "the archive", &folder))?;
        let out = BufWriter::new(pack);
        Ok(PieceWriter { out, at: 0, entries: Vec::new(), zstd, folder })
    }

    /// The length of what was written so far, in bytes.
    pub fn len(&self) -> u64 {
        self.at
    }

    /// Adds a piece: its raw bytes, whose hash is `hash`, and its description.
    ///
    /// # Errors
    ///
    /// `Disk` if the bytes cannot be written, `Refused` if they are longer than 1 GiB. The pack is
    /// unusable then.
    pub fn put(&mut self, kind: Kind, hash: Hash, raw: &[u8], about: &[u8]) -> Result<()> {
        if raw.len() as u64 > pack::LONGEST {
            return Err(too_long());
        }
        let stored = self.zstd.compress(raw).map_err(|err| self.failed(err))?;
        let entry = Entry {
            kind,
            hash,
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

    /// Adds a piece of another pack as it is stored there, with the description `about`. The caller
    /// must have checked its bytes.
    ///
    /// # Errors
    ///
    /// `Disk` if the bytes cannot be written; the errors of reading them.
    pub fn copy(&mut self, pack: &Pack, entry: &Entry, about: &[u8]) -> Result<()> {
        let stored = pack.stored(entry)?;
        let about_len = u32::try_from(about.len()).map_err(|_| too_long())?;
        let copied = Entry { at: self.at, about_len, ..*entry };
        self.write(&pack::record(&copied, about))?;
        self.write(&stored)?;
        self.entries.push(copied);
        Ok(())
    }

    /// Completes the pack and gives it a name. When this returns `None`, the pack survives a power
    /// cut. If the name is taken, the pack is cut to its first `keep` bytes and its writer is
    /// returned, so that other pieces can follow and another name can be tried.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the pack cannot be written. It is then deleted.
    pub fn finish(mut self, name: &str, keep: u64) -> Result<Option<PieceWriter>> {
        let ending = pack::ending(&mut self.entries, self.at);
        self.write(&ending)?;
        let PieceWriter { out, mut entries, zstd, folder, .. } = self;
        let failed = |err| Error::writing(err, "the archive", &folder);
        let pack = out.into_inner().map_err(|err| failed(err.into_error()))?;
        let Some(mut pack) = pack.put(name)? else { return Ok(None) };
        pack.truncate(keep).map_err(failed)?;
        entries.retain(|entry| entry.at < keep);
        let out = BufWriter::new(pack);
        Ok(Some(PieceWriter { out, at: keep, entries, zstd, folder }))
    }

    /// Completes the pack, and atomically replaces the pack with this name by it. When this
    /// returns, the new pack survives a power cut.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the pack cannot be written, `Unsupported` if the store replaces
    /// no packs. The old pack is then unchanged, except if only flushing its folder failed.
    pub fn replace(self, name: &str) -> Result<()> {
        self.complete()?.replace(name)
    }

    /// Completes the pack without giving it a name: it is deleted when the result is dropped.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the pack cannot be written.
    pub fn complete(mut self) -> Result<Box<dyn NewPack>> {
        let ending = pack::ending(&mut self.entries, self.at);
        self.write(&ending)?;
        let PieceWriter { out, folder, .. } = self;
        let pack = out.into_inner();
        pack.map_err(|err| Error::writing(err.into_error(), "the archive", &folder))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes).map_err(|err| self.failed(err))
    }

    fn failed(&self, err: io::Error) -> Error {
        Error::writing(err, "the archive", &self.folder)
    }
}

fn too_long() -> Error {
    Error::new(ErrorKind::Refused, "a removed piece is too long")
}
