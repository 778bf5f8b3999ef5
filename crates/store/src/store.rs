//! Locks sessions against other epitome processes, and replaces them as a whole or not at all.

pub mod disk;
mod late_appends;
mod users;

use std::fs::{self, File, FileTimes, TryLockError};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use epitome_model::{Bytes, Source, Splice};

pub use users::{User, users_of};

use crate::archive::{Digest, GcMode, Hash};
use crate::compressed::{self, Frames};
use crate::place::Place;
use crate::regular;
use crate::rows::Rows;
use crate::source::{FileSource, copy};
use disk::{NotPlaced, Temp};
use epitome_error::{Error, ErrorKind, Result};
use late_appends::Carry;

/// If the last write to a session is older than this, no process is expected to write to it soon.
const LIVE: Duration = Duration::from_mins(10);

/// How long to wait after replacing a session whose last write is less than `LIVE` ago. A process
/// may have resolved the path of the old file and be about to open it. No check can find such a
/// process.
const GRACE: Duration = Duration::from_millis(20);

/// If the last write to a session is less than this ago, a process is probably still writing to it.
const BUSY: Duration = Duration::from_secs(2);

/// The same as `GRACE`, for a session whose last write is less than `BUSY` ago. On a busy machine,
/// a writer was once seen to be suspended for longer than 20 ms between resolving the path and
/// opening the file.
const BUSY_GRACE: Duration = Duration::from_millis(250);

/// Opens sessions for writing. Each session has a lock file, in the folder `locks`.
#[derive(Clone, Debug)]
pub struct Store {
    locks: PathBuf,
}

/// A session that is open for writing. As long as this value exists, no other epitome process can
/// open the session for writing, unless the disk of the lock file supports no locks.
#[derive(Debug)]
pub struct LockedSession {
    path: PathBuf,
    source: FileSource,
    storage: Storage,
    lock: Arc<FileLock>,
}

/// How a session is stored.
#[derive(Debug)]
enum Storage {
    /// A file, and the stamp that shows whether it is still the file that was opened.
    File(Stamp),
    /// A compressed file: its stamp, the file itself and its frames.
    Compressed(Stamp, FileSource, Frames),
    /// Rows of a database.
    Rows(Rows),
}

/// Locks a file against other epitome processes until this value is dropped.
#[derive(Debug)]
pub struct FileLock {
    file: File,
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file is not enough: while another thread starts a process, that process has a
        // copy of the open file, with the lock. On a disk without locks this fails.
        let _ = self.file.unlock();
    }
}

/// The result of replacing a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplaceReport {
    /// The length of the bytes that an agent appended during the replacement. The replaced session
    /// contains these bytes.
    pub carried: Bytes,
}

/// Identifies a file and its state, to find out whether a file is still the one that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    /// Device and inode of the file, if the system has them.
    id: (u64, u64),
}

impl Stamp {
    /// How long to wait for processes that may be about to open the file: the longer ago the last
    /// write was, the shorter.
    fn grace(&self) -> Duration {
        match self.modified.map(|modified| modified.elapsed()) {
            None => BUSY_GRACE,
            Some(Ok(age)) if age < BUSY => BUSY_GRACE,
            Some(Ok(age)) if age < LIVE => GRACE,
            // The last write was long ago, or its time is in the future because the clock was
            // changed.
            Some(Ok(_) | Err(_)) => Duration::ZERO,
        }
    }
}

impl Store {
    /// A store whose locks are in `home`. Nothing is created on disk yet.
    pub fn new(home: &Path) -> Store {
        Store { locks: home.join("locks") }
    }

