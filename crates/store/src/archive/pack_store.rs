//! The interface to the storage of packs: [`PackStore`].
//!
//! The archive decides what is in a pack and what a name means. A store only keeps bytes under
//! names.

use std::fmt;
use std::io::{self, Read, Write};
use std::ops::Deref;
use std::path::PathBuf;

use epitome_error::{Error, ErrorKind, Result};
use epitome_model::{Bytes, Source};
use jiff::Timestamp;

use crate::store::disk::GcMode;

/// Keeps packs under names, in folders: `claude/0f3c9a52/000001.pack`. The parts of a name are
/// separated by `/`, and each is safe as a file name. The empty name is the root folder.
///
/// Several threads and processes may use a store at the same time. It must never show an incomplete
/// pack, and must replace a pack only in [`NewPack::replace`].
///
/// Each error has the [location](PackStore::location) of the pack or folder.
pub trait PackStore: fmt::Debug + Send + Sync {
    /// The names directly in a folder, sorted; empty if there is no such folder.
    ///
    /// # Errors
    ///
    /// `Archive` if the folder cannot be listed.
    fn list(&self, folder: &str) -> Result<Vec<FolderName>>;

    /// Begins a pack that has no name yet. Its folder is made if it does not exist.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the pack cannot be created.
    fn begin(&self, folder: &str) -> Result<Box<dyn NewPack>>;

    /// Opens a pack. Ranges of it can be read as long as it is open, even if the pack is renamed or
    /// deleted in the meantime.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotAFile`, `NoPermission` or `Unreadable` if the pack cannot be opened.
    fn open(&self, name: &str) -> Result<Box<dyn PackBytes>>;

    /// The length of a pack, and the time at which it was written.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NoPermission` or `Unreadable` if the pack is not accessible.
    fn facts(&self, name: &str) -> Result<PackFacts>;

    /// Removes a pack or a note.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NoPermission` or `Disk` if it cannot be removed.
    fn delete(&self, name: &str) -> Result<()>;

    /// Renames the pack `name` to `to`. Returns `false`, and changes nothing, if `to` exists
    /// already. The folder of `to` must have been [made](PackStore::make_folder).
    ///
    /// # Errors
    ///
    /// `NotFound`, `NoPermission` or `Disk` if the pack cannot be renamed.
    fn rename(&self, name: &str, to: &str) -> Result<bool>;

    /// Writes a note: a few bytes, which may replace an earlier note with this name. A note need
    /// not survive a power cut.
    ///
    /// # Errors
    ///
    /// `NoPermission` or `Disk` if the note cannot be written.
    fn write_note(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// Makes a folder that survives a power cut.
    ///
    /// # Errors
    ///
    /// `NoPermission` or `Disk` if the folder cannot be made.
    fn make_folder(&self, folder: &str) -> Result<()>;

    /// Makes the names in a folder survive a power cut.
    ///
    /// # Errors
    ///
    /// `Disk` if the folder cannot be flushed.
    fn flush_folder(&self, folder: &str) -> Result<()>;

    /// Removes a folder if it is empty, and then its parent if it is empty, too.
    fn remove_if_empty(&self, folder: &str);

    /// Finds the temporary files of killed processes in a folder, and with [`GcMode::Remove`]
    /// removes them. Returns the length of each.
    fn sweep(&self, folder: &str, mode: GcMode) -> Vec<Bytes>;

    /// The location of a pack for error messages; it is used for nothing else.
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

/// What is known of a pack without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackFacts {
    /// The length of the pack.
    pub len: Bytes,
    /// When the pack was written, if the store knows.
    pub written: Option<Timestamp>,
}

/// An open pack. Its length is the one that the pack had when it was opened.
pub trait PackBytes: Source + fmt::Debug + Send {
    /// The first error of a read, if there was one: bytes that were read after it are not to be
    /// trusted.
    fn failure(&self) -> Option<Error>;
}

/// A pack that is being written. It has no name yet, and is deleted if this value is dropped.
pub trait NewPack: Write + Send {
    /// Truncates the pack to `len` bytes. Later writes continue from there.
    ///
    /// # Errors
    ///
    /// The errors of the operating system.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Opens the bytes that have been written so far.
    ///
    /// # Errors
    ///
    /// The errors of [`PackStore::open`].
    fn open(&self) -> Result<Box<dyn PackBytes>>;

    /// The location of the pack for error messages.
    fn location(&self) -> PathBuf;

    /// Gives the pack a name. When this returns `None`, the pack and its name survive a power cut.
    /// If the name is taken, the pack is returned unchanged.
    ///
    /// # Errors
    ///
    /// `NoPermission` or `Disk` if the pack cannot be completed. It is then deleted.
    fn put(self: Box<Self>, name: &str) -> Result<Option<Box<dyn NewPack>>>;

    /// Atomically replaces the pack with this name by this one, which lacks a text that was
    /// forgotten. When this returns, the new pack survives a power cut.
    ///
    /// # Errors
    ///
    /// `NoPermission` or `Disk` if the pack cannot be completed; `Unsupported` if this store
    /// replaces no packs, which is the default. The old pack is then unchanged, except if only
    /// flushing its folder failed.
    fn replace(self: Box<Self>, name: &str) -> Result<()> {
        let what = format!("a pack is never replaced here: {name}");
        Err(Error::new(ErrorKind::Unsupported, what).at(&self.location()))
    }
}

/// Reads a pack from its beginning. `P` is the pack or a reference to it.
#[derive(Debug)]
pub struct PackReader<P> {
    pack: P,
    at: u64,
}

impl<P> PackReader<P> {
    /// A reader at the beginning of `pack`.
    pub fn new(pack: P) -> PackReader<P> {
        PackReader { pack, at: 0 }
    }
}

impl<P: Deref<Target: PackBytes>> Read for PackReader<P> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.pack.read(self.at..self.at + into.len() as u64);
        if let Some(err) = self.pack.failure() {
            return Err(err.into());
        }
        into[..bytes.len()].copy_from_slice(&bytes);
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }
}
