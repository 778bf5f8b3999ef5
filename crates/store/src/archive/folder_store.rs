//! Packs as files in folders.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use epitome_error::{Error, ErrorKind, Result};
use epitome_model::Bytes;
use jiff::Timestamp;

use super::pack_store::{FolderName, NewPack, PackBytes, PackFacts, PackStore};
use crate::source::FileSource;
use crate::store::disk::{self, GcMode, NotPlaced, Temp};
use crate::store::write_over;

/// Keeps packs as files below a folder, which on Unix is created so that only its owner can read
/// it. No file or folder is created before the first write.
///
/// A pack is written to a temporary file, flushed, and then gets its name, so that a process that
/// is killed at any moment leaves a whole pack or none, and two processes that write at the same
/// time leave two packs.
#[derive(Clone, Debug)]
pub struct FolderStore {
    root: PathBuf,
}

impl FolderStore {
    /// The store below `root`, which need not exist.
    pub fn new(root: PathBuf) -> FolderStore {
        FolderStore { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        let mut path = self.root.clone();
        path.extend(name.split('/').filter(|part| !part.is_empty()));
        path
    }
}

impl PackStore for FolderStore {
    fn list(&self, folder: &str) -> Result<Vec<FolderName>> {
        let path = self.path(folder);
        let listed = fs::read_dir(&path).and_then(|entries| {
            entries.map(|entry| entry.map(|it| listed(&it))).collect::<io::Result<Vec<_>>>()
        });
        match listed {
            Ok(names) => {
                let mut names: Vec<FolderName> = names.into_iter().flatten().collect();
                names.sort();
                Ok(names)
            }
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(err) => {
                let unread = Error::new(ErrorKind::Archive, "cannot read the archive");
                Err(unread.at(&path).because(err))
            }
        }
    }

    fn begin(&self, folder: &str) -> Result<Box<dyn NewPack>> {
        let path = self.path(folder);
        let mut left = 10;
        loop {
            disk::private_folder(&path)?;
            match Temp::create(&path) {
                Ok(temp) => return Ok(Box::new(NewFile { temp, store: self.clone() })),
                // A garbage collection may have removed the empty folder.
                Err(err) if err.kind() == io::ErrorKind::NotFound && left > 0 => left -= 1,
                Err(err) => return Err(Error::writing(err, "the archive", &path)),
            }
        }
    }

    fn open(&self, name: &str) -> Result<Box<dyn PackBytes>> {
        Ok(Box::new(FileSource::open(&self.path(name))?))
    }

    fn facts(&self, name: &str) -> Result<PackFacts> {
        let path = self.path(name);
        let meta = path.metadata().map_err(|err| Error::reading(err, "the archive", &path))?;
        let written = meta.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
        Ok(PackFacts { len: Bytes(meta.len()), written })
    }

    fn delete(&self, name: &str) -> Result<()> {
        let path = self.path(name);
        fs::remove_file(&path).map_err(|err| failed(err, &path))
    }

    fn rename(&self, name: &str, to: &str) -> Result<bool> {
        let path = self.path(name);
        let to = self.path(to);
        let done = match fs::hard_link(&path, &to) {
            Ok(()) => fs::remove_file(&path),
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            // The disk may not support hard links. `fs::rename` would replace an existing file, so
            // it is used only if there is none.
            Err(_) if fs::symlink_metadata(&to).is_err() => fs::rename(&path, &to),
            Err(_) => return Ok(false),
        };
        done.map(|()| true).map_err(|err| failed(err, &path))
    }

    fn write_note(&self, name: &str, bytes: &[u8]) -> Result<()> {
        write_over(&self.path(name), |to| {
            to.write_all(bytes).map_err(|err| failed(err, &self.path(name)))
        })
    }

    fn make_folder(&self, folder: &str) -> Result<()> {
        disk::private_folder(&self.path(folder))
    }

    fn flush_folder(&self, folder: &str) -> Result<()> {
        let path = self.path(folder);
        disk::flush_folder(&path).map_err(|err| failed(err, &path))
    }

    fn remove_if_empty(&self, folder: &str) {
        let path = self.path(folder);
        let removed: io::Result<()> = fs::remove_dir(&path);
        if let (Ok(()), Some(parent)) = (removed, path.parent()) {
            fs::remove_dir(parent).ok();
        }
    }

    fn sweep(&self, folder: &str, mode: GcMode) -> Vec<Bytes> {
        disk::sweep(&self.path(folder), mode).into_iter().map(|it| Bytes(it.len)).collect()
    }

    fn location(&self, name: &str) -> PathBuf {
        self.path(name)
    }
}

impl PackBytes for FileSource {
    fn failure(&self) -> Option<Error> {
        FileSource::failure(self)
    }
}

/// A temporary file that is going to be a pack.
struct NewFile {
    temp: Temp,
    store: FolderStore,
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temp.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temp.flush()
    }
}

impl NewPack for NewFile {
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.temp.truncate(len)
    }

    fn open(&self) -> Result<Box<dyn PackBytes>> {
        Ok(Box::new(FileSource::open(self.temp.path())?))
    }

    fn location(&self) -> PathBuf {
        self.temp.path().to_owned()
    }

    fn put(self: Box<Self>, name: &str) -> Result<Option<Box<dyn NewPack>>> {
        let NewFile { temp, store } = *self;
        let path = store.path(name);
        let folder = path.parent().unwrap_or(&store.root);
        temp.flush_to_disk().map_err(|err| failed(err, folder))?;
        match temp.place_new(&path) {
            Ok(()) => match disk::flush_folder(folder) {
                Ok(()) => Ok(None),
                Err(err) => {
                    // If the name might not survive a power cut, the pack must not count as
                    // written.
                    fs::remove_file(&path).ok();
                    Err(failed(err, folder))
                }
            },
            Err(NotPlaced::Taken(temp)) => Ok(Some(Box::new(NewFile { temp, store }))),
            Err(NotPlaced::Failed(err)) => Err(failed(err, folder)),
        }
    }

    fn replace(self: Box<Self>, name: &str) -> Result<()> {
        let NewFile { temp, store } = *self;
        let path = store.path(name);
        let folder = path.parent().unwrap_or(&store.root);
        temp.flush_to_disk().map_err(|err| failed(err, folder))?;
        temp.place_over(&path).map_err(|err| failed(err, &path))?;
        disk::flush_folder(folder).map_err(|err| failed(err, folder))
    }
}

/// An entry of a folder. `None` if its name is not Unicode: then the entry does not belong to the
/// archive.
fn listed(entry: &fs::DirEntry) -> Option<FolderName> {
    let name = entry.file_name().into_string().ok()?;
    let is_folder = match entry.file_type() {
        Ok(kind) if !kind.is_symlink() => kind.is_dir(),
        Ok(_) | Err(_) => entry.path().is_dir(),
    };
    Some(if is_folder { FolderName::Folder(name) } else { FolderName::File(name) })
}

fn failed(err: io::Error, path: &Path) -> Error {
    Error::writing(err, "the archive", path)
}