    /// Opens the session at an address for writing. If the path is a symbolic link, its target is
    /// opened and later replaced.
    ///
    /// # Errors
    ///
    /// `NotFound`; `NotAFile` for a folder, a pipe or a device; `ReadOnly` for a session that
    /// consists of many files; `NoPermission`, also if the file is marked read-only; `HardLinked`
    /// if the file has other names, which a replacement would separate; `Locked` if another epitome
    /// process has locked the session; `Changed` if the rows of the session were just deleted;
    /// `Disk` if the lock cannot be created; the errors of reading the session.
    pub fn open_for_edit(&self, path: &Path) -> Result<LockedSession> {
        self.open_place(&Place::parse(path), None)
    }

    /// Opens the session at a place for writing. `read` are the rows of a database, if they were
    /// read already: changes after that are noticed when the rows are replaced.
    ///
    /// # Errors
    ///
    /// The errors of [`open_for_edit`](Store::open_for_edit).
    pub fn open_place(&self, place: &Place, read: Option<FileSource>) -> Result<LockedSession> {
        place.check_writable()?;
        if let Place::Rows(rows) = place {
            let rows = rows.real()?;
            let lock = self.lock(&rows.address())?;
            return LockedSession::of_rows(rows, read, Arc::new(lock));
        }
        let real = place.real()?;
        // The file is opened before it is locked, so that no lock is created for a path without a
        // session.
        let file = FileSource::open(&real)?;
        let lock = self.lock(&real)?;
        // Another epitome process may have replaced the file before it was locked.
        let same = stamp_of(&real)? == stamp_of_open(&file)?;
        let file = if same { file } else { FileSource::open(&real)? };
        LockedSession::of_file(real, file, Arc::new(lock))
    }

    /// Locks a file against other epitome processes, for a program that keeps the file open and
    /// appends to it.
    ///
    /// # Errors
    ///
    /// `NotFound` or `NoPermission` if the file is not accessible; `Locked` if another epitome
    /// process has locked it; `Disk` if the lock cannot be created.
    pub fn lock_file(&self, path: &Path) -> Result<FileLock> {
        let real = fs::canonicalize(path).map_err(|err| Error::reading(err, "the file", path))?;
        self.lock(&real)
    }

    fn lock(&self, real: &Path) -> Result<FileLock> {
        disk::private_folder(&self.locks).map_err(|err| cannot_lock(err, real))?;
        let name = Hash::compute(real.as_os_str().as_encoded_bytes()).to_string();
        let path = self.locks.join(&name[..32]);
        let file = open_private(&path)
            .map_err(|err| cannot_lock(Error::writing(err, "the lock", &path), real))?;
        match file.try_lock() {
            Ok(()) => Ok(FileLock { file }),
            Err(TryLockError::WouldBlock) => {
                let what = "another epitome is working on this session";
                Err(Error::new(ErrorKind::Locked, what).at(real))
            }
            // On a disk without locks, only the check before the replacement protects the session.
            Err(TryLockError::Error(err)) if err.kind() == std::io::ErrorKind::Unsupported => {
                Ok(FileLock { file })
            }
            Err(TryLockError::Error(err)) => {
                Err(cannot_lock(Error::writing(err, "the lock", &path), real))
            }
        }
    }
}

/// Checks that the session at a place can be replaced. Nothing is created, locked or changed. What
/// depends on other processes is not checked.
///
/// # Errors
///
/// The errors of [`Store::open_for_edit`], except `Locked` and `Disk`.
pub fn check_replaceable(place: &Place) -> Result<()> {
    place.check_writable()?;
    if let Place::Rows(_) = place {
        return Ok(());
    }
    let real = place.real()?;
    check_file(&FileSource::open(&real)?, &real)
}

/// Refuses a file that is marked read-only or has other names.
fn check_file(file: &FileSource, real: &Path) -> Result<()> {
    let meta = file.metadata().map_err(|err| Error::reading(err, "the session", real))?;
    if meta.permissions().readonly() {
        let what = "the session is marked read-only";
        return Err(Error::new(ErrorKind::NoPermission, what).at(real));
    }
    one_name(&meta, real, SEVERAL_NAMES)
}

