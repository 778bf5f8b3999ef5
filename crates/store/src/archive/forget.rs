//! Forgets what was archived: a text in all packs, or all packs of a session. What undoes a
//! compaction is adapted to a session in which a text was masked.
//!
//! A pack with the text is replaced, in one step and under the same number, by a pack without it. A
//! process that is killed leaves either the old pack or the new one. A pack in the trash is deleted
//! instead.

use std::collections::HashSet;
use std::path::Path;

use epitome_model::{Bytes, Ref};

use super::collect::TRASH;
use super::pack::{Entry, Kind, Pack, were_forgotten};
use super::pieces::PieceWriter;
use super::writer::LEVEL;
use super::{Archive, Generation, Hash, SessionKey, pack_name};
use crate::archive::pack_store::{FolderName, PackReader};
use crate::forgotten::ForgottenText;
use crate::source::FileSource;
use crate::store::disk::GcMode;
use epitome_error::{Error, ErrorKind, Result};

/// A pack that has a text which is to be forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackWithText {
    /// The name of the pack in its store.
    name: String,
    /// The session that the pack is of.
    pub key: SessionKey,
    /// The number of pieces of removed bytes that have the text.
    pub pieces: u64,
    /// Whether a restore needs one of these pieces. A compaction that only appended a record to the
    /// session is undone without those that it took out of the context.
    pub is_needed: bool,
    /// Whether the pack is in the trash.
    pub is_trash: bool,
    /// The hash of the whole pack. It identifies the copies of the pack in object storage.
    pub blake3: Hash,
}

impl Archive {
    /// The packs that have a text, those in the trash included.
    ///
    /// # Errors
    ///
    /// `Archive` if a folder cannot be listed, or if a pack, a piece of it or a description is
    /// damaged: the text may be in it. The errors of opening and reading packs.
    pub fn packs_with(&self, text: &ForgottenText) -> Result<Vec<PackWithText>> {
        let mut found = Vec::new();
        for (name, is_trash) in self.all_packs()? {
            let pack = match self.pack(&name) {
                Err(err) if err.kind() == ErrorKind::NotFound => continue,
                opened => opened?,
            };
            let mut pieces = HashSet::new();
            let mut is_elsewhere = false;
            for entry in pack.entries() {
                let is_here = text.is_in(&pack.raw(entry)?);
                if is_here && entry.kind == Kind::Blob {
                    pieces.insert(entry.hash);
                }
                is_elsewhere |= is_here || text.is_in(&pack.undamaged_about(entry)?);
            }
            if is_elsewhere {
                let is_needed =
                    !pieces.is_empty() && pack.generation()?.blobs().any(|it| pieces.contains(&it));
                found.push(PackWithText {
                    key: pack.key()?,
                    blake3: self.pack_hash(&name)?,
                    name,
                    pieces: pieces.len() as u64,
                    is_needed,
                    is_trash,
                });
            }
        }
        Ok(found)
    }

    fn pack_hash(&self, name: &str) -> Result<Hash> {
        let pack = self.store.open(name)?;
        let mut hasher = blake3::Hasher::new();
        hasher
            .update_reader(PackReader::new(&*pack))
            .map_err(|err| Error::reading(err, "the archive", &self.store.location(name)))?;
        Ok(Hash::from_bytes(hasher.finalize().into()))
    }

    /// Returns an error if a text is in the archive's own records, where it cannot be masked: in
    /// the name of a folder, in a manifest, in the key of a session, or in a description of removed
    /// bytes outside of its member `what`.
    ///
    /// # Errors
    ///
    /// `Refused`, with the name of the session, if the text is in such a record; the errors of
    /// [`packs_with`](Archive::packs_with).
    pub fn check_records(&self, text: &ForgottenText) -> Result<()> {
        for (name, is_trash) in self.all_packs()? {
            let pack = match self.pack(&name) {
                Err(err) if err.kind() == ErrorKind::NotFound => continue,
                opened => opened?,
            };
            let mut is_here = text.is_in(name.as_bytes());
            // A pack in the trash is deleted as a whole, so its records need not be checked.
            for entry in pack.entries().iter().filter(|_| !is_trash) {
                is_here |= match entry.kind {
                    Kind::Manifest => {
                        let raw = pack.raw(entry)?;
                        text.is_in(&raw) || text.is_in(&with_forgotten(&pack, &raw, &[])?)
                    }
                    Kind::Key | Kind::Blob | Kind::Chunk | Kind::Versions => {
                        let about = pack.undamaged_about(entry)?;
                        !changes_only_what(&about, &text.masked(&about))
                    }
                };
            }
            if is_here {
                let key = pack.key()?;
                return Err(text.in_records(&format!("the archive of {} {}", key.agent, key.id)));
            }
        }
        Ok(())
    }

