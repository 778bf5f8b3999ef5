//! Disk operations that survive a power cut: private folders, temporary files that are renamed when
//! they are complete, folders whose names are flushed.

use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::regular;
use crate::step::{DiskStep, step};
use epitome_error::{Error, Result};

const PREFIX: &str = ".epitome-";
const SUFFIX: &str = ".tmp";

/// Whether garbage is only reported or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcMode {
    /// Garbage is reported.
    Show,
    /// Garbage is removed.
    Remove,
}

/// A temporary file. It is deleted when this value is dropped. If the process is killed, a later
/// [`sweep`] of the folder deletes it.
///
/// The process that writes it holds a lock on it, which shows other processes that it is in use.
pub struct Temp(NamedTempFile);

/// Why a temporary file could not be renamed.
pub enum NotPlaced {
    /// The name is taken. The existing file is unchanged.
    Taken(Temp),
    /// The operating system refused.
    Failed(io::Error),
}

impl Temp {
    /// Creates an empty file in `folder`, which on Unix only its owner can read. Its name begins
    /// with a dot and ends in `.tmp`, so that agents do not list it.
    pub fn create(folder: &Path) -> io::Result<Temp> {
        loop {
            step(DiskStep::Create)?;
            let file =
                tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).tempfile_in(folder)?;
            match file.as_file().try_lock() {
                // Another process may have deleted the file before it was locked.
                Ok(()) if !file.path().exists() => continue,
                Err(TryLockError::WouldBlock) => continue,
                // On a disk without locks, `sweep` removes nothing either.
                Ok(()) | Err(TryLockError::Error(_)) => return Ok(Temp(file)),
            }
        }
    }

    /// The open file.
    pub fn file(&self) -> &File {
        self.0.as_file()
    }

    /// The temporary path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Truncates the file to `len` bytes. Later writes continue from there.
    pub fn truncate(&self, len: u64) -> io::Result<()> {
        self.file().set_len(len)?;
        self.file().seek(io::SeekFrom::Start(len)).map(drop)
    }

    /// Sets the permissions of the file.
    pub fn set_permissions(&self, permissions: fs::Permissions) -> io::Result<()> {
        step(DiskStep::Mode)?;
        self.file().set_permissions(permissions)
    }

    /// Flushes the file to the disk.
    pub fn flush_to_disk(&self) -> io::Result<()> {
        step(DiskStep::Flush)?;
        self.0.as_file().sync_all()
    }

    /// Renames the file to `path`, if that name is free.
    pub fn place_new(self, path: &Path) -> std::result::Result<(), NotPlaced> {
        step(DiskStep::Name).map_err(NotPlaced::Failed)?;
        match self.0.persist_noclobber(path) {
            Ok(_) => Ok(()),
            Err(err) if err.error.kind() == io::ErrorKind::AlreadyExists => {
                Err(NotPlaced::Taken(Temp(err.file)))
            }
            Err(err) => Err(NotPlaced::Failed(err.error)),
        }
    }

    /// Renames the file to `path`. An existing file is replaced.
    pub fn place_over(self, path: &Path) -> io::Result<()> {
        step(DiskStep::Name)?;
        self.0.persist(path).map(drop).map_err(|err| err.error)
    }
}

impl Write for Temp {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        step(DiskStep::Write)?;
        self.0.as_file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_file().flush()
    }
}

/// Removes a file, so that it does not come back after a power cut.
///
/// # Errors
///
/// The error of the operating system.
pub fn remove(path: &Path) -> io::Result<()> {
    step(DiskStep::Name)?;
    fs::remove_file(path)?;
    flush_folder(path.parent().unwrap_or(Path::new("/")))
}

/// A temporary file that a killed process left.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leftover {
    /// The path of the file.
    pub path: PathBuf,
    /// The length of the file in bytes.
    pub len: u64,
}

/// Finds the temporary files of killed processes in `folder`, and with [`GcMode::Remove`] removes
/// them. Files that cannot be read or locked are left alone.
pub fn sweep(folder: &Path, mode: GcMode) -> Vec<Leftover> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|n| n.starts_with(PREFIX) && n.ends_with(SUFFIX));
        if !ours || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let path = entry.path();
        // The lock is held while the file is removed: a process that creates a temporary file locks
        // it, and then checks that it still exists.
        let Ok(file) = regular::open_with(File::options().read(true).write(true), &path) else {
            continue;
        };
        if file.try_lock().is_err() {
            continue;
        }
        let len = file.metadata().map_or(0, |meta| meta.len());
        let gone = match mode {
            GcMode::Show => true,
            GcMode::Remove => fs::remove_file(&path).is_ok(),
        };
        if gone {
            found.push(Leftover { path, len });
        }
    }
    found.sort();
    found
}

/// Creates a folder and its missing parents. On Unix only the owner can read what is created. After
/// each, the folder around it is flushed, so that the new name is on the disk. A folder that exists
/// already is left as it is.
pub fn private_folder(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        private_folder(parent)?;
    }
    let made = step(DiskStep::Folder).and_then(|()| match make_private(path) {
        // Another process has created the folder first.
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    });
    made.and_then(|()| flush_folder(parent.unwrap_or(Path::new("."))))
        .map_err(|err| Error::writing(err, "the folder", path))
}

#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make_private(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

/// Flushes the names in a folder to the disk.
#[cfg(unix)]
#[cfg_attr(not(test), expect(clippy::disallowed_methods, reason = "a folder is opened"))]
pub fn flush_folder(path: &Path) -> io::Result<()> {
    step(DiskStep::FlushFolder)?;
    match File::open(path)?.sync_all() {
        // Some network disks cannot flush folders.
        Err(err)
            if matches!(err.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
        {
            Ok(())
        }
        flushed => flushed,
    }
}

/// Does nothing: on other systems the standard library cannot flush a folder.
#[cfg(not(unix))]
pub fn flush_folder(_: &Path) -> io::Result<()> {
    step(DiskStep::FlushFolder)
}
