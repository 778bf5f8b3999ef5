//! The archive: every byte that left a session, by its hash, and how to put it back.
//!
//! # On disk
//!
//! ```text
//! <home>/archive/<agent>/<session>/000001.pack     one compaction of one session: a generation
//!                                  000002.pack     the next one
//!                                  000003.removed  says that a pack was removed on purpose
//!                                  .epitome-….tmp  being written, or left by a killed process
//! <home>/archive/.trash/<agent>/<session>/000003.pack.<seconds>   removed, since that time
//! ```
//!
//! A pack never changes. It is written under a name of its own, flushed, and then given the next
//! free number without ever taking the place of another, so that a process killed at any moment
//! leaves a whole pack or none, and two processes at once leave two. Folders are readable by their
//! owner only (0700), files too (0600).
//!
//! # A pack (format 1)
//!
//! Numbers are little-endian. Hashes are blake3; a *check* is the beginning of one.
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
//! Tags are `89 45 50` and `k` (whose pack it is, the first piece, nothing but its about), `b`
//! (removed bytes) or `m` (the generation as JSON, the last piece). Contents repeat what records
//! say, without the abouts: either can be lost and the payloads still be read. A payload that is
//! not what its hash says is never returned.
//!
//! Unknown members of the JSON are ignored; a change that an older epitome would misread gets a
//! new format number, which older ones refuse.

mod back;
pub(crate) mod care;
mod collect;
mod generation;
mod hash;
mod key;
pub(crate) mod pack;
mod run;
mod size;
pub(crate) mod writer;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use epitome_model::{Bytes, Ref};

pub use back::WayBack;
pub use back::{Line, lines};
pub use care::VerifyReport;
pub use collect::{Collected, GRACE, GcReport, Grace, Need, Reason};
pub use generation::{About, Draft, EditedRecord, Generation, Made, Part, UndoSplice};
pub use hash::{Digest, Hash, Hex, NoHash, RecordHash};
pub use key::SessionKey;
pub use key::safe_name;
pub use run::Run;
pub use size::PackSize;
pub use writer::PackWriter;

pub use crate::store::disk::GcMode;
use epitome_error::{Error, ErrorKind, Result};
use pack::Pack;

/// All bytes that ever left a session. Nothing is touched on disk before the first is written.
#[derive(Clone, Debug)]
pub struct Archive {
    root: PathBuf,
}

/// The generations of a session that can be read, and what became of the others.
#[derive(Clone, Debug, Default)]
pub struct Generations {
    /// Those that are whole, by number.
    pub whole: Vec<Generation>,
    /// One error a pack that cannot be read, or that is not there although a later one is.
    pub damaged: Vec<Error>,
    /// The numbers of those that were removed because they are not needed.
    pub removed: Vec<u64>,
    /// What those left that were removed: no original.
    pub removed_left: Vec<(u64, Digest)>,
}

/// Removed bytes that a reference may mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The session that they were removed from.
    pub key: SessionKey,
    /// The number of the generation that removed them.
    pub generation: u64,
    /// Their name.
    pub hash: Hash,
    /// What they were. Empty when that part of the pack is damaged.
    pub about: About,
    /// How many they are.
    pub raw_len: Bytes,
}

