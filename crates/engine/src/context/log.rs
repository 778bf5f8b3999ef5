//! The log of a context: in memory, and in a journal if it has one.

use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::epitome::{Log, Origin, Said, Speaker, add_line, header};
use epitome_formats::{Line, lines};
use epitome_model::{Record, Span};

use crate::Journal;

/// A log that is only ever added to.
#[derive(Default)]
pub struct ContextLog {
    bytes: Vec<u8>,
    log: Log,
    lines: u64,
    journal: Option<Box<dyn Journal>>,
    /// Where the lines begin that are written together, while they are gathered.
    gathered: Option<usize>,
}

/// A line that is in memory and not in the journal.
pub struct Trial {
    start: usize,
    items: usize,
    sent: Vec<usize>,
}

impl Trial {
    /// The number of items without the line. Lines only add items: each of them is what it was.
    pub fn items(&self) -> usize {
        self.items
    }

    /// The items that are sent without the line, in order.
    pub fn sent(&self) -> &[usize] {
        &self.sent
    }
}

impl ContextLog {
    /// A new log without a journal.
    pub fn in_memory(id: &str, origin: &Origin) -> ContextLog {
        let mut log = ContextLog::default();
        log.bytes.extend_from_slice(header(id, origin).as_bytes());
        log.take(0);
        log
    }

    /// A new log in a journal that is still empty.
    pub fn create(mut journal: Box<dyn Journal>, id: &str, origin: &Origin) -> Result<ContextLog> {
        let log = ContextLog::in_memory(id, origin);
        journal.append(&log.bytes)?;
        Ok(ContextLog { journal: Some(journal), ..log })
    }

    /// The log that a journal already holds: `bytes` is all of it.
    pub fn resume(bytes: Vec<u8>, journal: Box<dyn Journal>) -> Result<ContextLog> {
        let is_log = epitome_formats::sniff(&bytes).is_some_and(|it| it.name == "epitome");
        if !is_log {
            return Err(Error::new(ErrorKind::UnknownFormat, "not the log of a context"));
        }
        let mut log = ContextLog { bytes, journal: Some(journal), ..ContextLog::default() };
        log.read();
        // A later version may say things behind which this one cannot go on.
        if log.log.transcript().head.version.as_deref() != Some("1") {
            return Err(Error::new(ErrorKind::NewerFormat, "a newer epitome wrote this log"));
        }
        if log.bytes.last() != Some(&b'\n') {
            log.end_line()?;
        }
        Ok(log)
    }

    /// The same log without a journal.
    pub fn copy(&self) -> ContextLog {
        let ContextLog { bytes, log, lines, .. } = self;
        let (bytes, log) = (bytes.clone(), log.clone());
        ContextLog { bytes, log, lines: *lines, ..ContextLog::default() }
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

    /// Adds a line in memory alone: it is then [kept](ContextLog::keep) or
    /// [discarded](ContextLog::discard).
    pub fn try_line(&mut self, line: &[u8]) -> Trial {
        let transcript = self.log.transcript();
        let (items, sent) = (transcript.items.len(), transcript.context.clone());
        let trial = Trial { start: self.bytes.len(), items, sent };
        self.bytes.extend_from_slice(line);
        self.take(trial.start);
        trial
    }

    /// Writes the line that was tried. If it cannot be written, it is discarded.
    pub fn keep(&mut self, trial: Trial) -> Result<()> {
        match self.gathered.map_or_else(|| self.write_from(trial.start), |_| Ok(())) {
            Ok(()) => Ok(()),
            Err(err) => {
                self.discard(trial);
                Err(err)
            }
        }
    }

    /// Forgets the line that was tried. That is rare: the lines before it are read again.
    pub fn discard(&mut self, trial: Trial) {
        self.bytes.truncate(trial.start);
        self.read();
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

    /// Writes what is in memory from `start` on.
    fn write_from(&mut self, start: usize) -> Result<()> {
        match &mut self.journal {
            Some(journal) => journal.append(&self.bytes[start..]),
            None => Ok(()),
        }
    }

    /// Returns when all of it is in the journal for good.
    pub fn flush(&self) -> Result<()> {
        self.journal.as_ref().map_or(Ok(()), |journal| journal.flush())
    }

    /// Reads all bytes anew.
    fn read(&mut self) {
        let ContextLog { bytes, log, lines: n, .. } = self;
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
