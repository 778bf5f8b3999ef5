//! Keeps packs in memory: a [`PackStore`] without files, for callers that keep packs themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use epitome_error::{Error, ErrorKind, Result};
use epitome_model::{Bytes, Source};

use super::pack::Pack;
use super::pack_store::{FolderName, NewPack, PackBytes, PackFacts, PackStore};
use super::{SessionKey, pack_name};
use crate::store::disk::GcMode;

type Names = BTreeMap<String, Arc<Vec<u8>>>;

/// Keeps packs in memory. Clones share the same packs.
///
/// ```
/// use epitome_store::archive::{Archive, MemoryStore, SessionKey};
///
/// let store = MemoryStore::default();
/// let archive = Archive::in_store(store.clone());
/// assert!(archive.generations(&SessionKey::new("pi", "s"))?.whole.is_empty());
/// assert!(store.into_packs().is_empty());
/// # Ok::<(), epitome_error::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    names: Arc<Mutex<Names>>,
}

impl MemoryStore {
    /// A store with one pack, and the key of its session. Anyone may have made the pack: nothing in
    /// it is trusted before its hashes are compared.
    ///
    /// # Errors
    ///
    /// `Archive` if the bytes are not a pack, or if the key or the generation in the pack is
    /// damaged; `NewerFormat` if a newer version of epitome wrote the pack.
    pub fn with_pack(bytes: Vec<u8>) -> Result<(MemoryStore, SessionKey)> {
        let bytes = Arc::new(bytes);
        let pack = Pack::open(Box::new(Opened(Arc::clone(&bytes))), "the pack".into())?;
        let key = pack.key()?;
        // Packs of older versions do not contain their number.
        let number = pack.generation()?.number.max(1);
        let store = MemoryStore::default();
        store.names().insert(pack_name(&key.folder(), number), bytes);
        Ok((store, key))
    }

    /// Takes all packs and notes out of the store, so that its clones are empty, too. Returns their
    /// names and bytes, sorted by name.
    pub fn into_packs(self) -> Vec<(String, Vec<u8>)> {
        let names = std::mem::take(&mut *self.names());
        names.into_iter().map(|(name, bytes)| (name, Arc::unwrap_or_clone(bytes))).collect()
    }

    /// Flips the lowest bit of the byte at the offset `at` of a pack.
    #[cfg(test)]
    pub(crate) fn flip(&self, name: &str, at: usize) {
        let mut names = self.names();
        let pack = names.get_mut(name).expect("a pack with this name");
        Arc::make_mut(pack)[at] ^= 1;
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, name: &str) -> Result<Arc<Vec<u8>>> {
        self.names().get(name).cloned().ok_or_else(|| missing(name))
    }
}

impl PackStore for MemoryStore {
    fn list(&self, folder: &str) -> Result<Vec<FolderName>> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let names = self.names();
        let inside = names.keys().filter_map(|name| name.strip_prefix(&prefix));
        let listed = inside.map(|name| match name.split_once('/') {
            Some((folder, _)) => FolderName::Folder(folder.to_owned()),
            None => FolderName::File(name.to_owned()),
        });
        Ok(listed.collect::<BTreeSet<_>>().into_iter().collect())
    }

    fn begin(&self, _folder: &str) -> Result<Box<dyn NewPack>> {
        Ok(Box::new(NewBytes { bytes: Vec::new(), store: self.clone() }))
    }

    fn open(&self, name: &str) -> Result<Box<dyn PackBytes>> {
        Ok(Box::new(Opened(self.get(name)?)))
    }

    fn facts(&self, name: &str) -> Result<PackFacts> {
        Ok(PackFacts { len: Bytes(self.get(name)?.len() as u64), written: None })
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.names().remove(name).map(drop).ok_or_else(|| missing(name))
    }

    fn rename(&self, name: &str, to: &str) -> Result<bool> {
        let mut names = self.names();
        if names.contains_key(to) {
            return Ok(false);
        }
        let bytes = names.remove(name).ok_or_else(|| missing(name))?;
        names.insert(to.to_owned(), bytes);
        Ok(true)
    }

    fn write_note(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.names().insert(name.to_owned(), Arc::new(bytes.to_vec()));
        Ok(())
    }

    fn make_folder(&self, _folder: &str) -> Result<()> {
        Ok(())
    }

    fn flush_folder(&self, _folder: &str) -> Result<()> {
        Ok(())
    }

    fn remove_if_empty(&self, _folder: &str) {}

    fn sweep(&self, _folder: &str, _mode: GcMode) -> Vec<Bytes> {
        Vec::new()
    }

    fn location(&self, name: &str) -> PathBuf {
        name.into()
    }
}

fn missing(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, "there is no such pack").at(name.as_ref())
}

#[derive(Debug)]
struct Opened(Arc<Vec<u8>>);

impl Source for Opened {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, range: std::ops::Range<u64>) -> std::borrow::Cow<'_, [u8]> {
        Source::read(&*self.0, range)
    }
}

impl PackBytes for Opened {
    fn failure(&self) -> Option<Error> {
        None
    }
}

struct NewBytes {
    bytes: Vec<u8>,
    store: MemoryStore,
}

impl Write for NewBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl NewPack for NewBytes {
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.bytes.truncate(usize::try_from(len).map_err(io::Error::other)?);
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn PackBytes>> {
        Ok(Box::new(Opened(Arc::new(self.bytes.clone()))))
    }

    fn location(&self) -> PathBuf {
        "a new pack".into()
    }

    fn put(mut self: Box<Self>, name: &str) -> Result<Option<Box<dyn NewPack>>> {
        let mut names = self.store.names();
        if names.contains_key(name) {
            drop(names);
            return Ok(Some(self));
        }
        let bytes = std::mem::take(&mut self.bytes);
        names.insert(name.to_owned(), Arc::new(bytes));
        Ok(None)
    }

    fn replace(self: Box<Self>, name: &str) -> Result<()> {
        let NewBytes { bytes, store } = *self;
        store.names().insert(name.to_owned(), Arc::new(bytes));
        Ok(())
    }
}