impl Archive {
    /// The archive in `home`, whether it is there already or not.
    pub fn new(home: &Path) -> Archive {
        Archive { root: home.join("archive") }
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Begins a pack for a new generation of a session.
    ///
    /// # Errors
    ///
    /// `Disk`, `NoPermission`.
    pub fn begin(&self, key: &SessionKey) -> Result<PackWriter> {
        PackWriter::begin(self.folder(key), key)
    }

    /// The generations of a session, by number; none when it was never compacted.
    ///
    /// # Errors
    ///
    /// `Archive` when its folder cannot be listed. A pack that cannot be read
    /// is no error: it is reported beside the others.
    pub fn generations(&self, key: &SessionKey) -> Result<Generations> {
        let folder = self.folder(key);
        let removed = removed_numbers(&folder)?;
        let left = |number: &u64| Some((*number, collect::left_by_removed(&folder, *number)?));
        let removed_left = removed.iter().filter_map(left).collect();
        let mut found = Generations { removed, removed_left, ..Generations::default() };
        for number in missing(&folder)? {
            found.damaged.push(lost(&pack_path(&folder, number), number));
        }
        for number in numbers(&folder)? {
            let path = pack_path(&folder, number);
            match read_generation(&path, number) {
                Ok(generation) if generation.key() == *key => found.whole.push(generation),
                Ok(_) => found.damaged.push(foreign(&path)),
                Err(err) if err.kind() == ErrorKind::NotFound => {}
                Err(err) => found.damaged.push(err),
            }
        }
        Ok(found)
    }

    /// Removed bytes, proved by their hash.
    ///
    /// # Errors
    ///
    /// `Archive` when the pack or the bytes are missing or damaged, `NewerFormat`.
    pub fn read(&self, key: &SessionKey, number: u64, hash: &Hash) -> Result<Vec<u8>> {
        self.open_pack(key, number)?.read(hash)
    }

    /// A reader of all removed bytes of a session, which opens each pack once.
    pub fn blobs(&self, key: &SessionKey) -> SessionBlobs {
        SessionBlobs { archive: self.clone(), key: key.clone(), open: Mutex::default() }
    }

    /// All removed bytes that `reference` may mean, by session and generation. Reads the tables of
    /// contents only.
    ///
    /// # Errors
    ///
    /// `Archive` when nothing was found and some packs could not be read; what listing says.
    pub fn find(&self, reference: &Ref) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        let mut unread = Vec::new();
        for folder in self.session_folders()? {
            for number in numbers(&folder)? {
                match find_in(&pack_path(&folder, number), number, reference) {
                    Ok(some) => found.extend(some),
                    Err(err) if err.kind() == ErrorKind::NotFound => {}
                    Err(err) => unread.push(err),
                }
            }
        }
        if let (true, Some(err)) = (found.is_empty(), unread.pop()) {
            let what = format!("{reference} was not found, and a part of the archive is damaged");
            return Err(Error::new(ErrorKind::Archive, what).because(err));
        }
        Ok(found)
    }

    /// All sessions that have generations. Those of which nothing can be read are left out:
    /// [`verify`](Archive::verify) names them.
    ///
    /// # Errors
    ///
    /// `Archive` when a folder cannot be listed.
    pub fn sessions(&self) -> Result<Vec<SessionKey>> {
        let mut keys = Vec::new();
        for folder in self.session_folders()? {
            let key = numbers(&folder)?
                .into_iter()
                .find_map(|number| Pack::open(&pack_path(&folder, number)).ok()?.key().ok());
            keys.extend(key);
        }
        keys.sort();
        keys.dedup();
        Ok(keys)
    }

    pub(crate) fn folder(&self, key: &SessionKey) -> PathBuf {
        self.root.join(key.folder())
    }

    fn open_pack(&self, key: &SessionKey, number: u64) -> Result<Pack> {
        let path = pack_path(&self.folder(key), number);
        let pack = Pack::open(&path).map_err(|err| {
            if err.kind() != ErrorKind::NotFound {
                return err;
            }
            lost(&path, number).because(err)
        })?;
        if pack.key()? != *key {
            return Err(foreign(&path));
        }
        Ok(pack)
    }

    /// The folders of all sessions, sorted.
    fn session_folders(&self) -> Result<Vec<PathBuf>> {
        let mut folders = Vec::new();
        for agent in folders_in(&self.root)? {
            if agent.ends_with(collect::TRASH) {
                continue;
            }
            folders.extend(folders_in(&agent)?);
        }
        Ok(folders)
    }
}

/// Where removed bytes are read from.
pub trait Blobs {
    /// The bytes named `hash` that `generation` removed.
    ///
    /// # Errors
    ///
    /// `Archive` when they are missing or damaged.
    fn blob(&self, generation: u64, hash: &Hash) -> Result<Vec<u8>>;
}

/// Reads removed bytes of one session, and keeps its packs open.
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