/// The error for a session that cannot be locked.
fn cannot_lock(err: Error, real: &Path) -> Error {
    let hint = "EPITOME_HOME says where locks and archive are; nothing was changed";
    Error::new(ErrorKind::Disk, "cannot lock the session").at(real).because(err).with_hint(hint)
}

impl LockedSession {
    fn of_file(real: PathBuf, file: FileSource, lock: Arc<FileLock>) -> Result<LockedSession> {
        check_file(&file, &real)?;
        // Bytes that were appended after the file was opened are not part of the session.
        let stamp = Stamp { len: file.len(), ..stamp_of_open(&file)? };
        let (source, storage) = if compressed::is_compressed(&file)? {
            let (plain, frames) = compressed::open(&file, compressed::LIMIT)?;
            (plain, Storage::Compressed(stamp, file, frames))
        } else {
            (file, Storage::File(stamp))
        };
        Ok(LockedSession { path: real, source, storage, lock })
    }

    fn of_rows(rows: Rows, read: Option<FileSource>, lock: Arc<FileLock>) -> Result<LockedSession> {
        let path = rows.address();
        // Another process may have deleted the rows since the place was resolved.
        if !rows.exists() {
            let what = "the session changed meanwhile";
            return Err(Error::new(ErrorKind::Changed, what).at(&path));
        }
        let source = read.map_or_else(|| rows.open(), Ok)?;
        Ok(LockedSession { path, source, storage: Storage::Rows(rows), lock })
    }

    /// The address of the session, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes that the session had when it was opened.
    pub fn source(&self) -> &FileSource {
        &self.source
    }

    /// Whether the session's file is compressed. [`source`](LockedSession::source) is its
    /// decompressed content.
    pub fn is_compressed(&self) -> bool {
        matches!(self.storage, Storage::Compressed(..))
    }

    /// The other processes that have the session's file open. Empty for a database, which has locks
    /// of its own.
    pub fn users(&self) -> Vec<User> {
        match self.storage {
            Storage::File(_) | Storage::Compressed(..) => users_of(&self.path),
            Storage::Rows(_) => Vec::new(),
        }
    }

