//! Export and import of a session's part of the archive, to move it to another machine.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use epitome_model::Bytes;
use jiff::Timestamp;

use crate::archive::check::{VerifyReport, verify_pack};
use crate::archive::pack::{Kind, Pack};
use crate::archive::pack_store::{NewPack, PackBytes, PackReader, PackStore};
use crate::archive::{
    Archive, Blobs, GcMode, Generation, Hash, Numbers, PackWriter, SessionBlobs, SessionKey,
    number_of, pack_name,
};
use crate::restore::walk;
use crate::vault::{StagedVersions, VaultPack};
use epitome_error::{Error, ErrorKind, Result};

/// The maximum length of an imported pack in bytes.
const LONGEST_PACK: u64 = 8 << 30;
/// The folder in an export that contains packs of the vault. No agent has this name.
const VAULT: &str = "vault";
/// The length of a block of a tar archive. A complete archive ends with at least one empty block.
const BLOCK: u64 = 512;
/// The maximum number of packs in one import.
const MOST_PACKS: usize = 100_000;

/// An imported pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedPack {
    /// The session that the pack belongs to.
    pub key: SessionKey,
    /// The number of the pack in this archive. It differs from the exported number if that was
    /// taken or would leave a gap.
    pub number: u64,
    /// The length of the pack on disk.
    pub stored: Bytes,
}

/// A pack that was not imported, because its hashes match neither the archive nor a file of the
/// session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedPack {
    /// The session that the pack claims to belong to.
    pub key: SessionKey,
    /// The number of the pack in the export.
    pub number: u64,
}

/// A pack that the caller got from a remote archive, for [`Archive::receive`].
pub struct ReceivedPack {
    /// The number of the pack in the archive that wrote it.
    pub number: u64,
    /// The length of the pack.
    pub len: u64,
    /// The bytes of the pack.
    pub bytes: Box<dyn Read>,
}

/// The result of [`Archive::import`] and [`Archive::receive`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// The packs that were imported.
    pub added: Vec<ImportedPack>,
    /// Number of packs that were not added because the archive, or an earlier pack of the same
    /// import, has the same generation.
    pub known: u64,
    /// The packs that were rejected: see [`RejectedPack`].
    pub refused: Vec<RejectedPack>,
    /// Number of packs of sessions that the caller does not want.
    pub unwanted: u64,
}

impl Archive {
    /// Writes a tar archive of all packs of a session, and of the sub-agents' sessions and logs
    /// that were compacted together with it. Packs in the trash are left out. The same packs always
    /// give the same bytes. Returns the number of packs.
    ///
    /// # Errors
    ///
    /// `NotFound` if there are no packs; `Archive` if a folder cannot be listed; `NoPermission` or
    /// `Unreadable` if a pack cannot be read; the errors of `out`.
    pub fn export(&self, key: &SessionKey, out: &mut dyn Write) -> Result<u64> {
        self.export_with(Some(key), &[], out)
    }

    /// As [`export`](Archive::export), and also writes the packs `versions` of the vault. If `key`
    /// is `None`, only these are written. The returned number does not include packs of the vault.
    ///
    /// # Errors
    ///
    /// The errors of [`export`](Archive::export); `NotFound` only if `versions` is empty, too.
    pub fn export_with(
        &self,
        key: Option<&SessionKey>,
        versions: &[VaultPack],
        out: &mut dyn Write,
    ) -> Result<u64> {
        let mut names = Vec::new();
        let keys = key.map(|key| self.with_parts(key)).transpose()?.unwrap_or_default();
        for key in keys {
            let folder = key.folder();
            let numbers = self.numbers(&folder)?.here.into_iter();
            names.extend(numbers.map(|number| pack_name(&folder, number)));
        }
        if names.is_empty() && versions.is_empty() {
            let what = "the archive holds nothing of this session";
            let place = self.store().location(&key.map(SessionKey::folder).unwrap_or_default());
            return Err(Error::new(ErrorKind::NotFound, what).at(&place));
        }
        let mut tar = tar::Builder::new(out);
        if let Err(err) = self.append_all(&mut tar, &names, versions) {
            // Dropping the builder would write the end mark, and the incomplete export would look
            // complete.
            std::mem::forget(tar);
            return Err(err);
        }
        tar.into_inner().and_then(Write::flush).map_err(Error::from)?;
        Ok(names.len() as u64)
    }