fn find_in(path: &Path, number: u64, reference: &Ref) -> Result<Vec<Found>> {
    let pack = Pack::open(path)?;
    let mut found = Vec::new();
    for entry in pack.matching(reference) {
        found.push(Found {
            key: pack.key()?,
            generation: number,
            hash: entry.hash,
            about: pack.about(entry).unwrap_or_default(),
            raw_len: Bytes(entry.raw_len),
        });
    }
    Ok(found)
}

/// Reads the generation of a pack, and sees that it is the one of that number.
fn read_generation(path: &Path, number: u64) -> Result<Generation> {
    let generation = Pack::open(path)?.generation()?;
    check_number(&generation, path, number)?;
    Ok(Generation { number, ..generation })
}

/// Refuses a pack that was copied over another one.
fn check_number(generation: &Generation, path: &Path, number: u64) -> Result<()> {
    // Packs of older versions do not say which they are.
    if [0, number].contains(&generation.number) {
        return Ok(());
    }
    let what = format!("generation {} is in the place of generation {number}", generation.number);
    Err(Error::new(ErrorKind::Archive, what).at(path))
}

/// The numbers of packs that are not there although a later one is, and were not removed by
/// [`Archive::gc`].
fn missing(folder: &Path) -> Result<Vec<u64>> {
    let (here, removed) = (numbers(folder)?, removed_numbers(folder)?);
    let mut missing = Vec::new();
    let mut last = 0;
    for number in here {
        // One error a gap is enough: what is between two packs was removed together.
        missing.extend((last + 1..number).find(|it| !removed.contains(it)));
        last = number;
    }
    Ok(missing)
}

/// Numbers count on without gaps: a pack that is not there was taken away.
fn lost(path: &Path, number: u64) -> Error {
    let what = format!("generation {number} of this session is not in the archive");
    Error::new(ErrorKind::Archive, what).at(path)
}

fn foreign(path: &Path) -> Error {
    Error::new(ErrorKind::Archive, "this part of the archive is of another session").at(path)
}

/// How the name of a pack ends.
const PACK: &str = ".pack";
/// How the name ends that takes its place once the pack was removed as not needed.
const REMOVED: &str = ".removed";

/// The name of the pack of a generation. Padded, so that a listing is in order.
pub(crate) fn pack_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:06}{PACK}"))
}

/// The name of the empty file that says that a pack was removed on purpose.
fn removed_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:06}{REMOVED}"))
}

/// The number that the name of a pack says.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    number_before(name, PACK)
}

fn number_before(name: &str, end: &str) -> Option<u64> {
    let digits = name.strip_suffix(end)?;
    let number: u64 = digits.parse().ok()?;
    // Another spelling of the number would be another file, and one without bounds no counter.
    let plain = number > 0 && number < u64::MAX / 2 && format!("{number:06}") == digits;
    plain.then_some(number)
}

/// The numbers of the packs in a folder, sorted; none when there is no such folder.
pub(crate) fn numbers(folder: &Path) -> Result<Vec<u64>> {
    numbers_that_end(folder, PACK)
}

/// The numbers of the packs that were removed as not needed, sorted.
pub(crate) fn removed_numbers(folder: &Path) -> Result<Vec<u64>> {
    numbers_that_end(folder, REMOVED)
}

fn numbers_that_end(folder: &Path, end: &str) -> Result<Vec<u64>> {
    let names = names_in(folder)?;
    let number = |name: &std::ffi::OsString| number_before(name.to_str()?, end);
    let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn folders_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let names = names_in(folder)?;
    Ok(names.iter().map(|name| folder.join(name)).filter(|path| path.is_dir()).collect())
}

/// What stands in a folder, sorted; nothing when there is no such folder.
fn names_in(folder: &Path) -> Result<Vec<std::ffi::OsString>> {
    let listed = fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<io::Result<Vec<_>>>()
    });
    match listed {
        Ok(mut names) => {
            names.sort();
            Ok(names)
        }
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(err) => {
            let unread = Error::new(ErrorKind::Archive, "cannot read the archive");
            Err(unread.at(folder).because(err))
        }
    }
}

#[cfg(test)]
mod tests;
