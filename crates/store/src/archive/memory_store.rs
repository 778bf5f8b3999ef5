//! Keeps packs in memory: a second [`PackStore`], which has no files.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use epitome_error::{Error, ErrorKind, Result};
use epitome_model::{Bytes, Source};

use super::pack_store::{FolderName, NewPack, PackBytes, PackFacts, PackStore};
use crate::store::disk::GcMode;

type Names = BTreeMap<String, Arc<Vec<u8>>>;

/// Keeps packs in memory. Clones share the same packs.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    names: Arc<Mutex<Names>>,
}

impl MemoryStore {
    /// The names and bytes of all packs.
    pub fn all(&self) -> Vec<(String, Vec<u8>)> {
        self.names().iter().map(|(name, bytes)| (name.clone(), bytes.to_vec())).collect()
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

    fn put(self: Box<Self>, name: &str) -> Result<Option<Box<dyn NewPack>>> {
        let mut names = self.store.names();
        if names.contains_key(name) {
            drop(names);
            return Ok(Some(self));
        }
        names.insert(name.to_owned(), Arc::new(self.bytes.clone()));
        Ok(None)
    }
}
