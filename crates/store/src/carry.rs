//! Carrying a session's part of the archive to another machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use epitome_model::Bytes;
use jiff::Timestamp;

use crate::archive::care::{VerifyReport, verify_pack};
use crate::archive::pack::{Kind, Pack};
use crate::archive::writer::{create_in, next_number};
use crate::archive::{
    Archive, Blobs, Generation, Hash, PackWriter, SessionBlobs, SessionKey, number_of, numbers,
    pack_path, removed_numbers,
};
use crate::restore::walk;
use crate::source::FileSource;
use crate::store::disk::Temp;
use epitome_error::{Error, ErrorKind, Result};

/// Longest pack that is taken in.
const LONGEST_PACK: u64 = 8 << 30;
/// Most packs that are taken in at once.
const MOST_PACKS: usize = 100_000;

/// A pack that was taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The session that it is of.
    pub key: SessionKey,
    /// The number that it has here. Another than there, when that one was taken or would leave a
    /// gap.
    pub number: u64,
    /// Its bytes.
    pub stored: Bytes,
}

/// A pack that was not taken in: it joins neither what is here nor the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unjoined {
    /// The session that it says it is of.
    pub key: SessionKey,
    /// The number that it had.
    pub number: u64,
}

/// What [`Archive::import`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Packs that are new here.
    pub added: Vec<Imported>,
    /// Packs that were here already.
    pub known: u64,
    /// Packs that were not taken in.
    pub refused: Vec<Unjoined>,
}

impl Archive {
    /// Writes all packs of a session as a tar archive. The same packs give the same bytes.
    /// Returns how many they are.
    ///
    /// # Errors
    ///
    /// `NotFound` when the session has none, `Unreadable`, and what the writer says.
    pub fn export(&self, key: &SessionKey, out: &mut dyn Write) -> Result<u64> {
        let folder = self.folder(key);
        let numbers = numbers(&folder)?;
        if numbers.is_empty() {
            let what = "the archive holds nothing of this session";
            return Err(Error::new(ErrorKind::NotFound, what).at(&folder));
        }
        let mut tar = tar::Builder::new(out);
        for &number in &numbers {
            let path = pack_path(&folder, number);
            let file = FileSource::open(&path)?;
            let mut head = tar::Header::new_ustar();
            head.set_size(epitome_model::Source::len(&file));
            head.set_mode(0o600);
            head.set_mtime(0);
            let name = pack_path(&key.folder(), number);
            let from = SourceReader { file: &file, at: 0 };
            tar.append_data(&mut head, name, from).map_err(Error::from)?;
        }
        tar.into_inner().and_then(Write::flush).map_err(Error::from)?;
        Ok(numbers.len() as u64)
    }

    /// Takes packs in from a tar archive, which anyone may have made. All of it is read and
    /// verified before the first pack is put in place; names in it say nothing but the number,
    /// and no pack takes the place of another.
    ///
    /// A generation is taken in only if it joins, by hash, what the archive has of its session or
    /// one of the files that `files` returns for it; the others are named in the report. Each is
    /// marked as imported at `when`.
    ///
    /// # Errors
    ///
    /// `Refused` when it holds anything but whole packs, or generations of empty files;
    /// `NewerFormat`, `Disk`.
    pub fn import(
        &self,
        from: &mut dyn Read,
        when: Timestamp,
        files: &dyn Fn(&Generation) -> Vec<PathBuf>,
    ) -> Result<ImportReport> {
        let unreadable = |err: io::Error| {
            Error::new(ErrorKind::Unreadable, "this is no export of an archive").because(err)
        };
        let mut tar = tar::Archive::new(from);
        let mut staged: BTreeMap<SessionKey, Vec<Staged>> = BTreeMap::new();
        let mut packs = 0;
        for entry in tar.entries().map_err(unreadable)? {
            let mut entry = entry.map_err(unreadable)?;
            if packs == MOST_PACKS {
                return Err(Error::new(ErrorKind::Refused, "it holds too many packs"));
            }
            packs += 1;
            let pack = self.stage(&mut entry)?;
            staged.entry(pack.generation.key()).or_default().push(pack);
        }
        if packs == 0 {
            let what = "this is no export of an archive: it is empty";
            return Err(Error::new(ErrorKind::Refused, what));
        }
        let mut report = ImportReport::default();
        for (key, mut staged) in staged {
            staged.sort_by_key(|pack| pack.number);
            self.take_in(&key, staged, when, files, &mut report)?;
        }
        Ok(report)
    }

