//! The vault: the versions of sessions that were seen, and how to get them back.
//!
//! The [archive](crate::archive) has what epitome removed from sessions. The vault has what agents
//! wrote: a [`Vault`] keeps *files* ([`FileKey`]: a session, a sub-agent's file, rows of a
//! database) in *versions* ([`Version`]: the content that the file had at a scan). A version takes
//! space only for what is new in it: chunks of content that the vault does not have yet. For the
//! rest, it refers to chunks and versions that the vault has.
//!
//! # On disk
//!
//! ```text
//! <home>/vault/<machine>/000001.pack   what one scan found: chunks, and the versions made of them
//!                        000002.pack   the next one
//! <home>/vault/machine                 the name of this machine: 16 hexadecimal digits
//! <home>/vault/lock                    locked while a pack is written; empty
//! <home>/vault/keeping                 locked, shared, by processes that wait for changes; empty
//! <home>/vault/restoring/<hash>        the files that a restore replaces, as long as it runs
//! ```
//!
//! Packs have the layout of the [archive](crate::archive), with pieces of their own: `c` is a chunk
//! of content, `v` the versions as JSON (the last piece). A pack never changes.
//! [`merge`](Vault::merge) writes the content of many packs into a new one and then deletes them,
//! and so does [`remove`](Vault::remove) with what is not removed: a process that is killed in
//! between leaves both the old packs and the new one, until this is repeated. Only the machine that
//! wrote a pack merges it. A version uses only chunks in the packs of its machine.
//!
//! # What a version is
//!
//! [`Batch::put_file`] records a version only if its bytes were in the file at one moment, and
//! hashes the whole file each time. [`Vault::write_version`] proves the hash of what it returns.

mod batch;
mod chunker;
mod index;
mod merge;
mod read;
mod removal;
mod search;
mod stamp;
mod transfer;
mod trial;
mod usage;
mod verify;
mod version;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use batch::{Batch, Committed, Put};
pub use merge::Merged;
pub use removal::{Removed, VersionNumbers};
pub use stamp::FileStamp;
pub use transfer::{ReceivedVersions, StagedVersions, VaultPack};
pub use usage::VaultUsage;
pub use verify::VaultReport;
pub use version::{Cause, ContentChange, FileKey, Version};

use crate::archive::pack_store::{FolderName, PackStore};
use crate::archive::{FolderStore, GcMode};
use crate::regular;
use crate::store::{disk, lock_for_writing, write_over};
use epitome_error::{Error, ErrorKind, Result};
use epitome_model::Bytes;
use index::Index;

/// The number of hexadecimal digits in the name of a machine.
const MACHINE_DIGITS: usize = 16;

/// All kept versions, in the packs of a [`PackStore`].
///
/// The packs on disk are read when the value is made. Later changes by other processes are seen
/// only after [`refresh`](Vault::refresh), which methods that write call, too.
#[derive(Debug)]
pub struct Vault {
    store: Arc<dyn PackStore>,
    /// The folder of this machine's packs.
    machine: String,
    /// The file that is locked while packs are written; `None` if the store needs no lock.
    lock: Option<PathBuf>,
    index: Index,
    /// The files whose last version is known to be intact: this value has read that version back,
    /// or has written it after it read back the version before.
    proved: BTreeSet<FileKey>,
}

impl Vault {
    /// The folder of the vault in `home`.
    pub fn folder_in(home: &Path) -> PathBuf {
        home.join("vault")
    }

    /// Opens the vault in the folder `home` to read it. Nothing is written; a vault that does not
    /// exist has no files.
    ///
    /// # Errors
    ///
    /// `Archive` if a folder cannot be listed or the name of this machine is damaged; the errors of
    /// reading that name. Packs that cannot be read are not an error: [`damaged`](Vault::damaged)
    /// names them.
    pub fn open(home: &Path) -> Result<Vault> {
        let folder = Vault::folder_in(home);
        let machine = read_machine(&folder)?.unwrap_or_default();
        let store = FolderStore::new(folder.clone());
        Vault::in_store(Arc::new(store), machine, Some(folder.join("lock")))
    }

    /// Opens the vault in the folder `home` to write to it. The folder and the name of this machine
    /// are made if they do not exist. `seed` is what the name is made from: something that differs
    /// between machines, and between two homes on one machine.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the folder cannot be made; the errors of [`open`](Vault::open).
    pub fn create(home: &Path, seed: &str) -> Result<Vault> {
        let folder = Vault::folder_in(home);
        if read_machine(&folder)?.is_none() {
            disk::private_folder(&folder)?;
            let _lock = lock_for_writing(&folder.join("lock"))?;
            // Another process may have named the machine before the lock was taken.
            if read_machine(&folder)?.is_none() {
                let name = blake3::hash(seed.as_bytes()).to_hex();
                let name = &name.as_str()[..MACHINE_DIGITS];
                write_over(&folder.join("machine"), |out| {
                    out.write_all(name.as_bytes()).map_err(Error::from)
                })?;
                disk::flush_folder(&folder)
                    .map_err(|err| Error::writing(err, "the vault", &folder))?;
            }
        }
        let vault = Vault::open(home)?;
        vault.sweep(GcMode::Remove);
        Ok(vault)
    }

