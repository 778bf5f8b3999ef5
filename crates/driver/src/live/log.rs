//! The log of a context: in memory, and on disk if it has a file.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use epitome_formats::epitome::{Log, Said, Speaker, add_line, header};
use epitome_formats::{Line, lines};
use epitome_model::{Record, Span};

use crate::error::{Error, ErrorKind, Result};
use crate::regular;
use crate::source::FileSource;

/// A log that is only ever added to.
pub struct LogFile {
    bytes: Vec<u8>,
    log: Log,
    lines: u64,
    file: Option<(File, PathBuf)>,
    /// Bytes that the file has.
    on_disk: u64,
    /// Where the lines begin that are written together, while they are gathered.
    gathered: Option<usize>,
}

impl LogFile {
    /// A log without a file.
    pub fn in_memory(id: &str) -> LogFile {
        let mut log = LogFile {
            bytes: Vec::new(),
            log: Log::default(),
            lines: 0,
            file: None,
            on_disk: 0,
            gathered: None,
        };
        log.bytes.extend_from_slice(header(id, None).as_bytes());
        log.take(0);
        log
    }

    /// A new log in a file that only this user may read.
    pub fn create(path: &Path, id: &str) -> Result<LogFile> {
        let failed = |err| Error::writing(err, "the log", path);
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            private_folder(folder).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = regular::open_with(&mut options, path).map_err(failed)?;
        let mut log = LogFile::in_memory(id);
        file.write_all(&log.bytes).map_err(failed)?;
        (log.file, log.on_disk) = (Some((file, path.to_owned())), log.bytes.len() as u64);
        Ok(log)
    }

    /// A log that is there.
    pub fn open(path: &Path) -> Result<LogFile> {
        let source = FileSource::open(path)?;
        let bytes = epitome_model::Source::read(&source, 0..epitome_model::Source::len(&source));
        let bytes = bytes.into_owned();
        if let Some(err) = source.failure() {
            return Err(err);
        }
        let is_log = epitome_formats::sniff(&bytes).is_some_and(|it| it.name == "epitome");
        if !is_log {
            return Err(
                Error::new(ErrorKind::UnknownFormat, "this is no log of a context").at(path)
            );
        }
        let mut log = LogFile {
            bytes,
            log: Log::default(),
            lines: 0,
            file: None,
            on_disk: 0,
            gathered: None,
        };
        log.read();
        // A later version may say things behind which this one cannot go on.
        if log.log.transcript().head.version.as_deref() != Some("1") {
            return Err(
                Error::new(ErrorKind::NewerFormat, "a newer epitome wrote this log").at(path)
            );
        }
        let file = regular::open_with(OpenOptions::new().append(true), path);
        let file = file.map_err(|err| Error::writing(err, "the log", path))?;
        (log.file, log.on_disk) = (Some((file, path.to_owned())), log.bytes.len() as u64);
        if log.bytes.last() != Some(&b'\n') {
            log.end_line()?;
        }
        Ok(log)
    }

    /// All bytes.
    pub fn bytes(&self) -> &Vec<u8> {
        &self.bytes
    }

    /// What they say.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Adds an entry. Returns its item.
    pub fn push(&mut self, speaker: &Speaker<'_>, said: &[Said<'_>]) -> Result<usize> {
        // Items only become more, so that no number is given twice.
        let item = self.log.transcript().items.len();
        // What is said may be hundreds of megabytes: it is copied once.
        let start = self.bytes.len();
        add_line(&mut self.bytes, &item.to_string(), speaker, said);
        self.added(start)?;
        Ok(item)
    }

    /// Adds a line, line feed included: on disk first, unless lines are gathered.
    pub fn append(&mut self, line: &[u8]) -> Result<()> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(line);
        self.added(start)
    }

    /// Takes the line that begins at `start`, when it is on disk or others are gathered.
    fn added(&mut self, start: usize) -> Result<()> {
        if self.gathered.is_none()
            && let Err(err) = self.write_from(start)
        {
            self.bytes.truncate(start);
            return Err(err);
        }
        self.take(start);
        Ok(())
    }

    /// Gathers what is added from now on.
    pub fn gather(&mut self) {
        self.gathered.get_or_insert(self.bytes.len());
    }

    /// Writes what was gathered at once: a program that is killed leaves all of it or nothing.
    pub fn write_gathered(&mut self) -> Result<()> {
        self.gathered.take().map_or(Ok(()), |from| self.write_from(from))
    }

    /// Forgets what was added behind so many bytes, and is not on disk.
    pub fn forget(&mut self, len: usize) {
        self.gathered = None;
        self.bytes.truncate(len);
        self.read();
    }

    /// Writes what stands in memory from `start` on.
    fn write_from(&mut self, start: usize) -> Result<()> {
        let bytes = &self.bytes[start..];
        let Some((file, path)) = &mut self.file else { return Ok(()) };
        if let Err(err) = file.write_all(bytes) {
            // Half a line is nobody's: what is added next begins on a line of its own.
            let _ = file.set_len(self.on_disk).and_then(|()| file.seek(SeekFrom::End(0)));
            return Err(Error::writing(err, "the log", path));
        }
        self.on_disk += bytes.len() as u64;
        Ok(())
    }

    /// Waits until all of it is on disk.
    pub fn flush(&self) -> Result<()> {
        match &self.file {
            Some((file, path)) => {
                file.sync_data().map_err(|err| Error::writing(err, "the log", path))
            }
            None => Ok(()),
        }
    }

    /// Reads all bytes anew.
    fn read(&mut self) {
        let LogFile { bytes, log, lines: n, .. } = self;
        (*log, *n) = (Log::default(), 0);
        lines(bytes, |line| {
            *n += 1;
            log.line(&line, &mut ());
        });
    }

    /// A torn last line becomes one that is whole and says nothing.
    fn end_line(&mut self) -> Result<()> {
        self.bytes.push(b'\n');
        self.write_from(self.bytes.len() - 1)
    }

    fn take(&mut self, start: usize) {
        self.lines += 1;
        let line = &self.bytes[start..];
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let start = start as u64;
        let span = Span { start, end: start + text.len() as u64 };
        let record = Record { line: self.lines, span };
        self.log.line(&Line { record, bytes: text, ended: true }, &mut ());
    }
}

fn private_folder(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
impl LogFile {
    /// A log on a disk that is full.
    pub fn on_a_full_disk() -> LogFile {
        let path = Path::new("/dev/full");
        let file = OpenOptions::new().append(true).open(path).expect("a system that has it");
        LogFile { file: Some((file, path.to_owned())), ..LogFile::in_memory("full") }
    }
}