    fn append_all(
        &self,
        tar: &mut tar::Builder<&mut dyn Write>,
        names: &[String],
        versions: &[VaultPack],
    ) -> Result<()> {
        for name in names {
            let pack = self.store().open(name)?;
            append(tar, name, &*pack)?;
        }
        for pack in versions {
            let name = pack_name(&format!("{VAULT}/{}", pack.machine), pack.number);
            append(tar, &name, &*pack.bytes)?;
        }
        Ok(())
    }

    /// The keys of a session and of everything that was compacted together with it: its sub-agents'
    /// sessions, and the logs of its database.
    ///
    /// # Errors
    ///
    /// `Archive` if a folder cannot be listed. A pack that cannot be read is skipped.
    pub fn with_parts(&self, key: &SessionKey) -> Result<Vec<SessionKey>> {
        let mut parts: BTreeSet<SessionKey> = BTreeSet::new();
        for generation in self.generations(key)?.whole {
            parts.extend(generation.parts.into_iter().map(|part| part.key));
        }
        // The session itself may have had nothing to remove. Then only the packs of its sub-agents'
        // sessions and logs name the session.
        for other in self.sessions_found()?.keys.into_iter().filter(|it| it.agent == key.agent) {
            if !parts.contains(&other)
                && self.generations(&other)?.whole.iter().any(|it| it.part_of.as_ref() == Some(key))
            {
                parts.insert(other);
            }
        }
        parts.remove(key);
        Ok(std::iter::once(key.clone()).chain(parts).collect())
    }

    /// Imports packs from a tar archive, which anyone may have made. Everything is read and
    /// verified before the first pack is added to the archive. Of the name of an entry, only the
    /// number is used. No existing pack is replaced.
    ///
    /// A generation is imported only if its hashes match one of the files that `files` returns for
    /// the generations of its session, or a generation of its session that is in the archive or is
    /// imported with it. The report names the generations that are not imported. Each imported
    /// generation is marked as imported at `when`.
    ///
    /// # Errors
    ///
    /// `Unreadable` if `from` is not a tar archive. `Refused` if it is empty, has no end mark, or
    /// contains anything but whole packs, packs that are too long or too many, a generation whose
    /// file after the compaction is empty, or a generation that would change how a session on this
    /// machine is restored. `NewerFormat` if a newer version of epitome wrote a pack; `Disk` if a
    /// pack cannot be written, after which the packs before it stay in the archive; the errors of
    /// reading the files that `files` returns.
    pub fn import(
        &self,
        from: &mut dyn Read,
        when: Timestamp,
        files: &dyn Fn(&Generation) -> Vec<PathBuf>,
    ) -> Result<ImportReport> {
        self.import_with(from, when, files, &|_| true, None)
    }

    /// As [`import`](Archive::import), but only packs of those sessions for which `is_wanted` is
    /// true. Packs of a vault are added to `versions`, for
    /// [`Vault::receive`](crate::vault::Vault::receive). If `versions` is `None`, an import with
    /// such a pack is refused.
    ///
    /// # Errors
    ///
    /// The errors of [`import`](Archive::import) and of [`StagedVersions::add`].
    pub fn import_with(
        &self,
        from: &mut dyn Read,
        when: Timestamp,
        files: &dyn Fn(&Generation) -> Vec<PathBuf>,
        is_wanted: &dyn Fn(&SessionKey) -> bool,
        mut versions: Option<&mut StagedVersions>,
    ) -> Result<ImportReport> {
        self.store().sweep("", GcMode::Remove);
        let mut counting = CountingReader { from, read: 0 };
        let mut tar = tar::Archive::new(&mut counting as &mut dyn Read);
        let mut staged: BTreeMap<SessionKey, Vec<Staged>> = BTreeMap::new();
        let mut packs = 0;
        let mut end = 0;
        for entry in tar.entries().map_err(unreadable)? {
            let mut entry = entry.map_err(unreadable)?;
            end = entry.raw_file_position().saturating_add(entry.size());
            if packs == MOST_PACKS {
                return Err(Error::new(ErrorKind::Refused, "it holds too many packs"));
            }
            packs += 1;
            if let Some(versions) = versions.as_deref_mut()
                && let Some((machine, number)) = vault_pack_of(&entry)
            {
                let len = entry.size();
                versions.add(&machine, number, len, &mut entry)?;
                continue;
            }
            let pack = self.stage_entry(&mut entry)?;
            staged.entry(pack.generation.key()).or_default().push(pack);
        }
        if packs == 0 {
            let what = "not an archive export: it is empty";
            return Err(Error::new(ErrorKind::Refused, what));
        }
        if counting.read < end.saturating_add(BLOCK) {
            return Err(refused("the export is cut off"));
        }
        let mut report = ImportReport::default();
        let mut accepted = Vec::new();
        for (key, mut staged) in staged {
            if !is_wanted(&key) {
                report.unwanted += staged.len() as u64;
                continue;
            }
            staged.sort_by_key(|pack| pack.number);
            accepted.extend(self.accepted(&key, staged, files, &mut report)?);
        }
        // Nothing is added before the packs of all sessions were checked.
        self.add_all(accepted, Some(when), &mut report)?;
        Ok(report)
    }

