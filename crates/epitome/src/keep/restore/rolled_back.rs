//! A file that is restored or deleted: its version, its place, and what is there now.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use epitome_model::{Bytes, Source, Span, Splice};
use epitome_store::compressed;
use jiff::Timestamp;

use super::super::unfinished::IntendedFile;
use super::super::{FileKey, Vault, files_at_place, place_here};
use super::RestoredVersion;
use crate::archive::{Digest, Hash};
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::ops::{SessionPart, check_replaceable};
use crate::place::Place;
use crate::regular;
use crate::rows;
use crate::source::{CHUNK, FileSource, copy, exactly};
use crate::store::write_new;

/// A file that is restored or deleted.
pub(super) struct RolledBackFile {
    /// The kept file that has the version.
    pub(super) from: FileKey,
    /// The file on this machine to which the content is written. The same as `from`, unless another
    /// machine kept `from` or the home folder was moved.
    pub(super) file: FileKey,
    /// Whether `from` and `file` share one sequence of version numbers.
    pub(super) is_joined: bool,
    pub(super) number: u64,
    /// The content that is restored, whose hash was checked. `None` if the file is deleted.
    pub(super) content: Option<FileSource>,
    pub(super) place: Place,
    pub(super) report: RestoredVersion,
}

impl RolledBackFile {
    pub(super) fn open(vault: &Vault, file: &FileKey, number: u64) -> Result<RolledBackFile> {
        let content = vault.open_version(file, number)?;
        let version = vault.version(file, number)?;
        let report = RestoredVersion {
            agent: file.agent.clone(),
            session: file.session.clone(),
            path: file.path.clone(),
            version: number,
            seen: version.seen,
            bytes: Bytes(version.digest.len),
            blake3: version.digest.blake3,
            unchanged: false,
            replaced: None,
            deleted: false,
            dry_run: false,
            parts: Vec::new(),
        };
        Ok(RolledBackFile::new(file, number, Some(content), report))
    }

    /// A target for a file that did not exist at `seen`, and is deleted. `number` is the version
    /// that says so, or 0.
    pub(super) fn absent(file: &FileKey, number: u64, seen: Timestamp) -> RolledBackFile {
        let report = RestoredVersion {
            agent: file.agent.clone(),
            session: file.session.clone(),
            path: file.path.clone(),
            version: number,
            seen,
            bytes: Bytes(0),
            blake3: Hash::compute(b""),
            // This is set to false if the file exists.
            unchanged: true,
            replaced: None,
            deleted: true,
            dry_run: false,
            parts: Vec::new(),
        };
        RolledBackFile::new(file, number, None, report)
    }

    pub(super) fn new(
        file: &FileKey,
        number: u64,
        content: Option<FileSource>,
        report: RestoredVersion,
    ) -> RolledBackFile {
        let place = Place::parse(&file.path);
        let (from, file) = (file.clone(), file.clone());
        RolledBackFile { from, file, is_joined: true, number, content, place, report }
    }

    /// Sets the file and the place on this machine to which the content is written.
    pub(super) fn move_here(&mut self, config: &Config, vault: &Vault) -> Result<()> {
        let path = place_here(config, vault, &self.from)?;
        self.place = Place::parse(&path);
        self.report.path.clone_from(&path);
        self.file = FileKey { machine: vault.machine().to_owned(), path, ..self.from.clone() };
        self.is_joined = self.from.machine == self.file.machine
            && (vault.versions(&self.file).next().is_none()
                || files_at_place(config, vault, &self.from).contains(&self.file));
        Ok(())
    }

    /// Whether the file exists. Always true for a session that is not a single file.
    pub(super) fn is_there(&self) -> bool {
        match &self.place {
            Place::File(path) => fs::symlink_metadata(path).is_ok(),
            Place::Rows(_) | Place::Spread(_) => true,
        }
    }

    /// The present content, in the form in which the vault keeps it.
    pub(super) fn present(&self) -> Result<FileSource> {
        match &self.place {
            Place::File(path) => FileSource::open(path),
            Place::Rows(_) | Place::Spread(_) => self.place.open(),
        }
    }

    /// The record of what is going to be replaced. Call this only after `keep_present`, which keeps
    /// the present content.
    pub(super) fn intended(&self, vault: &Vault) -> Result<IntendedFile> {
        let before = match self.report.replaced {
            Some(number) => Some(vault.version(&self.file, number)?.digest),
            None => None,
        };
        let after = match self.content {
            Some(_) => Some(vault.version(&self.from, self.number)?.digest),
            None => None,
        };
        let file = FileKey { machine: String::new(), ..self.file.clone() };
        Ok(IntendedFile { file, before, after, is_deleted: self.content.is_none() })
    }

