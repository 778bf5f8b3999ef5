//! The log of a context: in memory, and in a journal if there is one.

use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::epitome::{Log, MessagePart, Origin, Speaker, add_line, header};
use epitome_formats::{Line, lines};
use epitome_model::{Record, Span};

use crate::Journal;

/// An append-only log: its bytes, the content parsed from them, and the journal that stores them.
#[derive(Default)]
pub struct ContextLog {
    bytes: Vec<u8>,
    log: Log,
    lines: u64,
    journal: Option<Box<dyn Journal>>,
    /// The offset of the first line that is gathered, to be written together with later lines.
    /// `None` if lines are written one by one.
    gathered: Option<usize>,
}

/// A line that is in memory but not yet in the journal.
pub struct Trial {
    start: usize,
    items: usize,
    sent: Vec<usize>,
}

impl Trial {
    /// The number of items before the line was added. The line of a plan only adds items; existing
    /// items do not change.
    pub fn items(&self) -> usize {
        self.items
    }

    /// The context before the line was added.
    pub fn sent(&self) -> &[usize] {
        &self.sent
    }
}

impl ContextLog {
    /// A new log without a journal.
    pub fn in_memory(id: &str, origin: &Origin) -> ContextLog {
        let mut log = ContextLog::default();
        log.bytes.extend_from_slice(header(id, origin).as_bytes());
        log.read_line(0);
        log
    }

    /// A new log in a journal that is empty.
    pub fn create(mut journal: Box<dyn Journal>, id: &str, origin: &Origin) -> Result<ContextLog> {
        let log = ContextLog::in_memory(id, origin);
        journal.append(&log.bytes)?;
        Ok(ContextLog { journal: Some(journal), ..log })
    }

    /// The log of a journal whose whole content is `bytes`.
    pub fn resume(bytes: Vec<u8>, journal: Box<dyn Journal>) -> Result<ContextLog> {
        let is_log = epitome_formats::sniff(&bytes).is_some_and(|it| it.name == "epitome");
        if !is_log {
            return Err(Error::new(ErrorKind::UnknownFormat, "not the log of a context"));
        }
        let mut log = ContextLog { bytes, journal: Some(journal), ..ContextLog::default() };
        log.read_all();
        // A later version may have lines that this version would misread.
        if log.log.transcript().head.version.as_deref() != Some("1") {
            return Err(Error::new(ErrorKind::NewerFormat, "a newer epitome wrote this log"));
        }
        if log.bytes.last() != Some(&b'\n') {
            log.end_line()?;
        }
        Ok(log)
    }

    /// A copy without a journal.
    pub fn copy(&self) -> ContextLog {
        let ContextLog { bytes, log, lines, .. } = self;
        let bytes = bytes.clone();
        let log = log.clone();
        ContextLog { bytes, log, lines: *lines, ..ContextLog::default() }
    }

    /// The bytes of the log.
    pub fn bytes(&self) -> &Vec<u8> {
        &self.bytes
    }

    /// The log, parsed.
    pub fn parsed(&self) -> &Log {
        &self.log
    }