    /// Adds packs that the same user's epitome wrote on another machine; the caller must have
    /// proved this. Each pack is read and verified before the first is added. No existing pack is
    /// replaced.
    ///
    /// If the archive has nothing of a session, its packs are added unchanged, under their numbers.
    /// All other packs, and the second of two packs with the same number, are added as
    /// [`import`](Archive::import) does it, but without the mark of an import.
    ///
    /// # Errors
    ///
    /// The errors of reading `packs` and the files that `files` returns; `Refused` if a pack is
    /// damaged or too long, if its file after the compaction is empty, or if it would change how a
    /// session on this machine is restored; `NewerFormat` if a newer version of epitome wrote a
    /// pack; `Disk` if a pack cannot be written.
    pub fn receive(
        &self,
        packs: &mut dyn Iterator<Item = Result<ReceivedPack>>,
        files: &dyn Fn(&Generation) -> Vec<PathBuf>,
    ) -> Result<ImportReport> {
        let mut staged: BTreeMap<SessionKey, Vec<Staged>> = BTreeMap::new();
        for pack in packs {
            let mut pack = pack?;
            let pack = self.stage(pack.number, pack.len, &mut pack.bytes)?;
            staged.entry(pack.generation.key()).or_default().push(pack);
        }
        let mut report = ImportReport::default();
        for (key, mut staged) in staged {
            staged.sort_by_key(|pack| (pack.number, pack.generation.made));
            let others = self.adopt(&key, staged, &mut report)?;
            if !others.is_empty() {
                let accepted = self.accepted(&key, others, files, &mut report)?;
                self.add_all(accepted, None, &mut report)?;
            }
        }
        Ok(report)
    }

    /// If the archive has nothing of a session, adds its packs unchanged. Returns the packs that
    /// were not added.
    fn adopt(
        &self,
        key: &SessionKey,
        staged: Vec<Staged>,
        report: &mut ImportReport,
    ) -> Result<Vec<Staged>> {
        let folder = key.folder();
        if self.numbers(&folder)? != Numbers::default() {
            return Ok(staged);
        }
        self.store().make_folder(&folder)?;
        let mut others = Vec::new();
        for staged in staged {
            let Staged { new, pack, generation, number } = staged;
            let stored = Bytes(pack.len());
            match new.put(&pack_name(&folder, number))? {
                None => report.added.push(ImportedPack { key: key.clone(), number, stored }),
                Some(new) => others.push(Staged { new, pack, generation, number }),
            }
        }
        Ok(others)
    }

    fn stage_entry(&self, entry: &mut tar::Entry<'_, &mut dyn Read>) -> Result<Staged> {
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let number = name.rsplit('/').next().and_then(number_of);
        let number = number.filter(|_| entry.header().entry_type().is_file());
        let number = number.ok_or_else(|| refused("it contains something that is not a pack"))?;
        let len = entry.size();
        self.stage(number, len, entry)
    }

    /// Copies `len` bytes from `from` into a new pack that has no name yet, and verifies that pack.
    fn stage(&self, number: u64, len: u64, from: &mut dyn Read) -> Result<Staged> {
        if len > LONGEST_PACK {
            return Err(refused("it holds a pack that is too long"));
        }
        let mut new = self.store().begin("")?;
        let copied = io::copy(&mut from.take(LONGEST_PACK), &mut new)
            .map_err(|err| Error::writing(err, "the archive", &self.store().location("")))?;
        if copied != len {
            return Err(refused("the export is cut off"));
        }
        let mut report = VerifyReport::default();
        let read = new.open().and_then(|bytes| Pack::open(bytes, new.location()));
        let verified = read.and_then(|pack| Ok((verify_pack(&pack, &mut report)?, pack)));
        let (generation, pack) = match verified {
            Ok(verified) => verified,
            Err(err) if matches!(err.kind(), ErrorKind::Archive | ErrorKind::Broken) => {
                return Err(refused("it holds a damaged pack").because(err));
            }
            Err(err) => return Err(err),
        };
        if let Some(fault) = report.faults.pop() {
            return Err(refused("it holds a damaged pack").because(fault));
        }
        if generation.after.len == 0 {
            // The digest of an empty file would match the beginning of every file.
            return Err(refused("it holds a generation that left an empty file"));
        }
        Ok(Staged { new, pack, generation, number })
    }