    /// Removes a text from the archive: deletes the pieces that contain it, and masks it in
    /// descriptions. Packs in the trash that contain it are deleted. Returns the packs that had it.
    ///
    /// The bytes of the deleted pieces and of the deleted packs cannot be restored any more. All
    /// other bytes can.
    ///
    /// # Errors
    ///
    /// The errors of [`packs_with`](Archive::packs_with). `Disk` or `NoPermission` if a pack cannot
    /// be replaced or deleted, and `Unsupported` if the store replaces no packs: the packs after
    /// that one are then unchanged.
    pub fn forget_text(&self, text: &ForgottenText) -> Result<Vec<PackWithText>> {
        self.sweep_all()?;
        let found = self.packs_with(text)?;
        for pack in &found {
            if pack.is_trash {
                self.store.delete(&pack.name)?;
            } else {
                self.replace_without(&pack.name, text)?;
            }
        }
        Ok(found)
    }

    /// Deletes all packs of a session, those in the trash included. A note stays for each pack, so
    /// that no later restore takes a compacted session for an original. Returns the number of
    /// deleted packs and their total length on disk.
    ///
    /// # Errors
    ///
    /// `Archive` if a folder cannot be listed; `NoPermission` or `Unreadable` if a pack cannot be
    /// read (a damaged pack is deleted without this error); `Disk` or `NoPermission` if a pack
    /// cannot be deleted.
    pub fn forget_session(&self, key: &SessionKey) -> Result<(u64, Bytes)> {
        let folder = key.folder();
        self.store.sweep(&folder, GcMode::Remove);
        let mut packs = 0;
        let mut stored = Bytes(0);
        // The newest first, so that an interruption leaves numbers without gaps.
        for number in self.numbers(&folder)?.here.into_iter().rev() {
            let name = pack_name(&folder, number);
            let generation = self.read_unless_damaged(&name, number)?;
            self.note_removed(&folder, number, generation.as_ref())?;
            stored += self.size(&name);
            self.store.delete(&name)?;
            packs += 1;
        }
        let trash = format!("{TRASH}/{folder}");
        for name in self.packs_in_trash(&trash)? {
            stored += self.size(&name);
            self.store.delete(&name)?;
            packs += 1;
        }
        if packs > 0 {
            self.store.flush_folder(&folder)?;
        }
        self.store.remove_if_empty(&trash);
        Ok((packs, stored))
    }

    /// The number of packs of a session and their total length on disk, those in the trash
    /// included.
    ///
    /// # Errors
    ///
    /// `Archive` if a folder cannot be listed.
    pub fn size_with_trash(&self, key: &SessionKey) -> Result<(u64, Bytes)> {
        let folder = key.folder();
        let numbers = self.numbers(&folder)?.here.into_iter();
        let mut names: Vec<String> = numbers.map(|it| pack_name(&folder, it)).collect();
        names.extend(self.packs_in_trash(&format!("{TRASH}/{folder}"))?);
        let stored = names.iter().map(|name| self.size(name)).sum();
        Ok((names.len() as u64, stored))
    }

    /// The error for bytes that were forgotten on purpose, if `reference` may refer to such bytes.
    pub(super) fn forgotten(&self, reference: &Ref) -> Option<Error> {
        let keys = self.sessions_found().ok()?.keys;
        let generations = keys.iter().filter_map(|key| self.generations(key).ok());
        let mut generations = generations.flat_map(|found| found.whole);
        let is_named = |hash: &Hash| hash.matches(reference);
        let had = generations.find(|generation| generation.forgotten.iter().any(is_named))?;
        Some(were_forgotten(&reference.to_string()).at(&had.path))
    }

    /// The names of all packs, and whether each is in the trash.
    fn all_packs(&self) -> Result<Vec<(String, bool)>> {
        let mut names = Vec::new();
        for folder in self.session_folders()? {
            let numbers = self.numbers(&folder)?.here.into_iter();
            names.extend(numbers.map(|number| (pack_name(&folder, number), false)));
        }
        for agent in self.folders_in(TRASH)? {
            for folder in self.folders_in(&agent)? {
                names.extend(self.packs_in_trash(&folder)?.into_iter().map(|name| (name, true)));
            }
        }
        Ok(names)
    }

    fn packs_in_trash(&self, folder: &str) -> Result<Vec<String>> {
        let names = self.store.list(folder)?.into_iter();
        let packs = names.filter_map(|listed| match listed {
            FolderName::File(name) => Some(format!("{folder}/{name}")),
            FolderName::Folder(_) => None,
        });
        Ok(packs.collect())
    }

    /// Deletes the temporary files of killed processes in the folders of sessions.
    fn sweep_all(&self) -> Result<()> {
        for folder in self.session_folders()? {
            self.store.sweep(&folder, GcMode::Remove);
        }
        Ok(())
    }