    /// Checks that the session's file is still the one that was opened. Rows are compared while
    /// they are replaced.
    ///
    /// # Errors
    ///
    /// `Changed` if the file was written to or replaced, `NotFound` if it does not exist any more.
    pub fn check_unchanged(&self) -> Result<()> {
        let (stamp, file) = match &self.storage {
            Storage::File(stamp) => (*stamp, &self.source),
            Storage::Compressed(stamp, file, _) => (*stamp, file),
            Storage::Rows(_) => return Ok(()),
        };
        if stamp_of(&self.path)? == stamp && stamp_of_open(file)? == stamp {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Changed, "the session changed meanwhile").at(&self.path))
    }

    /// Replaces the session by the output of `write`, atomically. If the session is rows of a
    /// database, the rows that differ are updated in one transaction. A new file gets the mode and
    /// the times of the old one, because agents sort sessions by time, and the owner if that is
    /// permitted.
    ///
    /// Bytes that were appended between the last check and the replacement are carried over to the
    /// new file. So are bytes of a process that had the file open at that moment and wrote later:
    /// up to two seconds later on Linux, where such a process is visible, and up to a quarter of a
    /// second elsewhere.
    ///
    /// # Errors
    ///
    /// The error of `write`; `Disk`, `NoPermission` or `Unreadable`; `Changed` if the file or the
    /// rows are not what was opened; `HardLinked` if the file has other names; for rows also
    /// `Locked`, and `Broken` if a line belongs to no row. The session is then unchanged, and no
    /// other file is left in its folder. There is one exception, which the error reports: bytes had
    /// to be carried over, and the disk failed at that moment.
    pub fn replace(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<ReplaceReport> {
        self.prepare(write)?.place()
    }

    /// The first half of a replacement: writes the output of `write` to a file next to the session,
    /// or, for rows, to an unnamed temporary file. If the disk is full, a file's replacement fails
    /// here: the second half needs space only for bytes that are carried over.
    ///
    /// # Errors
    ///
    /// The errors of [`replace`](LockedSession::replace).
    pub fn prepare(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<PreparedReplacement<'_>> {
        match &self.storage {
            Storage::File(stamp) => {
                let old = &self.source;
                let temp = self.write_next_to(&self.source, write)?;
                Ok(PreparedReplacement::File { session: self, stamp: *stamp, old, temp })
            }
            Storage::Compressed(stamp, old, frames) => {
                let after = compressed::plain(&self.source, write)?;
                let (kept, added) = compressed::compress(frames, &self.source, &after)?;
                after.failure().map_or(Ok(()), Err)?;
                let temp = self.write_next_to(old, |out| {
                    copy(old, 0..kept, out)?;
                    out.write_all(&added).map_err(Error::from)
                })?;
                Ok(PreparedReplacement::File { session: self, stamp: *stamp, old, temp })
            }
            Storage::Rows(rows) => Ok(PreparedReplacement::Rows {
                rows,
                before: &self.source,
                after: rows.write_to_temporary(write)?,
            }),
        }
    }

    /// Puts back the bytes that the session had when it was opened, after it was replaced by `put`.
    /// What was appended since stays at the end.
    ///
    /// # Errors
    ///
    /// `Changed` if the session does not begin with `put` any more; otherwise the errors of
    /// [`replace`](LockedSession::replace).
    pub fn undo_replace(&self, put: &dyn Source) -> Result<ReplaceReport> {
        // The lock is released when its last owner is dropped.
        let lock = Arc::clone(&self.lock);
        let now = match &self.storage {
            Storage::Rows(rows) => LockedSession::of_rows(rows.clone(), None, lock)?,
            Storage::File(_) | Storage::Compressed(..) => {
                LockedSession::of_file(self.path.clone(), FileSource::open(&self.path)?, lock)?
            }
        };
        let put_len = put.len();
        let len = now.source.len();
        if !Digest::from_prefixes(&now.source, &[put_len])?.contains(&Digest::from_source(put)?) {
            return Err(Error::new(ErrorKind::Changed, "the session changed").at(&self.path));
        }
        now.replace(|out| {
            copy(&self.source, 0..self.source.len(), out)?;
            copy(&now.source, put_len..len, out)
        })
    }

    /// Checks that a replacement can be restored exactly. A compressed file may only be appended
    /// to: its existing frames then stay, whereas compressing the same text again may give other
    /// bytes.
    ///
    /// # Errors
    ///
    /// `Refused`, with the reason.
    pub fn check_restorable(&self, splices: &[Splice]) -> Result<()> {
        let end = self.source.len();
        match self.storage {
            Storage::Compressed(..) if splices.iter().any(|splice| splice.span.start < end) => {
                let what = "a compressed session can only be appended to";
                Err(Error::new(ErrorKind::Refused, what).at(&self.path).with_hint(
                    "what is compressed anew may not be what it was; `--out FILE` writes a plain \
                     copy, and `zstd -d --rm` makes a plain session of it",
                ))
            }
            Storage::Compressed(..) | Storage::File(_) | Storage::Rows(_) => Ok(()),
        }
    }

    /// Writes a flushed temporary file in the folder of the session, with the owner, mode and times
    /// of the old file.
    fn write_next_to(
        &self,
        old: &FileSource,
        write: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<Temp> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let failed = |err| Error::writing(err, "the session", &self.path);
        disk::sweep(folder, GcMode::Remove);
        let temp = written(folder, &self.path, write)?;
        if let Some(err) = [old, &self.source].into_iter().find_map(FileSource::failure) {
            return Err(err);
        }
        take_after(&old.metadata().map_err(failed)?, temp.file()).map_err(failed)?;
        temp.flush_to_disk().map_err(failed)?;
        Ok(temp)
    }
}