    /// Those of the packs `staged` of a session that are new and for which
    /// [`joined`](Archive::joined) returns the number. Adds nothing to the archive.
    fn accepted(
        &self,
        key: &SessionKey,
        staged: Vec<Staged>,
        files: &dyn Fn(&Generation) -> Vec<PathBuf>,
        report: &mut ImportReport,
    ) -> Result<Vec<Staged>> {
        let here = self.generations(key)?.whole;
        let mut new: Vec<Staged> = Vec::new();
        for pack in staged {
            let is_here = here.iter().any(|it| self.is_same(it, &pack));
            if is_here || new.iter().any(|it| same(&it.generation, &pack.generation)) {
                report.known += 1
            } else {
                new.push(pack)
            }
        }
        give_numbers(&mut new, self.numbers(&key.folder())?);
        let joined = self.joined(key, &here, &new, files)?;
        let mut accepted = Vec::new();
        for pack in new {
            if joined.contains(&pack.generation.number) {
                pack.end_of_pieces()?;
                accepted.push(pack);
            } else {
                report.refused.push(RejectedPack { key: key.clone(), number: pack.number });
            }
        }
        Ok(accepted)
    }

    /// Adds packs to the archive.
    fn add_all(
        &self,
        packs: Vec<Staged>,
        when: Option<Timestamp>,
        report: &mut ImportReport,
    ) -> Result<()> {
        for pack in packs {
            let key = pack.generation.key();
            let folder = key.folder();
            self.store().make_folder(&folder)?;
            let Generation { number, .. } = pack.put_in_place(Arc::clone(self.store()), when)?;
            let facts = self.store().facts(&pack_name(&folder, number));
            let stored = facts.map_or(Bytes(0), |facts| facts.len);
            report.added.push(ImportedPack { key, number, stored });
        }
        Ok(())
    }

    /// Whether a generation of the archive equals an imported one, and the pack in the archive is
    /// undamaged.
    fn is_same(&self, here: &Generation, pack: &Staged) -> bool {
        let name = pack_name(&here.key().folder(), here.number);
        let mut report = VerifyReport::default();
        same(here, &pack.generation)
            && self.pack(&name).is_ok_and(|pack| verify_pack(&pack, &mut report).is_ok())
            && report.faults.is_empty()
    }

    /// The numbers of the generations that the archive may have after the import: all in `here`,
    /// and those in `new` that match a file on this machine or another generation of the result.
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
            let source = match crate::place::open(&file) {
                Ok(source) => source,
                Err(err) if is_no_session(&err) => continue,
                Err(err) => return Err(err),
            };
            let before = walk(&source, here, &blobs)?;
            let after = walk(&source, &all, &blobs)?;
            // The import must not change how this file is restored. It is refused if an imported
            // generation matches the file, but an older one with a longer result is undone instead;
            // and if a generation that is undone without the import is not undone with it.
            let is_in_the_way = after
                .passed_over
                .iter()
                .any(|number| new.iter().any(|pack| pack.generation.number == *number));
            if is_in_the_way || !before.undone.is_subset(&after.undone) {
                let what = "it would break the way back of a session that is here";
                return Err(Error::new(ErrorKind::Refused, what).at(&file));
            }
            joined.extend(after.met);
        }
        // A generation also matches if it touches a matching one (see `touch`), even if no file on
        // this machine matches it.
        loop {
            let known: Vec<&Generation> =
                all.iter().filter(|it| joined.contains(&it.number)).collect();
            let more = all.iter().filter(|new| {
                !joined.contains(&new.number) && known.iter().any(|known| touch(known, new))
            });
            let more: Vec<u64> = more.map(|generation| generation.number).collect();
            if more.is_empty() {
                return Ok(joined);
            }
            joined.extend(more);
        }
    }
}

/// Counts the bytes that are read.
struct CountingReader<'r> {
    from: &'r mut dyn Read,
    read: u64,
}