    /// Copies a pack to a file without a number and verifies it there.
    fn stage(&self, entry: &mut tar::Entry<'_, &mut dyn Read>) -> Result<Staged> {
        let refused = |what: &str| Error::new(ErrorKind::Refused, what);
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let number = name.rsplit('/').next().and_then(number_of);
        let number = number.filter(|_| entry.header().entry_type().is_file());
        let number = number.ok_or_else(|| refused("it holds something that is no pack"))?;
        if entry.size() > LONGEST_PACK {
            return Err(refused("it holds a pack that is too long"));
        }
        let mut temp = create_in(self.root())?;
        let copied = io::copy(&mut entry.take(LONGEST_PACK), &mut temp)
            .map_err(|err| Error::writing(err, "the archive", self.root()))?;
        if copied != entry.size() {
            return Err(refused("the export is cut off"));
        }
        let mut report = VerifyReport::default();
        let generation = match verify_pack(temp.path(), &mut report) {
            Ok(generation) => generation,
            Err(err) if err.kind() == ErrorKind::NewerFormat => return Err(err),
            Err(err) => return Err(refused("it holds a damaged pack").because(err)),
        };
        if let Some(fault) = report.faults.pop() {
            return Err(refused("it holds a damaged pack").because(fault));
        }
        if generation.after.len == 0 {
            // It would fit the beginning of every file.
            return Err(refused("it holds a generation that left an empty file"));
        }
        let pack = Pack::open(temp.path())?;
        Ok(Staged { temp, pack, generation, number })
    }

    /// Takes in what is new here and joins what is here.
    fn take_in(
        &self,
        key: &SessionKey,
        mut staged: Vec<Staged>,
        when: Timestamp,
        files: &dyn Fn(&Generation) -> Vec<PathBuf>,
        report: &mut ImportReport,
    ) -> Result<()> {
        let folder = self.folder(key);
        let here = self.generations(key)?.whole;
        let mut new: Vec<Staged> = Vec::new();
        for pack in staged.drain(..) {
            let is_here = here.iter().any(|it| self.is_same(it, &pack));
            match is_here || new.iter().any(|it| same(&it.generation, &pack.generation)) {
                true => report.known += 1,
                false => new.push(pack),
            }
        }
        give_numbers(&mut new, &folder)?;
        let joined = self.joined(key, &here, &new, files)?;
        for pack in new {
            let there = pack.number;
            if !joined.contains(&pack.generation.number) {
                report.refused.push(Unjoined { key: key.clone(), number: there });
                continue;
            }
            crate::store::disk::private_folder(&folder)?;
            let generation = pack.put_in_place(&folder, when)?;
            let path = pack_path(&folder, generation.number);
            let stored = Bytes(fs::metadata(&path).map_or(0, |meta| meta.len()));
            report.added.push(Imported { key: key.clone(), number: generation.number, stored });
        }
        Ok(())
    }

    /// Whether a generation that is here is the same as one of an export, and whole.
    fn is_same(&self, here: &Generation, pack: &Staged) -> bool {
        let path = pack_path(&self.folder(&here.key()), here.number);
        let mut report = VerifyReport::default();
        same(here, &pack.generation)
            && verify_pack(&path, &mut report).is_ok()
            && report.faults.is_empty()
    }

