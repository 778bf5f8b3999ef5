//! The archive: the bytes that were removed from sessions, by their hashes, and how to put them
//! back.
//!
//! # On disk
//!
//! ```text
//! <home>/archive/<agent>/<session>/000001.pack     one compaction of one session: a generation
//!                                  000002.pack     the next one
//!                                  000003.removed  says that a pack was removed on purpose
//!                                  .epitome-….tmp  being written, or left by a killed process
//! <home>/archive/.trash/<agent>/<session>/000003.pack.<seconds>   in the trash since that time
//! ```
//!
//! A pack never changes, except that a pack with a text which is to be forgotten is replaced by one
//! without it. A new pack is written under a temporary name, flushed, and then gets a free number
//! as its name; no existing pack is replaced by it. So a process that is killed at any moment
//! leaves a whole pack or none, and two processes that write at the same time leave two packs. On
//! Unix, folders (0700) and packs (0600) are readable by their owner only.
//!
//! # A pack (format 1)
//!
//! Numbers are little-endian. Hashes are blake3; a *check* is the first bytes of such a hash.
//!
//! ```text
//! header    16 bytes  "EPITPACK", format u32, check of these 12 bytes (4)
//! pieces              one after the other, each a record and a payload:
//!   record  64 bytes  tag (4), hash of the raw bytes (32), raw length u64, stored length u64,
//!                     length of the about u32, check of the record and its about (8)
//!   about             JSON: what the piece is
//!   payload           the raw bytes in zstd
//! contents  64 bytes a piece, sorted by hash: hash (32), offset of the record u64,
//!                     raw length u64, stored length u64, length of the about u32, tag (4)
//! footer    52 bytes  offset of the contents u64, pieces u64, check of the contents (16),
//!                     format u32, check of these 36 bytes (8), "PACKEPIT"
//! ```
//!
//! A tag is `89 45 50` and a letter: `k` (the first piece: its about is the key of the session, and
//! it has no raw bytes), `b` (removed bytes) or `m` (the last piece: the generation as JSON). Packs
//! of the vault have pieces with other letters. The contents repeat the records without the abouts:
//! if either is lost, the payloads can still be read. Raw bytes that do not match their hash are
//! never returned.
//!
//! Unknown members of the JSON are ignored. A change that an older epitome would misread gets a new
//! format number, which older versions refuse.

pub(crate) mod check;
mod collect;
mod folder_store;
mod forget;
mod generation;
mod hash;
mod key;
mod memory_store;
pub(crate) mod pack;
pub mod pack_store;
pub(crate) mod pieces;
mod run;
mod size;
mod undo_data;
pub(crate) mod writer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use epitome_model::{Bytes, Ref};

pub use check::VerifyReport;
pub use collect::{GRACE, GcReport, Grace, Need, Reason, UnneededGenerations};
pub use folder_store::FolderStore;
pub use forget::{PackWithText, each_piece};
pub use generation::{
    About, CompactionInfo, Draft, EditedRecord, Generation, PartGeneration, UndoSplice,
};
pub use hash::{Digest, Hash, Hex, NoHash, RecordHash};
pub use key::SessionKey;
pub use key::safe_name;
pub use memory_store::MemoryStore;
pub use run::Run;
pub use size::PackSize;
pub use undo_data::UndoData;
pub use undo_data::{Line, lines};
pub use writer::PackWriter;

pub use crate::store::disk::GcMode;
use epitome_error::{Error, ErrorKind, Result};
use pack::Pack;
use pack_store::{FolderName, PackStore};

/// The archive of the bytes that were removed from sessions, in the packs of a [`PackStore`].
#[derive(Clone, Debug)]
pub struct Archive {
    store: Arc<dyn PackStore>,
}

/// The generations of a session: those that can be read, the errors of those that cannot, and the
/// numbers of those that were removed on purpose.
#[derive(Clone, Debug, Default)]
pub struct Generations {
    /// The generations whose manifest can be read, sorted by number. Their removed bytes are not
    /// checked.
    pub whole: Vec<Generation>,
    /// One error for each pack that cannot be read, or whose content names another session or
    /// another number; for each gap in the numbers of packs; and for each unreadable note about a
    /// removed pack.
    pub damaged: Vec<Error>,
    /// The numbers for which a note says that the generation was removed on purpose, for example by
    /// [`Archive::gc`].
    pub removed: Vec<u64>,
    /// For each removed generation whose note contains the digest of the file after the compaction:
    /// its number and this digest. A file with this digest is not an original.
    pub removed_left: Vec<(u64, Digest)>,
}

