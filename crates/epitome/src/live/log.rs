//! The log of a running agent's context, in a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use epitome_engine::{Context, Journal, Setup};
use epitome_model::Source;

use crate::error::{Error, ErrorKind, Result};
use crate::regular;
use crate::source::FileSource;

/// Creates a context with a new log at `path`. On Unix, only the owner can read the file.
///
/// # Errors
///
/// `Exists` if the file exists; `Disk` or `NoPermission` if it cannot be created.
pub fn create(path: &Path, setup: Setup) -> Result<Context> {
    Context::create(Box::new(LogFile::create(path)?), setup)
}

/// Opens the log at `path` and resumes its context, in the state in which it was left.
///
/// # Errors
///
/// The errors of reading the file; `Disk` or `NoPermission` if it cannot be opened for writing;
/// `UnknownFormat` if it is not a log; `NewerFormat` if a newer version of epitome wrote it.
pub fn open(path: &Path, setup: Setup) -> Result<Context> {
    let source = FileSource::open(path)?;
    let bytes = source.read(0..Source::len(&source)).into_owned();
    if let Some(err) = source.failure() {
        return Err(err);
    }
    let log = LogFile::open(path, bytes.len() as u64)?;
    Context::resume(bytes, Box::new(log), setup).map_err(|err| err.at(path))
}

/// A file as the journal of a context.
struct LogFile {
    file: File,
    path: PathBuf,
    /// The length of the file.
    len: u64,
}

impl LogFile {
    fn create(path: &Path) -> Result<LogFile> {
        let failed = |err: io::Error| match err.kind() {
            io::ErrorKind::AlreadyExists => {
                Error::new(ErrorKind::Exists, "there is a log of this name").at(path)
            }
            _ => Error::writing(err, "the log", path),
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            private_folder(folder).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = regular::open_with(&mut options, path).map_err(failed)?;
        Ok(LogFile { file, path: path.to_owned(), len: 0 })
    }

    fn open(path: &Path, len: u64) -> Result<LogFile> {
        let file = regular::open_with(OpenOptions::new().append(true), path);
        let file = file.map_err(|err| Error::writing(err, "the log", path))?;
        Ok(LogFile { file, path: path.to_owned(), len })
    }
}

impl Journal for LogFile {
    fn append(&mut self, lines: &[u8]) -> Result<()> {
        if let Err(err) = self.file.write_all(lines) {
            // After a failed write the incomplete line is removed: the next record must begin on
            // its own line.
            let cut = self.file.set_len(self.len);
            let _ = cut.and_then(|()| self.file.seek(SeekFrom::End(0)));
            return Err(Error::writing(err, "the log", &self.path));
        }
        self.len += lines.len() as u64;
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.file.sync_data().map_err(|err| Error::writing(err, "the log", &self.path))
    }
}

fn private_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