    /// Stores how to undo a generation whose file was changed: its digests, its records, and which
    /// of them are shared. The pack with its number is replaced, in one step.
    ///
    /// # Errors
    ///
    /// `Archive` if there is no such pack, or if it is damaged; `Disk` or `NoPermission` if it
    /// cannot be replaced, and `Unsupported` if the store replaces no packs.
    pub fn replace_undo_data(&self, generation: &Generation) -> Result<()> {
        let name = pack_name(&generation.key().folder(), generation.number);
        let pack = self.pack(&name)?;
        let mut pieces = PieceWriter::begin(&*self.store, &generation.key().folder(), LEVEL)?;
        for entry in in_order(&pack) {
            let about = pack.undamaged_about(entry)?;
            match entry.kind {
                Kind::Manifest => {
                    let raw = with_undo_data(&pack, &pack.raw(entry)?, generation)?;
                    pieces.put(Kind::Manifest, Hash::compute(&raw), &raw, &[])?;
                }
                Kind::Key | Kind::Blob | Kind::Chunk | Kind::Versions => {
                    pieces.copy(&pack, entry, &about)?;
                }
            }
        }
        pieces.replace(&name)
    }

    /// Replaces a pack by one without the text `text`.
    fn replace_without(&self, name: &str, text: &ForgottenText) -> Result<()> {
        let pack = self.pack(name)?;
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut pieces = PieceWriter::begin(&*self.store, folder, LEVEL)?;
        let mut forgotten: Vec<Hash> = Vec::new();
        let mut manifest = None;
        for entry in in_order(&pack) {
            let raw = pack.raw(entry)?;
            let about = pack.undamaged_about(entry)?;
            let about = text.masked(&about);
            match entry.kind {
                Kind::Manifest => manifest = Some(raw),
                Kind::Blob if text.is_in(&raw) => forgotten.push(entry.hash),
                Kind::Key | Kind::Blob | Kind::Chunk | Kind::Versions => {
                    pieces.copy(&pack, entry, &about)?;
                }
            }
        }
        if let Some(raw) = manifest {
            let raw = with_forgotten(&pack, &raw, &forgotten)?;
            pieces.put(Kind::Manifest, Hash::compute(&raw), &raw, &[])?;
        }
        pieces.replace(name)
    }
}

/// Whether two descriptions are equal except for their member `what`, which is a text for people.
fn changes_only_what(before: &[u8], after: &[u8]) -> bool {
    if before == after {
        return true;
    }
    let without_what = |bytes: &[u8]| -> Option<serde_json::Value> {
        let mut value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
        value.as_object_mut()?.remove("what")?;
        Some(value)
    };
    let rest = without_what(before);
    rest.is_some() && rest == without_what(after)
}

/// The entries of a pack in the order of their bytes.
fn in_order(pack: &Pack) -> Vec<&Entry> {
    let mut entries: Vec<&Entry> = pack.entries().iter().collect();
    entries.sort_by_key(|entry| entry.at);
    entries
}

/// Returns `manifest` with what undoes `generation`. Members of `manifest` that this version does
/// not know are kept.
fn with_undo_data(pack: &Pack, manifest: &[u8], generation: &Generation) -> Result<Vec<u8>> {
    let failed = |err| pack.damaged("the manifest of this part is damaged").because(err);
    let mut value: serde_json::Value = serde_json::from_slice(manifest).map_err(failed)?;
    let new = serde_json::to_value(generation).map_err(failed)?;
    for name in ["before", "after", "records", "shared"] {
        if let Some(member) = new.get(name) {
            value[name] = member.clone();
        }
    }
    serde_json::to_vec(&value).map_err(failed)
}

/// Returns `manifest` with the hashes `forgotten` added to its list of forgotten bytes. Members of
/// `manifest` that this version does not know are kept.
fn with_forgotten(pack: &Pack, manifest: &[u8], forgotten: &[Hash]) -> Result<Vec<u8>> {
    let failed = |err| pack.damaged("the manifest of this part is damaged").because(err);
    let mut value: serde_json::Value = serde_json::from_slice(manifest).map_err(failed)?;
    let mut all: Vec<String> = pack.generation()?.forgotten.iter().map(Hash::to_string).collect();
    all.extend(forgotten.iter().map(Hash::to_string));
    value["forgotten"] = all.into();
    serde_json::to_vec(&value).map_err(failed)
}

/// Calls `each` with the bytes of every piece of a pack, and with every description in it. Returns
/// `false`, without calling `each`, if the file cannot be opened as a pack.
///
/// # Errors
///
/// `Archive` if a piece or its description is damaged; the errors of opening the file.
pub fn each_piece(path: &Path, mut each: impl FnMut(&[u8])) -> Result<bool> {
    let file = FileSource::open(path)?;
    let Ok(pack) = Pack::open(Box::new(file), path.to_owned()) else { return Ok(false) };
    for entry in pack.entries() {
        each(&pack.raw(entry)?);
        each(&pack.undamaged_about(entry)?);
    }
    Ok(true)
}