    /// Adds an entry. Returns its item.
    pub fn push(&mut self, speaker: &Speaker<'_>, said: &[MessagePart<'_>]) -> Result<usize> {
        let item = self.log.transcript().items.len();
        let id = self.log.free_id().to_string();
        // A message may have hundreds of megabytes: it is copied only once.
        let start = self.bytes.len();
        add_line(&mut self.bytes, &id, speaker, said);
        self.write_and_read(start)?;
        Ok(item)
    }

    /// Appends a line that ends with a line feed. It is written to the journal first, unless lines
    /// are being gathered.
    pub fn append(&mut self, line: &[u8]) -> Result<()> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(line);
        self.write_and_read(start)
    }

    /// Writes the line that begins at `start` to the journal, unless lines are being gathered, and
    /// parses it.
    fn write_and_read(&mut self, start: usize) -> Result<()> {
        if self.gathered.is_none()
            && let Err(err) = self.write_from(start)
        {
            self.bytes.truncate(start);
            return Err(err);
        }
        self.read_line(start);
        Ok(())
    }

    /// Appends a line in memory only. The caller must then [keep](ContextLog::keep) or
    /// [discard](ContextLog::discard) the line.
    pub fn try_line(&mut self, line: &[u8]) -> Trial {
        let transcript = self.log.transcript();
        let items = transcript.items.len();
        let sent = transcript.context.clone();
        let trial = Trial { start: self.bytes.len(), items, sent };
        self.bytes.extend_from_slice(line);
        self.read_line(trial.start);
        trial
    }

    /// Writes the trial line to the journal, unless lines are being gathered. If that fails, the
    /// line is discarded.
    pub fn keep(&mut self, trial: Trial) -> Result<()> {
        match self.gathered.map_or_else(|| self.write_from(trial.start), |_| Ok(())) {
            Ok(()) => Ok(()),
            Err(err) => {
                self.discard(trial);
                Err(err)
            }
        }
    }

    /// Discards the trial line. All other lines are parsed again; this is rare.
    pub fn discard(&mut self, trial: Trial) {
        self.bytes.truncate(trial.start);
        self.read_all();
    }

    /// Begins to gather lines, which are then written together.
    pub fn gather(&mut self) {
        self.gathered.get_or_insert(self.bytes.len());
    }

    /// Writes the gathered lines with one call of the journal, which appends all of them or none.
    pub fn write_gathered(&mut self) -> Result<()> {
        self.gathered.take().map_or(Ok(()), |from| self.write_from(from))
    }

    /// Removes what was added after the first `len` bytes, and stops gathering. Nothing of what is
    /// removed may be in the journal.
    pub fn forget(&mut self, len: usize) {
        self.gathered = None;
        self.bytes.truncate(len);
        self.read_all();
    }

    /// Writes the bytes from `start` on to the journal.
    fn write_from(&mut self, start: usize) -> Result<()> {
        match &mut self.journal {
            Some(journal) => journal.append(&self.bytes[start..]),
            None => Ok(()),
        }
    }

    /// Returns once the whole log in the journal would survive a crash.
    pub fn flush(&self) -> Result<()> {
        self.journal.as_ref().map_or(Ok(()), |journal| journal.flush())
    }

    /// Parses all bytes again.
    fn read_all(&mut self) {
        let ContextLog { bytes, log, lines: n, .. } = self;
        (*log, *n) = (Log::default(), 0);
        lines(bytes, |line| {
            *n += 1;
            log.line(&line, &mut ());
        });
    }

    /// Ends an incomplete last line with a line feed, so that the next line begins after it. The
    /// incomplete line itself is ignored.
    fn end_line(&mut self) -> Result<()> {
        self.bytes.push(b'\n');
        self.write_from(self.bytes.len() - 1)
    }

    /// Parses the last line, which begins at `start`.
    fn read_line(&mut self, start: usize) {
        self.lines += 1;
        let line = &self.bytes[start..];
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let start = start as u64;
        let span = Span { start, end: start + text.len() as u64 };
        let record = Record { line: self.lines, span };
        self.log.line(&Line { record, bytes: text, ended: true }, &mut ());
    }
}

#[cfg(test)]
mod tests {
    use epitome_formats::find_format;
    use epitome_model::{Fault, Role};

    use super::*;
    use crate::journal::Nowhere;

    /// A stored log was compacted, which appended a line; messages were appended; and the restore
    /// removed the line.
    #[test]
    fn the_ids_of_a_log_that_became_shorter_do_not_repeat() {
        const COMPACTION: &str = "{\"type\":\"compaction\",\"edits\":[]}\n";
        let user = |log: &mut ContextLog| {
            let speaker = Speaker { role: Role::User, ..Speaker::default() };
            log.push(&speaker, &[MessagePart::text("Go on.")]).expect("memory");
        };
        let mut log = ContextLog::in_memory("a-chat", &Origin::default());
        user(&mut log);
        for _ in 0..3 {
            log.append(COMPACTION.as_bytes()).expect("memory");
        }
        user(&mut log);
        let text = String::from_utf8(log.bytes().clone()).expect("text");
        let restored = text.replace(COMPACTION, "").into_bytes();
        let mut log = ContextLog::resume(restored, Box::new(Nowhere)).expect("a log");
        for _ in 0..5 {
            user(&mut log);
        }
        let mut faults: Vec<Fault> = Vec::new();
        let format = find_format("epitome").expect("a format");
        let transcript = (format.read)(log.bytes(), &mut faults);
        assert_eq!(faults, []);
        let ids: Vec<&str> = transcript.entries().filter_map(|(_, it)| it.id.as_deref()).collect();
        assert_eq!(ids, ["1", "5", "6", "7", "8", "9", "10"]);
    }
}