    /// Finds the temporary files that killed processes left, and with [`GcMode::Remove`] removes
    /// them. Returns their lengths. The files of processes that run are left alone.
    pub fn sweep(&self, mode: GcMode) -> Vec<Bytes> {
        let listed = self.store.list("").unwrap_or_default().into_iter();
        let machines = listed.filter_map(|name| match name {
            FolderName::Folder(name) if is_machine(&name) => Some(name),
            FolderName::Folder(_) | FolderName::File(_) => None,
        });
        let folders = machines.chain([String::new()]);
        folders.flat_map(|folder| self.store.sweep(&folder, mode)).collect()
    }

    /// Opens the vault whose packs are in `store`. `machine` is the folder of this machine's packs,
    /// and `lock` the file that is locked while packs are written, if one is needed.
    ///
    /// # Errors
    ///
    /// `Archive` if a folder cannot be listed.
    pub fn in_store(
        store: Arc<dyn PackStore>,
        machine: String,
        lock: Option<PathBuf>,
    ) -> Result<Vault> {
        let mut vault =
            Vault { store, machine, lock, index: Index::default(), proved: BTreeSet::new() };
        vault.refresh()?;
        Ok(vault)
    }

    /// Reads the packs that were written since the vault was last read, and drops those that were
    /// deleted. Returns whether there were such packs.
    ///
    /// # Errors
    ///
    /// `Archive` if a folder cannot be listed.
    pub fn refresh(&mut self) -> Result<bool> {
        self.index.refresh(&*self.store)
    }

    /// The name of this machine; empty if it has none yet: [`create`](Vault::create) gives it one.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// All kept files of all machines, in order of machine, agent, session, part and path.
    pub fn files(&self) -> impl Iterator<Item = &FileKey> {
        self.index.files()
    }

    /// The versions of a file, in order of their numbers; empty if the vault has none.
    pub fn versions(&self, file: &FileKey) -> impl DoubleEndedIterator<Item = &Version> {
        self.index.versions(file)
    }

    /// One version of a file.
    ///
    /// # Errors
    ///
    /// `NotArchived` if there is no version of this number.
    pub fn version(&self, file: &FileKey, number: u64) -> Result<&Version> {
        self.index.version(file, number).ok_or_else(|| {
            let what = format!("the vault has no version {number} of this file");
            Error::new(ErrorKind::NotArchived, what).at(&file.path)
        })
    }

    /// The numbers of the packs of a machine.
    pub fn pack_numbers(&self, machine: &str) -> Vec<u64> {
        self.index.packs_of(machine).map(|(number, _)| number).collect()
    }

    /// Whether an existing pack of a machine replaces the pack with this number. What the replaced
    /// pack had is in other packs, or was removed on purpose.
    pub fn is_replaced(&self, machine: &str, number: u64) -> bool {
        self.index.is_replaced(machine, number)
    }

    /// The errors of packs that cannot be opened, or whose list of versions cannot be read. Damaged
    /// chunks are found only by [`verify`](Vault::verify) and when they are read.
    pub fn damaged(&self) -> impl Iterator<Item = &Error> {
        self.index.damaged()
    }

    /// Makes sure that all packs can be opened and their lists of versions read: versions can only
    /// be removed then.
    ///
    /// # Errors
    ///
    /// `Archive`, with the first pack that cannot be read.
    pub fn check_readable(&self) -> Result<()> {
        let Some(damage) = self.damaged().next() else { return Ok(()) };
        let hint = match damage.kind() {
            ErrorKind::NoPermission => "make that file readable, and repeat this",
            _ => {
                "put that file back from a backup, or delete it if what is in it may be lost, and \
                 repeat this"
            }
        };
        let what = "a part of the vault cannot be read, and keeps more from being removed";
        Err(Error::new(ErrorKind::Archive, what).because(damage.clone()).with_hint(hint))
    }

    /// The number of packs of all machines, and their total length on disk in bytes.
    pub fn size(&self) -> (u64, u64) {
        self.index.size()
    }

    /// Waits until no other process writes packs of this machine, and takes the lock. The lock ends
    /// when the result is dropped. `None` if the store needs no lock.
    fn lock(&self) -> Result<Option<File>> {
        self.lock.as_deref().map(lock_for_writing).transpose()
    }
}

/// The name of this machine, if it has one.
fn read_machine(folder: &Path) -> Result<Option<String>> {
    let path = folder.join("machine");
    match regular::read_to_string(&path) {
        Ok(name) if is_machine(name.trim()) => Ok(Some(name.trim().to_owned())),
        Ok(_) => {
            let what = "the name of this machine is damaged";
            let hint = "write the name of the folder next to it that this machine's packs are in";
            Err(Error::new(ErrorKind::Archive, what).at(&path).with_hint(hint))
        }
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(err) => Err(Error::reading(err, "the vault", &path)),
    }
}

/// Whether a name can be that of a machine: 16 lower-case hexadecimal digits.
fn is_machine(name: &str) -> bool {
    name.len() == MACHINE_DIGITS && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests;
