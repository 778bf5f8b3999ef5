//! A vault that can be changed without a lasting change on disk. It shows exactly what a removal
//! would leave.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use epitome_error::{Error, ErrorKind, Result};
use epitome_model::Bytes;

use super::Vault;
use crate::archive::GcMode;
use crate::archive::pack_store::{FolderName, NewPack, PackBytes, PackFacts, PackStore};

impl Vault {
    /// A vault with the same versions. New packs of it are temporary files, which are deleted with
    /// the value, and packs that it deletes stay on disk.
    ///
    /// # Errors
    ///
    /// `Archive` if a folder cannot be listed.
    pub fn trial(&self) -> Result<Vault> {
        let store = TrialStore { store: Arc::clone(&self.store), changes: Arc::default() };
        Vault::in_store(Arc::new(store), self.machine.clone(), None)
    }
}

/// The packs of another store, and changes to them that are not written there.
#[derive(Debug)]
struct TrialStore {
    store: Arc<dyn PackStore>,
    changes: Arc<Mutex<Changes>>,
}

#[derive(Default)]
struct Changes {
    /// The new packs by name.
    new: BTreeMap<String, Box<dyn NewPack>>,
    deleted: BTreeSet<String>,
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Changes").field("deleted", &self.deleted).finish_non_exhaustive()
    }
}

impl TrialStore {
    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn missing(&self, name: &str) -> Error {
        Error::new(ErrorKind::NotFound, "there is no such pack").at(&self.store.location(name))
    }
}

impl PackStore for TrialStore {
    fn list(&self, folder: &str) -> Result<Vec<FolderName>> {
        let mut names: BTreeSet<FolderName> = self.store.list(folder)?.into_iter().collect();
        let changes = self.changes();
        names.retain(|name| !changes.deleted.contains(&format!("{folder}/{}", name.name())));
        let new =
            changes.new.keys().filter_map(|name| name.strip_prefix(folder)?.strip_prefix('/'));
        names.extend(new.map(|name| FolderName::File(name.to_owned())));
        Ok(names.into_iter().collect())
    }

    fn begin(&self, folder: &str) -> Result<Box<dyn NewPack>> {
        let pack = self.store.begin(folder)?;
        Ok(Box::new(TrialPack { pack, changes: Arc::clone(&self.changes) }))
    }

    fn open(&self, name: &str) -> Result<Box<dyn PackBytes>> {
        let changes = self.changes();
        match changes.new.get(name) {
            Some(pack) => pack.open(),
            None if changes.deleted.contains(name) => Err(self.missing(name)),
            None => self.store.open(name),
        }
    }

    fn facts(&self, name: &str) -> Result<PackFacts> {
        Ok(PackFacts { len: Bytes(self.open(name)?.len()), written: None })
    }

    fn delete(&self, name: &str) -> Result<()> {
        let mut changes = self.changes();
        if changes.new.remove(name).is_none() && !changes.deleted.insert(name.to_owned()) {
            return Err(self.missing(name));
        }
        Ok(())
    }

    fn rename(&self, name: &str, _: &str) -> Result<bool> {
        let what = "a pack of a vault is never renamed";
        Err(Error::new(ErrorKind::Unsupported, what).at(&self.store.location(name)))
    }

    fn write_note(&self, _: &str, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn make_folder(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn flush_folder(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn remove_if_empty(&self, _: &str) {}

    fn sweep(&self, _: &str, _: GcMode) -> Vec<Bytes> {
        Vec::new()
    }

    fn location(&self, name: &str) -> PathBuf {
        self.store.location(name)
    }
}

/// A temporary file that gets a name only in the trial.
struct TrialPack {
    pack: Box<dyn NewPack>,
    changes: Arc<Mutex<Changes>>,
}

impl Write for TrialPack {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pack.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pack.flush()
    }
}

impl NewPack for TrialPack {
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.pack.truncate(len)
    }

    fn open(&self) -> Result<Box<dyn PackBytes>> {
        self.pack.open()
    }

    fn location(&self) -> PathBuf {
        self.pack.location()
    }

    fn put(self: Box<Self>, name: &str) -> Result<Option<Box<dyn NewPack>>> {
        let changes = Arc::clone(&self.changes);
        let mut changes = changes.lock().unwrap_or_else(PoisonError::into_inner);
        if changes.new.contains_key(name) {
            return Ok(Some(self));
        }
        changes.new.insert(name.to_owned(), self.pack);
        Ok(None)
    }
}