/// The sessions that have generations.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    /// The keys of sessions that have at least one readable pack, sorted.
    pub keys: Vec<SessionKey>,
    /// For each folder in which no pack can be read, the errors of its packs.
    pub unread: Vec<Error>,
}

/// Bytes in the archive that a reference may refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencedBytes {
    /// The session that the bytes were removed from.
    pub key: SessionKey,
    /// The number of the generation that removed the bytes.
    pub generation: u64,
    /// The hash of the bytes.
    pub hash: Hash,
    /// A description of the bytes; empty if the description in the pack is damaged.
    pub about: About,
    /// The length of the bytes.
    pub raw_len: Bytes,
}

impl Archive {
    /// The archive in the folder `home`, which need not exist yet. Packs are files, in a
    /// [`FolderStore`].
    pub fn new(home: &Path) -> Archive {
        Archive::in_store(FolderStore::new(Archive::folder_in(home)))
    }

    /// The archive whose packs are in `store`.
    pub fn in_store(store: impl PackStore + 'static) -> Archive {
        Archive { store: Arc::new(store) }
    }

    /// The folder of the archive in `home`.
    pub fn folder_in(home: &Path) -> PathBuf {
        home.join("archive")
    }

    /// Begins a pack for a new generation of a session.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the folder cannot be made or written.
    pub fn begin(&self, key: &SessionKey) -> Result<PackWriter> {
        PackWriter::begin(Arc::clone(&self.store), key)
    }

    /// The generations of a session, sorted by number; empty if it was never compacted.
    ///
    /// # Errors
    ///
    /// `Archive` if the folder of the session cannot be listed. A pack that cannot be read is not
    /// an error: the result lists it.
    pub fn generations(&self, key: &SessionKey) -> Result<Generations> {
        let folder = key.folder();
        let Numbers { here, removed } = self.numbers(&folder)?;
        let mut found = Generations::default();
        for &number in &removed {
            match self.left_by_removed(&folder, number) {
                Ok(left) => found.removed_left.extend(left.map(|left| (number, left))),
                Err(err) => found.damaged.push(err),
            }
        }
        for number in missing(&here, &removed) {
            found.damaged.push(self.lost(&pack_name(&folder, number), number));
        }
        found.removed = removed;
        for number in here {
            let name = pack_name(&folder, number);
            match self.read_generation(&name, number) {
                Ok(generation) if generation.key() == *key => found.whole.push(generation),
                Ok(_) => found.damaged.push(self.foreign(&name)),
                Err(err) if err.kind() == ErrorKind::NotFound => {}
                Err(err) => found.damaged.push(err),
            }
        }
        Ok(found)
    }

    /// The removed bytes with the hash `hash` in generation `number`, checked against the hash.
    ///
    /// # Errors
    ///
    /// `Archive` if the pack or the bytes are missing or damaged, or if the bytes were forgotten on
    /// purpose; `NewerFormat` if a newer version of epitome wrote the pack; the errors of reading
    /// the pack.
    pub fn read(&self, key: &SessionKey, number: u64, hash: &Hash) -> Result<Vec<u8>> {
        self.open_pack(key, number)?.read(hash)
    }

    /// A reader of all removed bytes of a session, which opens each pack once.
    pub fn blobs(&self, key: &SessionKey) -> SessionBlobs {
        SessionBlobs { archive: self.clone(), key: key.clone(), open: Mutex::default() }
    }

    /// All removed bytes that `reference` may refer to, sorted by session and generation. The bytes
    /// themselves are not read.
    ///
    /// # Errors
    ///
    /// `Archive` if a folder cannot be listed. If nothing was found, also `Archive` if a pack could
    /// not be read, or if the bytes were forgotten on purpose.
    pub fn find(&self, reference: &Ref) -> Result<Vec<ReferencedBytes>> {
        let mut found = Vec::new();
        let mut unread = Vec::new();
        for folder in self.session_folders()? {
            for number in self.numbers(&folder)?.here {
                match self.find_in(&pack_name(&folder, number), number, reference) {
                    Ok(some) => found.extend(some),
                    Err(err) if err.kind() == ErrorKind::NotFound => {}
                    Err(err) => unread.push(err),
                }
            }
        }
        if let (true, Some(err)) = (found.is_empty(), self.forgotten(reference)) {
            return Err(err);
        }
        if let (true, Some(err)) = (found.is_empty(), unread.pop()) {
            let what = format!("{reference} was not found, and a part of the archive is damaged");
            return Err(Error::new(ErrorKind::Archive, what).because(err));
        }
        Ok(found)
    }