    /// The numbers of new generations that join what is here, by hash.
    fn joined(
        &self,
        key: &SessionKey,
        here: &[Generation],
        new: &[Staged],
        files: &dyn Fn(&Generation) -> Vec<PathBuf>,
    ) -> Result<BTreeSet<u64>> {
        let blobs = StagedBlobs { here: self.blobs(key), new };
        let all: Vec<Generation> =
            here.iter().chain(new.iter().map(|pack| &pack.generation)).cloned().collect();
        let mut found: BTreeSet<PathBuf> = BTreeSet::new();
        all.iter().for_each(|generation| found.extend(files(generation)));
        let mut joined: BTreeSet<u64> = here.iter().map(|it| it.number).collect();
        for file in found {
            let Ok(source) = crate::place::open(&file) else { continue };
            let (before, after) = (walk(&source, here, &blobs)?, walk(&source, &all, &blobs)?);
            // What is imported must not fit a state of the file that a generation here left.
            let is_new = |number: &u64| new.iter().any(|pack| pack.generation.number == *number);
            let is_in_the_way = after.passed_over.iter().any(is_new);
            if is_in_the_way || !before.undone.is_subset(&after.undone) {
                let what = "it would break the way back of a session that is here";
                return Err(Error::new(ErrorKind::Refused, what).at(&file));
            }
            joined.extend(after.met);
        }
        // What one left is what the next began with, whether there is a file or not.
        loop {
            let known: Vec<&Generation> =
                all.iter().filter(|it| joined.contains(&it.number)).collect();
            let touches = |new: &&Generation| {
                let is_next = |it: &&Generation| {
                    let is_same = it.before == new.before && it.after == new.after;
                    is_same || it.before == new.after || it.after == new.before
                };
                !joined.contains(&new.number) && known.iter().copied().any(|it| is_next(&it))
            };
            let more: Vec<u64> = all.iter().filter(touches).map(|it| it.number).collect();
            if more.is_empty() {
                return Ok(joined);
            }
            joined.extend(more);
        }
    }
}

/// A whole pack that is not in the archive yet. Its generation has the number it would get.
struct Staged {
    temp: Temp,
    pack: Pack,
    generation: Generation,
    /// The number that it had.
    number: u64,
}

impl Staged {
    /// Puts the pack in place, with a manifest that says where it came from.
    fn put_in_place(self, folder: &Path, when: Timestamp) -> Result<Generation> {
        let Staged { temp, pack, generation, .. } = self;
        let mut entries = pack.entries().to_vec();
        let manifest = entries.iter().find(|entry| entry.kind == Kind::Manifest).copied();
        let end = manifest.map(|entry| entry.at).filter(|&end| {
            entries.iter().all(|entry| entry.kind == Kind::Manifest || entry.end() <= Some(end))
        });
        let end = end.ok_or_else(|| {
            Error::new(ErrorKind::Refused, "it holds a pack that epitome did not write")
        })?;
        entries.retain(|entry| entry.kind != Kind::Manifest);
        drop(pack);
        let key = generation.key();
        let wanted = Some(generation.number);
        let generation = Generation { imported: Some(when), ..generation };
        PackWriter::resume(temp, folder.to_owned(), &key, entries, end)?.finish(generation, wanted)
    }
}

/// Whether two generations are the same but for their numbers and how they came here.
fn same(one: &Generation, other: &Generation) -> bool {
    let plain = |it: &Generation| Generation { number: 0, imported: None, ..it.clone() };
    plain(one) == plain(other)
}

/// Gives packs the numbers that they had, if these are free and leave no gap behind the highest;
/// else the next ones.
fn give_numbers(new: &mut [Staged], folder: &Path) -> Result<()> {
    let mut taken: BTreeSet<u64> = numbers(folder)?.into_iter().collect();
    // A removed one may be moved back from the trash.
    taken.extend(removed_numbers(folder)?);
    let mut next = next_number(folder)?;
    for pack in new {
        let is_free = pack.number <= next && !taken.contains(&pack.number);
        let number = if is_free { pack.number } else { next };
        pack.generation.number = number;
        taken.insert(number);
        next = next.max(number + 1);
    }
    Ok(())
}

/// Removed bytes of packs that are here, and of such that are not in the archive yet.
struct StagedBlobs<'a> {
    here: SessionBlobs,
    new: &'a [Staged],
}

impl Blobs for StagedBlobs<'_> {
    fn blob(&self, generation: u64, hash: &Hash) -> Result<Vec<u8>> {
        match self.new.iter().find(|pack| pack.generation.number == generation) {
            Some(pack) => pack.pack.read(hash),
            None => self.here.blob(generation, hash),
        }
    }
}

/// Reads a file from its beginning to the length that it had when it was opened.
struct SourceReader<'a> {
    file: &'a FileSource,
    at: u64,
}

impl Read for SourceReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = epitome_model::Source::read(self.file, self.at..self.at + into.len() as u64);
        if let Some(err) = self.file.failure() {
            return Err(err.into());
        }
        into[..bytes.len()].copy_from_slice(&bytes);
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }
}