/// The new content of a session, which is written but not in its place yet. It is deleted if this
/// value is dropped.
pub enum PreparedReplacement<'a> {
    /// A file next to the old one.
    File {
        /// The locked session.
        session: &'a LockedSession,
        /// The stamp that the old file had when it was opened.
        stamp: Stamp,
        /// The old bytes.
        old: &'a FileSource,
        /// The new bytes.
        temp: Temp,
    },
    /// Rows, as lines.
    Rows {
        /// The rows in their database.
        rows: &'a Rows,
        /// The old rows.
        before: &'a FileSource,
        /// The new rows.
        after: File,
    },
}

impl PreparedReplacement<'_> {
    /// Replaces the session with the prepared content.
    ///
    /// # Errors
    ///
    /// The errors of [`LockedSession::replace`].
    pub fn place(self) -> Result<ReplaceReport> {
        let (session, stamp, old, temp) = match self {
            PreparedReplacement::Rows { rows, before, after } => {
                return rows.replace(before, &after);
            }
            PreparedReplacement::File { session, stamp, old, temp } => (session, stamp, old, temp),
        };
        let path = &session.path;
        let failed = |err| Error::writing(err, "the session", path);
        one_name(&old.metadata().map_err(failed)?, path, SEVERAL_NAMES)?;
        session.check_unchanged()?;
        let len = temp.file().metadata().map_err(failed)?.len();
        temp.place_over(path).map_err(failed)?;
        let mut carry = Carry::new(path, old, stamp.len, len);
        // The agent may soon write its next record to the new file. Before that, the bytes that it
        // appended to the old file are carried over.
        carry.now()?;
        // If this fails, a power cut may bring back the old file. That is no damage: it is
        // complete.
        disk::flush_folder(path.parent().unwrap_or(Path::new("/"))).ok();
        Ok(ReplaceReport { carried: carry.until_closed(stamp.grace())? })
    }
}

/// Writes a new file at `path` atomically. On Unix, only its owner can read it. Temporary files
/// that killed processes left in its folder are removed.
///
/// # Errors
///
/// `Exists` if the name is taken; `NotFound` if the folder does not exist; the error of `write`;
/// `Disk` or `NoPermission`. No file is left then.
pub fn write_new(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |err| Error::writing(err, "the file", path);
    // This early check saves useless work. The rename below checks again, and decides.
    if path.symlink_metadata().is_ok() {
        return Err(name_is_taken(path));
    }
    disk::sweep(folder, GcMode::Remove);
    let temp = written(folder, path, write)?;
    temp.flush_to_disk().map_err(failed)?;
    match temp.place_new(path) {
        Ok(()) => disk::flush_folder(folder).map_err(|err| {
            // If the name might not survive a power cut, the file does not count as written.
            fs::remove_file(path).ok();
            failed(err)
        }),
        Err(NotPlaced::Taken(_)) => Err(name_is_taken(path)),
        Err(NotPlaced::Failed(err)) => Err(failed(err)),
    }
}

/// Writes one of epitome's own files at `path` atomically. An existing file is replaced.
///
/// # Errors
///
/// The error of `write`; `Disk` or `NoPermission`. An existing file is then unchanged.
pub fn write_over(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    write_over_with(path, None, write)
}

/// Like [`write_over`], with the given permissions, if any. The replacement is the last step:
/// nothing can fail after it.
///
/// # Errors
///
/// The errors of [`write_over`].
pub fn write_over_with(
    path: &Path,
    permissions: Option<fs::Permissions>,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |err| Error::writing(err, "the file", path);
    let temp = written(folder, path, write)?;
    if let Some(permissions) = permissions {
        temp.set_permissions(permissions).map_err(failed)?;
    }
    temp.flush_to_disk().map_err(failed)?;
    temp.place_over(path).map_err(failed)
}

