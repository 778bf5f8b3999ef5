//! The interface to the place where packs are kept: [`PackStore`].
//!
//! The archive decides what is in a pack and what a name means. A store only keeps bytes under
//! names.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;

use epitome_error::{Error, Result};
use epitome_model::{Bytes, Source};
use jiff::Timestamp;

use crate::store::disk::GcMode;

/// Keeps packs under names, in folders: `claude/0f3c9a52/000001.pack`. The parts of a name are
/// separated by `/`, and each is safe as a file name. The empty name is the root folder.
///
/// A store is shared by threads and processes. It must never show a pack that is not complete, and
/// never replace one.
///
/// The errors are `NotFound`, `NoPermission`, `Disk`, `Unreadable` and `Archive`, each with the
/// [location](PackStore::location) of the name.
pub trait PackStore: fmt::Debug + Send + Sync {
    /// The names directly in a folder, sorted; empty if there is no such folder.
    ///
    /// # Errors
    ///
    /// `Archive` when the folder cannot be listed.
    fn list(&self, folder: &str) -> Result<Vec<FolderName>>;

    /// Begins a pack that has no name yet, in a folder that is made if it is missing.
    ///
    /// # Errors
    ///
    /// `Disk`, `NoPermission`.
    fn begin(&self, folder: &str) -> Result<Box<dyn NewPack>>;

    /// Opens a pack. Ranges of it can be read as long as it is open, even if it is renamed or
    /// deleted meanwhile.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotAFile`, `NoPermission`, `Unreadable`.
    fn open(&self, name: &str) -> Result<Box<dyn PackBytes>>;

    /// The length of a pack, and the time at which it was written.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NoPermission`, `Unreadable`.
    fn facts(&self, name: &str) -> Result<PackFacts>;

    /// Removes a name.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NoPermission`, `Disk`.
    fn delete(&self, name: &str) -> Result<()>;

    /// Renames a pack. Returns `false`, and changes nothing, if the name is taken. The folder of
    /// the new name must have been [made](PackStore::make_folder).
    ///
    /// # Errors
    ///
    /// `NotFound`, `NoPermission`, `Disk`.
    fn rename(&self, name: &str, to: &str) -> Result<bool>;

    /// Writes a note: a few bytes, which may replace an earlier note of that name. It is not
    /// flushed.
    ///
    /// # Errors
    ///
    /// `NoPermission`, `Disk`.
    fn write_note(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// Makes a folder that survives a power cut.
    ///
    /// # Errors
    ///
    /// `NoPermission`, `Disk`.
    fn make_folder(&self, folder: &str) -> Result<()>;

    /// Makes the names in a folder survive a power cut.
    ///
    /// # Errors
    ///
    /// `Disk`.
    fn flush_folder(&self, folder: &str) -> Result<()>;

    /// Removes a folder and its parent, if they are empty.
    fn remove_if_empty(&self, folder: &str);

    /// Finds temporary files of killed writers in a folder, and with [`GcMode::Remove`] removes
    /// them. Returns the length of each.
    fn sweep(&self, folder: &str, mode: GcMode) -> Vec<Bytes>;

    /// The location of a name in error messages. The archive does not use it otherwise.
    fn location(&self, name: &str) -> PathBuf;
}

/// A name in a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FolderName {
    /// A pack or a note.
    File(String),
    /// A folder.
    Folder(String),
}

impl FolderName {
    /// The last part of the name, without the folder.
    pub fn name(&self) -> &str {
        let (FolderName::File(name) | FolderName::Folder(name)) = self;
        name
    }
}

/// The facts about a pack that are known without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackFacts {
    /// Its length.
    pub len: Bytes,
    /// When it was written, if the store knows.
    pub written: Option<Timestamp>,
}

/// An open pack. Its length is the one that it had when it was opened.
pub trait PackBytes: Source + fmt::Debug + Send {
    /// The first read error, if there was one: everything read since is not to be trusted.
    fn failure(&self) -> Option<Error>;
}

/// A pack that is being written. It has no name yet, and is deleted if dropped.
pub trait NewPack: Write + Send {
    /// Cuts it off after `len` bytes; later writes follow these.
    ///
    /// # Errors
    ///
    /// The errors of the system.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Opens the bytes that were written so far.
    ///
    /// # Errors
    ///
    /// As [`PackStore::open`].
    fn open(&self) -> Result<Box<dyn PackBytes>>;

    /// The location in error messages.
    fn location(&self) -> PathBuf;

    /// Gives it a name. When this returns, pack and name survive a power cut. Returns the pack if
    /// the name is taken.
    ///
    /// # Errors
    ///
    /// `NoPermission`, `Disk`. The pack is then deleted.
    fn put(self: Box<Self>, name: &str) -> Result<Option<Box<dyn NewPack>>>;
}