    /// Whether the restore has reached this file already: it has the content to restore, or does
    /// not exist if it was to be deleted.
    pub(super) fn is_replaced(&self, file: &IntendedFile) -> Result<bool> {
        if !self.is_there() {
            return Ok(file.is_deleted);
        }
        let present = self.present()?;
        Ok(file.after == Some(Digest::from_source(&present)?) || self.has(&present)?)
    }

    /// Whether the content to restore is the same as `present`. False if the file is to be deleted.
    pub(super) fn has(&self, present: &FileSource) -> Result<bool> {
        match &self.content {
            Some(content) => is_same(present, content),
            None => Ok(false),
        }
    }

    /// Whether the file is as it was before the restore. False if it cannot be read.
    pub(super) fn is_as(&self, file: &IntendedFile) -> bool {
        if !self.is_there() {
            return file.before.is_none();
        }
        let now = self.present().and_then(|present| Digest::from_source(&present));
        now.is_ok_and(|now| file.before == Some(now))
    }

    /// Returns an error if sessions at this place cannot be written, or if the session's rows were
    /// deleted from their database.
    pub(super) fn check_place(&self) -> Result<()> {
        self.place.check_writable()?;
        let path = &self.file.path;
        let is_row = rows::split(path).is_some_and(|(database, _)| database.exists());
        if is_row && matches!(self.place, Place::File(_)) {
            let what = "rows that were deleted from a database cannot be made again";
            return Err(Error::new(ErrorKind::Unsupported, what).at(path).with_hint(
                "`--out FILE` writes the session to a file, which epitome reads like a session",
            ));
        }
        Ok(())
    }

    /// Returns an error if the present content of the file cannot be replaced, as far as that does
    /// not depend on other processes.
    pub(super) fn check_replaceable(&self, present: &FileSource) -> Result<()> {
        let part = SessionPart::at(&self.file.path);
        let Some(content) = &self.content else { return check_replaceable(&part, Some(0)) };
        check_replaceable(&part, Some(first_difference(present, content)?))?;
        self.check_uncompressed(compressed::is_compressed(present)?)
    }

    /// Returns an error if the file is compressed, as `is_compressed` says, or if the version is.
    pub(super) fn check_uncompressed(&self, is_compressed: bool) -> Result<()> {
        let Some(content) = &self.content else { return Ok(()) };
        if !is_compressed && !compressed::is_compressed(content)? {
            return Ok(());
        }
        let what = "a compressed session cannot be replaced by one of its versions";
        Err(Error::new(ErrorKind::Unsupported, what)
            .at(&self.file.path)
            .with_hint("`--out FILE` writes it to a new file; nothing was changed"))
    }

    /// Writes the content to a new file.
    pub(super) fn write_new(&self, path: &Path) -> Result<()> {
        let Some(content) = &self.content else { return Ok(()) };
        write_new(path, |out| copy(content, 0..content.len(), out))
    }

    /// Creates a deleted file again, with the time of modification that it had.
    pub(super) fn make_again(&self, vault: &Vault) -> Result<()> {
        let path = &self.file.path;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .map_err(|err| Error::writing(err, "the folder of the session", folder))?;
        }
        self.write_new(path)?;
        if let Some(modified) = vault.version(&self.from, self.number)?.modified {
            // Agents sort sessions by this time. An error is ignored: the content is restored
            // anyway.
            let file = regular::open_with(fs::OpenOptions::new().append(true), path);
            file.and_then(|file| file.set_modified(SystemTime::from(modified))).ok();
        }
        Ok(())
    }
}

/// Whether two files have the same content.
fn is_same(one: &FileSource, other: &FileSource) -> Result<bool> {
    Ok(one.len() == other.len() && first_difference(one, other)? == one.len())
}

/// The splice that turns `before` into `after`.
pub(super) fn difference(before: &FileSource, after: &FileSource) -> Result<Splice> {
    let start = first_difference(before, after)?;
    let with = exactly(after, start..after.len())?.into_owned().into_boxed_slice();
    Ok(Splice { span: Span { start, end: before.len() }, with })
}

/// The number of bytes that are equal at the beginning of both files.
fn first_difference(before: &FileSource, after: &FileSource) -> Result<u64> {
    let shorter = before.len().min(after.len());
    let mut start = 0;
    while start < shorter {
        let end = shorter.min(start + CHUNK);
        let one = exactly(before, start..end)?;
        let other = exactly(after, start..end)?;
        let same = one.iter().zip(&*other).take_while(|(one, other)| one == other).count() as u64;
        start += same;
        if start < end {
            break;
        }
    }
    Ok(start)
}