/// A temporary file in `folder` with the output of `write`. Errors name `path`.
fn written(
    folder: &Path,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<Temp> {
    let failed = |err| Error::writing(err, "the file", path);
    let temp = Temp::create(folder).map_err(failed).map_err(|err| match err.kind() {
        ErrorKind::NoPermission => err
            .with_hint("a temporary file is written next to it first: its folder must be writable"),
        _ => err,
    })?;
    let mut out = BufWriter::with_capacity(1 << 18, temp);
    write(&mut out).map_err(|err| if err.path().is_some() { err } else { err.at(path) })?;
    out.into_inner().map_err(|err| failed(err.into_error()))
}

/// Waits until no other process holds the lock on the file at `path`, and takes the lock. The lock
/// ends when the result is dropped, or the process is killed. On a disk without locks nothing is
/// locked.
///
/// # Errors
///
/// `Disk` or `NoPermission` if the file cannot be created or locked.
pub fn lock_for_writing(path: &Path) -> Result<File> {
    let failed = |err| Error::writing(err, "the lock", path);
    let file = open_private(path).map_err(failed)?;
    match file.lock() {
        Ok(()) => Ok(file),
        Err(err) if err.kind() == std::io::ErrorKind::Unsupported => Ok(file),
        Err(err) => Err(failed(err)),
    }
}

/// As [`lock_for_writing`], but does not wait: `None` if another process holds the lock.
///
/// # Errors
///
/// As for [`lock_for_writing`].
pub fn try_lock_for_writing(path: &Path) -> Result<Option<File>> {
    let failed = |err| Error::writing(err, "the lock", path);
    let file = open_private(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(err)) if err.kind() == std::io::ErrorKind::Unsupported => {
            Ok(Some(file))
        }
        Err(TryLockError::Error(err)) => Err(failed(err)),
    }
}

fn name_is_taken(path: &Path) -> Error {
    Error::new(ErrorKind::Exists, "there is something of that name already").at(path)
}

/// Copies owner, mode and times of the old file, in an order in which no step undoes another.
fn take_after(meta: &fs::Metadata, file: &File) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        // Only an administrator may change the owner; otherwise the current user owns the new file.
        std::os::unix::fs::fchown(file, Some(meta.uid()), Some(meta.gid())).ok();
    }
    file.set_permissions(meta.permissions())?;
    let mut times = FileTimes::new();
    if let Ok(accessed) = meta.accessed() {
        times = times.set_accessed(accessed);
    }
    if let Ok(modified) = meta.modified() {
        times = times.set_modified(modified);
    }
    file.set_times(times)
}

const SEVERAL_NAMES: &str = "the session has more than one name on disk";

/// Returns an error if a file has other names, which a replacement would separate. On systems other
/// than Unix this is not checked.
pub fn one_name(meta: &fs::Metadata, path: &Path, what: &str) -> Result<()> {
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::nlink(meta) > 1 {
        return Err(Error::new(ErrorKind::HardLinked, what).at(path));
    }
    #[cfg(not(unix))]
    let _ = (meta, path, what);
    Ok(())
}

fn stamp_of(path: &Path) -> Result<Stamp> {
    let meta = fs::symlink_metadata(path);
    meta.map(|meta| stamp(&meta)).map_err(|err| Error::reading(err, "the session", path))
}

fn stamp_of_open(source: &FileSource) -> Result<Stamp> {
    let meta = source.metadata();
    meta.map(|meta| stamp(&meta)).map_err(|err| Error::reading(err, "the session", source.path()))
}

fn stamp(meta: &fs::Metadata) -> Stamp {
    #[cfg(unix)]
    let id = {
        use std::os::unix::fs::MetadataExt;
        (meta.dev(), meta.ino())
    };
    #[cfg(not(unix))]
    let id = (0, 0);
    Stamp { len: meta.len(), modified: meta.modified().ok(), id }
}

fn open_private(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    regular::open_with(&mut options, path)
}

#[cfg(test)]
mod tests;
