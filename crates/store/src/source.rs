//! Files whose ranges are read on request.
//!
//! # Absent
//!
//! Memory maps: if an agent truncates a file that is mapped, the process that reads it is killed.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use epitome_model::{ReadFailure, Source};

pub use epitome_formats::splice::{CHUNK, Spliced, copy, each_chunk, exactly, failure_of, if_read};

use crate::regular;
use crate::step::{DiskStep, step};
use epitome_error::{Error, ErrorKind, Result};

/// A file whose ranges are read on request. Its length stays what it was when the file was opened:
/// what an agent appends later is not visible.
#[derive(Debug)]
pub struct FileSource {
    file: Handle,
    len: u64,
    path: PathBuf,
    failure: Mutex<Option<Error>>,
}

impl FileSource {
    /// Opens `path` for reading.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotAFile`, `NoPermission` or `Unreadable` if the file cannot be opened.
    pub fn open(path: &Path) -> Result<FileSource> {
        let file = regular::open(path).map_err(|err| Error::reading(err, "the file", path))?;
        FileSource::new(file, path)
    }

    /// Reads from an open file. Errors name `path`.
    ///
    /// # Errors
    ///
    /// `NotAFile` if it is not a regular file; `Unreadable` if the system does not return its
    /// length.
    pub fn new(file: File, path: &Path) -> Result<FileSource> {
        let meta = file.metadata().map_err(|err| Error::reading(err, "the file", path))?;
        regular::check(&meta, path)?;
        let len = meta.len();
        let path = path.to_owned();
        Ok(FileSource { file: Handle::new(file), len, path, failure: Mutex::new(None) })
    }

    /// The first error of a read, if there was one: bytes that were read after it are not to be
    /// trusted.
    pub fn failure(&self) -> Option<Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The path that was given when the file was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The metadata that the open file has now.
    pub fn metadata(&self) -> io::Result<fs::Metadata> {
        self.file.metadata()
    }

    /// The bytes in this range of the file as it is now, even beyond the length that it had when it
    /// was opened. They are fewer if the file is shorter.
    pub fn read_now(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap_or(0)];
        step(DiskStep::Read)?;
        let mut got = 0;
        while got < bytes.len() {
            match self.file.read_at(&mut bytes[got..], range.start + got as u64) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                Err(err) => return Err(err),
            }
        }
        bytes.truncate(got);
        Ok(bytes)
    }

    fn remember(&self, err: Error) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(err);
    }
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        let end = range.end.min(self.len);
        let want = end.saturating_sub(range.start);
        let Ok(want) = usize::try_from(want) else {
            self.remember(Error::new(ErrorKind::Unreadable, "too long to read").at(&self.path));
            return Cow::Borrowed(&[]);
        };
        let mut bytes = Vec::new();
        if want > 0 {
            match self.read_now(range.start..end) {
                Ok(got) => bytes = got,
                Err(err) => self.remember(Error::reading(err, "the file", &self.path)),
            }
            if bytes.len() < want {
                self.remember(shorter(&self.path));
            }
        }
        Cow::Owned(bytes)
    }

    fn read_failure(&self) -> Option<ReadFailure> {
        self.failure().map(|err| Arc::new(err) as ReadFailure)
    }
}

fn shorter(path: &Path) -> Error {
    Error::new(ErrorKind::Changed, "the file became shorter while it was read").at(path)
}

/// An open file that is read at offsets: without changing its position, if the system supports
/// that.
#[cfg(unix)]
#[derive(Debug)]
struct Handle(File);

#[cfg(unix)]
impl Handle {
    fn new(file: File) -> Handle {
        Handle(file)
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.0, into, at)
    }

    fn metadata(&self) -> io::Result<fs::Metadata> {
        self.0.metadata()
    }
}

#[cfg(not(unix))]
#[derive(Debug)]
struct Handle(Mutex<File>);

#[cfg(not(unix))]
impl Handle {
    fn new(file: File) -> Handle {
        Handle(Mutex::new(file))
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        use std::io::{Read, Seek, SeekFrom};

        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(at))?;
        file.read(into)
    }

    fn metadata(&self) -> io::Result<fs::Metadata> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).metadata()
    }
}
