//! Writing a pack.

use std::collections::HashSet;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::pack::{self, Entry, Kind};
use super::{About, Draft, Generation, Hash, SessionKey, numbers, pack_path, removed_numbers};
use crate::store::disk::{self, NotPlaced, Temp};
use epitome_error::{Error, ErrorKind, Result};

/// How hard zstd tries.
pub(crate) const LEVEL: i32 = 3;

/// A pack that is being written. Nothing of it is to be seen until
/// [`commit`](PackWriter::commit); dropped without that, it is gone.
pub struct PackWriter {
    folder: PathBuf,
    key: SessionKey,
    out: BufWriter<Temp>,
    at: u64,
    entries: Vec<Entry>,
    held: HashSet<Hash>,
    zstd: zstd::bulk::Compressor<'static>,
}

impl PackWriter {
    pub(crate) fn begin(folder: PathBuf, key: &SessionKey) -> Result<PackWriter> {
        let writing = |err| Error::writing(err, "the archive", &folder);
        let temp = create_in(&folder)?;
        let zstd = zstd::bulk::Compressor::new(LEVEL).map_err(writing)?;
        let mut writer = PackWriter {
            folder,
            key: key.clone(),
            out: BufWriter::new(temp),
            at: 0,
            entries: Vec::new(),
            held: HashSet::new(),
            zstd,
        };
        writer.write(&pack::header())?;
        let about = serde_json::to_vec(key).expect("two texts always serialise");
        writer.piece(Kind::Key, &[], &about)?;
        Ok(writer)
    }

    /// Puts removed bytes in the pack and returns their name. The same bytes are stored once; what
    /// is said about them first stays.
    ///
    /// # Errors
    ///
    /// `Disk` when they cannot be written, `Refused` when they are longer than a gibibyte. The
    /// pack is then good for nothing.
    pub fn put(&mut self, raw: &[u8], about: About) -> Result<Hash> {
        let hash = Hash::of(raw);
        if self.held.contains(&hash) {
            return Ok(hash);
        }
        let about = serde_json::to_vec(&about).expect("texts and numbers always serialise");
        self.piece(Kind::Blob, raw, &about)?;
        self.held.insert(hash);
        Ok(hash)
    }

    /// Ends the pack and gives it the next free number. When this returns, it is on the disk.
    ///
    /// # Errors
    ///
    /// `Broken` when `draft` is no way back: it names bytes that were not put in, or places that
    /// overlap. `Disk` and `NoPermission` when it cannot be written. Nothing is left of the pack
    /// then.
    pub fn commit(self, draft: Draft) -> Result<Generation> {
        let generation = draft.into_generation(&self.key);
        self.finish(generation, None)
    }

    /// Ends the pack with a generation, under the number `wanted` if it is free.
    pub(crate) fn finish(
        mut self,
        mut generation: Generation,
        wanted: Option<u64>,
    ) -> Result<Generation> {
        generation.check(&self.held)?;
        let (end, mut wanted) = (self.at, wanted);
        loop {
            generation.number = match wanted.take() {
                Some(number) => number,
                None => next_number(&self.folder)?,
            };
            let manifest = serde_json::to_vec(&generation)
                .map_err(|err| Error::new(ErrorKind::Broken, "no manifest").because(err))?;
            self.piece(Kind::Manifest, &manifest, &[])?;
            let ending = pack::ending(&mut self.entries, self.at);
            self.write(&ending)?;
            let writing = |err| Error::writing(err, "the archive", &self.folder);
            let temp = self.out.into_inner().map_err(|err| writing(err.into_error()))?;
            let Some(temp) = place(temp, &self.folder, generation.number)? else {
                return Ok(generation);
            };
            // The number is in the manifest: it is written again.
            temp.truncate(end).map_err(writing)?;
            self.out = BufWriter::new(temp);
            self.at = end;
            self.entries.retain(|entry| entry.kind != Kind::Manifest);
        }
    }

    /// Goes on with a whole pack from behind its pieces of removed bytes, which must be the first
    /// in it: a manifest can then be written in the place of its own.
    pub(crate) fn resume(
        temp: Temp,
        folder: PathBuf,
        key: &SessionKey,
        entries: Vec<Entry>,
        end: u64,
    ) -> Result<PackWriter> {
        let writing = |err| Error::writing(err, "the archive", &folder);
        temp.truncate(end).map_err(writing)?;
        let zstd = zstd::bulk::Compressor::new(LEVEL).map_err(writing)?;
        let of_blob = |entry: &Entry| (entry.kind == Kind::Blob).then_some(entry.hash);
        let held = entries.iter().filter_map(of_blob).collect();
        let out = BufWriter::new(temp);
        Ok(PackWriter { folder, key: key.clone(), out, at: end, entries, held, zstd })
    }

    fn piece(&mut self, kind: Kind, raw: &[u8], about: &[u8]) -> Result<()> {
        let too_long = || Error::new(ErrorKind::Refused, "a removed piece is too long");
        if raw.len() as u64 > pack::LONGEST {
            return Err(too_long());
        }
        let stored = self
            .zstd
            .compress(raw)
            .map_err(|err| Error::writing(err, "the archive", &self.folder))?;
        let entry = Entry {
            kind,
            hash: Hash::of(raw),
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
        self.out.write_all(bytes).map_err(|err| Error::writing(err, "the archive", &self.folder))
    }
}

/// A temporary file in a folder that is made if need be.
pub(crate) fn create_in(folder: &Path) -> Result<Temp> {
    let mut left = 10;
    loop {
        disk::private_folder(folder)?;
        match Temp::create(folder) {
            Ok(temp) => return Ok(temp),
            // A collector of garbage may have taken the empty folder away again.
            Err(err) if err.kind() == std::io::ErrorKind::NotFound && left > 0 => left -= 1,
            Err(err) => return Err(Error::writing(err, "the archive", folder)),
        }
    }
}

/// Flushes a whole pack and gives it a number in `folder`. Returns it if another pack has that.
fn place(temp: Temp, folder: &Path, number: u64) -> Result<Option<Temp>> {
    let writing = |err| Error::writing(err, "the archive", folder);
    temp.flush_to_disk().map_err(writing)?;
    let path = pack_path(folder, number);
    match temp.place_new(&path) {
        Ok(()) => match disk::flush_folder(folder) {
            Ok(()) => Ok(None),
            Err(err) => {
                // A name that may be gone after a cut of the power is no promise.
                std::fs::remove_file(&path).ok();
                Err(writing(err))
            }
        },
        Err(NotPlaced::Taken(temp)) => Ok(Some(temp)),
        Err(NotPlaced::Failed(err)) => Err(writing(err)),
    }
}

/// Numbers count on from the highest that was ever given, so that a higher number is a later
/// generation.
pub(crate) fn next_number(folder: &Path) -> Result<u64> {
    let last = numbers(folder)?.last().copied().unwrap_or(0);
    let removed = removed_numbers(folder)?.last().copied().unwrap_or(0);
    Ok(last.max(removed) + 1)
}