impl Read for CountingReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        self.read += read as u64;
        Ok(read)
    }
}

/// Adds a pack to a tar archive. The same pack always gives the same bytes.
fn append(tar: &mut tar::Builder<&mut dyn Write>, name: &str, pack: &dyn PackBytes) -> Result<()> {
    let mut head = tar::Header::new_ustar();
    head.set_size(pack.len());
    head.set_mode(0o600);
    head.set_mtime(0);
    tar.append_data(&mut head, name, PackReader::new(pack)).map_err(Error::from)
}

/// The machine and the number, if an entry of an export is a pack of a vault; otherwise `None`.
fn vault_pack_of(entry: &tar::Entry<'_, &mut dyn Read>) -> Option<(String, u64)> {
    let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    let (machine, file) = name.strip_prefix(VAULT)?.strip_prefix('/')?.split_once('/')?;
    let number = number_of(file).filter(|_| entry.header().entry_type().is_file())?;
    Some((machine.to_owned(), number))
}

/// Whether the file after one generation is the file before the other, or both generations are the
/// same compaction.
fn touch(one: &Generation, other: &Generation) -> bool {
    let is_same = one.before == other.before && one.after == other.after;
    is_same || one.before == other.after || one.after == other.before
}

fn refused(what: &str) -> Error {
    Error::new(ErrorKind::Refused, what)
}

fn unreadable(err: io::Error) -> Error {
    Error::new(ErrorKind::Unreadable, "not an archive export").because(err)
}

/// Whether an error means that a path does not lead to a session.
fn is_no_session(err: &Error) -> bool {
    matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotAFile | ErrorKind::UnknownFormat)
}

/// A verified pack that is not in the archive yet. Once `give_numbers` was called, its generation
/// has the number that the pack gets in the archive.
struct Staged {
    new: Box<dyn NewPack>,
    pack: Pack,
    generation: Generation,
    /// The number of the pack in the export.
    number: u64,
}

impl Staged {
    /// Where the pieces of the pack end and its manifest begins.
    ///
    /// # Errors
    ///
    /// `Refused` if the pack has no manifest, or a piece after it.
    fn end_of_pieces(&self) -> Result<u64> {
        let entries = self.pack.entries();
        let manifest = entries.iter().find(|entry| entry.kind == Kind::Manifest);
        let end = manifest.map(|entry| entry.at).filter(|&end| {
            entries.iter().all(|entry| entry.kind == Kind::Manifest || entry.end() <= Some(end))
        });
        end.ok_or_else(|| refused("it holds a pack that epitome did not write"))
    }

    /// Adds the pack to the archive, with a manifest that has the new number and, if `when` is
    /// given, marks the generation as imported at that time.
    fn put_in_place(
        self,
        store: Arc<dyn PackStore>,
        when: Option<Timestamp>,
    ) -> Result<Generation> {
        let end = self.end_of_pieces()?;
        let Staged { new, pack, generation, .. } = self;
        let mut entries = pack.entries().to_vec();
        entries.retain(|entry| entry.kind != Kind::Manifest);
        drop(pack);
        let key = generation.key();
        let wanted = Some(generation.number);
        let imported = when.or(generation.imported);
        let generation = Generation { imported, ..generation };
        PackWriter::resume(new, store, &key, entries, end)?.finish(generation, wanted)
    }
}

/// Whether two generations are equal in all but their numbers, their marks of import, and which of
/// their bytes were forgotten.
fn same(one: &Generation, other: &Generation) -> bool {
    // Forgotten bytes are not compared: otherwise an import would bring back what was forgotten
    // here.
    let plain = |it: &Generation| Generation {
        number: 0,
        imported: None,
        forgotten: Vec::new(),
        ..it.clone()
    };
    plain(one) == plain(other)
}

/// Assigns numbers to packs. A pack keeps the number that it has in the export, if that is free and
/// leaves no gap after the highest number in the archive; otherwise it gets the next free number.
fn give_numbers(new: &mut [Staged], known: Numbers) {
    let mut next = known.next();
    // A removed pack might be moved back from the trash, so its number is not free.
    let mut taken: BTreeSet<u64> = known.here.into_iter().chain(known.removed).collect();
    for pack in new {
        let is_free = pack.number <= next && !taken.contains(&pack.number);
        let number = if is_free { pack.number } else { next };
        pack.generation.number = number;
        taken.insert(number);
        next = next.max(number + 1);
    }
}

/// The removed bytes in the packs of the archive and in those that are being imported.
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