    /// The sessions that have at least one readable pack. [`verify`](Archive::verify) names the
    /// damaged packs of the others.
    ///
    /// # Errors
    ///
    /// `Archive` if a folder cannot be listed. If a session has no readable pack, and one of its
    /// packs cannot be read because of the disk, not because of its content: the error of reading
    /// that pack, for example `NoPermission`.
    pub fn sessions(&self) -> Result<Vec<SessionKey>> {
        let Sessions { keys, unread } = self.sessions_found()?;
        match unread.into_iter().find(|err| !is_damage(err)) {
            Some(err) => Err(err),
            None => Ok(keys),
        }
    }

    /// All sessions that have a readable pack, and the errors of the packs in folders without a
    /// readable pack.
    ///
    /// # Errors
    ///
    /// `Archive` when a folder cannot be listed.
    pub fn sessions_found(&self) -> Result<Sessions> {
        let mut found = Sessions::default();
        for folder in self.session_folders()? {
            let mut unread = Vec::new();
            let is_known = self.numbers(&folder)?.here.into_iter().any(|number| {
                let pack = self.pack(&pack_name(&folder, number));
                match pack.and_then(|pack| pack.key()) {
                    Ok(key) => {
                        found.keys.push(key);
                        true
                    }
                    Err(err) => {
                        unread.push(err);
                        false
                    }
                }
            });
            // A pack that is not found was removed after the folder was listed: this is no error.
            unread.retain(|err| err.kind() != ErrorKind::NotFound);
            if !is_known {
                found.unread.append(&mut unread);
            }
        }
        found.keys.sort();
        found.keys.dedup();
        Ok(found)
    }

    pub(crate) fn store(&self) -> &Arc<dyn PackStore> {
        &self.store
    }

    /// Opens the pack with this name.
    pub(crate) fn pack(&self, name: &str) -> Result<Pack> {
        Pack::open(self.store.open(name)?, self.store.location(name))
    }

    /// Opens a pack, and checks that it belongs to the session with the key `key`.
    fn open_pack(&self, key: &SessionKey, number: u64) -> Result<Pack> {
        let name = pack_name(&key.folder(), number);
        let pack = self.pack(&name).map_err(|err| {
            if err.kind() != ErrorKind::NotFound {
                return err;
            }
            self.lost(&name, number).because(err)
        })?;
        if pack.key()? != *key {
            return Err(self.foreign(&name));
        }
        Ok(pack)
    }

    /// The folders of all sessions, sorted.
    fn session_folders(&self) -> Result<Vec<String>> {
        let mut folders = Vec::new();
        for agent in self.folders_in("")? {
            if agent != collect::TRASH {
                folders.extend(self.folders_in(&agent)?);
            }
        }
        Ok(folders)
    }

    /// The folders in a folder, sorted.
    fn folders_in(&self, folder: &str) -> Result<Vec<String>> {
        let folders = self.store.list(folder)?.into_iter().filter_map(|it| match it {
            FolderName::Folder(name) if folder.is_empty() => Some(name),
            FolderName::Folder(name) => Some(format!("{folder}/{name}")),
            FolderName::File(_) => None,
        });
        Ok(folders.collect())
    }

    /// The numbers of the packs, and of the notes about removed packs, in the folder of a session.
    /// Both are empty if there is no such folder.
    pub(crate) fn numbers(&self, folder: &str) -> Result<Numbers> {
        numbers(&*self.store, folder)
    }

    /// The removed bytes in one pack that `reference` may refer to.
    fn find_in(&self, name: &str, number: u64, reference: &Ref) -> Result<Vec<ReferencedBytes>> {
        let pack = self.pack(name)?;
        let mut found = Vec::new();
        for entry in pack.matching(reference) {
            found.push(ReferencedBytes {
                key: pack.key()?,
                generation: number,
                hash: entry.hash,
                about: pack.description(entry).unwrap_or_default(),
                raw_len: Bytes(entry.raw_len),
            });
        }
        Ok(found)
    }

    /// Reads the generation in a pack, and checks that its number is `number`.
    fn read_generation(&self, name: &str, number: u64) -> Result<Generation> {
        let generation = self.pack(name)?.generation()?;
        self.check_number(&generation, name, number)?;
        Ok(Generation { number, ..generation })
    }

    /// Returns an error if a pack has another number than the generation in it: then the pack was
    /// copied over another one.
    fn check_number(&self, generation: &Generation, name: &str, number: u64) -> Result<()> {
        // Packs of older versions do not contain their number.
        if [0, number].contains(&generation.number) {
            return Ok(());
        }
        let found = generation.number;
        let what = format!("generation {found} is in the place of generation {number}");
        Err(Error::new(ErrorKind::Archive, what).at(&self.store.location(name)))
    }

