//! Where packs are kept: [`PackStore`].
//!
//! The archive decides what is in a pack and what a name means. A store keeps bytes under names.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;

use epitome_error::{Error, Result};
use epitome_model::{Bytes, Source};
use jiff::Timestamp;

use crate::store::disk::GcMode;

/// Keeps packs under names, in folders: `claude/0f3c9a52/000001.pack`. The parts of a name are
/// separated by `/`, each is safe as a file name, and the folder of the empty name holds all
/// others.
///
/// A store is shared by threads and processes. It must never show a pack that is not complete, and
/// never replace one.
///
/// The errors are `NotFound`, `NoPermission`, `Disk`, `Unreadable` and `Archive`, each with the
/// [location](PackStore::location) of what it is about.
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

    /// Opens a pack: ranges of it can be read for as long as it is open, whatever happens to its
    /// name.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotAFile`, `NoPermission`, `Unreadable`.
    fn open(&self, name: &str) -> Result<Box<dyn PackBytes>>;

    /// The length of a pack, and when it was written.
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

    /// Gives a pack another name. Returns `false`, and changes nothing, if that is taken. The
    /// folder of the new name must have been [made](PackStore::make_folder).
    ///
    /// # Errors
    ///
    /// `NotFound`, `NoPermission`, `Disk`.
    fn rename(&self, name: &str, to: &str) -> Result<bool>;

    /// Writes a note: a few bytes that may replace those that have the name. It is not flushed.
    ///
    /// # Errors
    ///
    /// `NoPermission`, `Disk`.
    fn write_note(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// Makes a folder, so that it outlasts a power cut.
    ///
    /// # Errors
    ///
    /// `NoPermission`, `Disk`.
    fn make_folder(&self, folder: &str) -> Result<()>;

    /// Makes the names in a folder outlast a power cut.
    ///
    /// # Errors
    ///
    /// `Disk`.
    fn flush_folder(&self, folder: &str) -> Result<()>;

    /// Removes a folder and the one that it is in, those of them that are empty.
    fn remove_if_empty(&self, folder: &str);

    /// Finds what killed writers left in a folder, and removes it if asked to. Returns the length
    /// of each.
    fn sweep(&self, folder: &str, mode: GcMode) -> Vec<Bytes>;

    /// Where errors say that a name is. The archive does not look at it otherwise.
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
    /// The name, without that of the folder.
    pub fn name(&self) -> &str {
        let (FolderName::File(name) | FolderName::Folder(name)) = self;
        name
    }
}

/// What is known of a pack without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackFacts {
    /// Its length.
    pub len: Bytes,
    /// When it was written, if the store knows.
    pub written: Option<Timestamp>,
}

/// An open pack. Its length is that of the moment at which it was opened.
pub trait PackBytes: Source + fmt::Debug + Send {
    /// The first failure to read, if there was one: everything read since is not to be trusted.
    fn failure(&self) -> Option<Error>;
}

/// A pack that is being written. No name refers to it, and it is deleted when it is dropped.
pub trait NewPack: Write + Send {
    /// Cuts it off after `len` bytes; later writes follow these.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Opens what was written so far.
    ///
    /// # Errors
    ///
    /// As [`PackStore::open`].
    fn open(&self) -> Result<Box<dyn PackBytes>>;

    /// Where errors say that it is.
    fn location(&self) -> PathBuf;

    /// Gives it a name. When this returns, both outlast a power cut. Returns the pack if the name
    /// is taken.
    ///
    /// # Errors
    ///
    /// `NoPermission`, `Disk`. The pack is then deleted.
    fn put(self: Box<Self>, name: &str) -> Result<Option<Box<dyn NewPack>>>;
}