    /// The error for a pack that is missing from the archive.
    fn lost(&self, name: &str, number: u64) -> Error {
        let what = format!("generation {number} of this session is not in the archive");
        Error::new(ErrorKind::Archive, what).at(&self.store.location(name))
    }

    /// The error for a pack that is in the folder of another session.
    fn foreign(&self, name: &str) -> Error {
        let what = "this part of the archive is of another session";
        Error::new(ErrorKind::Archive, what).at(&self.store.location(name))
    }
}

/// A source of removed bytes.
pub trait Blobs {
    /// The bytes with the hash `hash` that `generation` removed.
    ///
    /// # Errors
    ///
    /// `Archive` if the bytes are missing or damaged; the errors of opening and reading the pack.
    fn blob(&self, generation: u64, hash: &Hash) -> Result<Vec<u8>>;
}

/// Reads removed bytes of one session. Each pack stays open once it was read.
#[derive(Debug)]
pub struct SessionBlobs {
    archive: Archive,
    key: SessionKey,
    open: Mutex<BTreeMap<u64, Arc<Pack>>>,
}

impl Blobs for SessionBlobs {
    fn blob(&self, generation: u64, hash: &Hash) -> Result<Vec<u8>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let pack = match open.get(&generation) {
            Some(pack) => Arc::clone(pack),
            None => {
                let pack = Arc::new(self.archive.open_pack(&self.key, generation)?);
                open.insert(generation, Arc::clone(&pack));
                pack
            }
        };
        drop(open);
        pack.read(hash)
    }
}

/// Whether an error is due to what is stored as a pack, and not to the disk.
pub(crate) fn is_damage(err: &Error) -> bool {
    matches!(err.kind(), ErrorKind::Archive | ErrorKind::NewerFormat | ErrorKind::NotAFile)
}

/// The first missing number of each gap in the numbers of packs. The number of a pack that was
/// removed on purpose is not missing. Packs missing after the last one cannot be noticed.
fn missing(here: &[u64], removed: &[u64]) -> Vec<u64> {
    let mut missing = Vec::new();
    let mut last = 0;
    for &number in here {
        // The first number is enough to report a gap.
        missing.extend((last + 1..number).find(|it| !removed.contains(it)));
        last = number;
    }
    missing
}

/// The extension of a pack.
const PACK: &str = ".pack";
/// The extension of the note that replaces a pack which was removed on purpose.
const REMOVED: &str = ".removed";

/// The name of the pack of a generation, padded with zeros so that a listing is in order.
pub(crate) fn pack_name(folder: &str, number: u64) -> String {
    format!("{folder}/{number:06}{PACK}")
}

/// The name of the note that marks a pack as removed on purpose.
fn removed_name(folder: &str, number: u64) -> String {
    format!("{folder}/{number:06}{REMOVED}")
}

/// The number in the name of a pack; `None` if `name` is not the name of a pack.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    number_before(name, PACK)
}

fn number_before(name: &str, end: &str) -> Option<u64> {
    let digits = name.strip_suffix(end)?;
    let number: u64 = digits.parse().ok()?;
    // `1.pack`, for example, is not a pack: pack 1 is `000001.pack`. A very large number would
    // overflow the counter.
    let plain = number > 0 && number < u64::MAX / 2 && format!("{number:06}") == digits;
    plain.then_some(number)
}

/// The numbers in the names of files in a session's folder, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// The numbers that have a pack.
    pub here: Vec<u64>,
    /// The numbers with a note that the pack was removed on purpose. If the removal was
    /// interrupted, the pack may still be there.
    pub removed: Vec<u64>,
}

impl Numbers {
    /// The number for the next pack: greater than the numbers of all packs and of all notes, so
    /// that the number of a pack with such a note is not used again.
    pub fn next(&self) -> u64 {
        let here = self.here.last().copied().unwrap_or(0);
        let removed = self.removed.last().copied().unwrap_or(0);
        here.max(removed) + 1
    }
}

/// The numbers of the packs, and of the notes about removed packs, in the folder of a session.
pub(crate) fn numbers(store: &dyn PackStore, folder: &str) -> Result<Numbers> {
    // The order of the two listings matters: the note of a removed pack is written before the pack
    // is deleted, so if the pack is no longer in the first listing, its note is in the second.
    let here = numbers_that_end(store, folder, PACK)?;
    let removed = numbers_that_end(store, folder, REMOVED)?;
    Ok(Numbers { here, removed })
}

fn numbers_that_end(store: &dyn PackStore, folder: &str, end: &str) -> Result<Vec<u64>> {
    let names = store.list(folder)?.into_iter();
    let mut numbers: Vec<u64> =
        names.filter_map(|listed| number_before(listed.name(), end)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod stores;
#[cfg(test)]
mod tests;
