//! Iterates over the lines of a source. No more than a chunk and the longest line are in memory.

use epitome_json::{Document, MalformedJson};
use epitome_model::{Fault, Faults, Record, Source, Span};
use memchr::memrchr;

const CHUNK: u64 = 1 << 20;

/// One line.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    /// The position of the line, without its line ending.
    pub record: Record,
    /// The bytes of the line, without its line ending and a byte order mark.
    pub bytes: &'a [u8],
    /// Whether the line ends with a line feed. Otherwise it is the last line, which may still be
    /// being written.
    pub ended: bool,
}

/// Calls `each` for every line of `source`. Line endings are LF or CRLF; a byte order mark at the
/// beginning belongs to no line.
pub fn lines(source: &dyn Source, mut each: impl FnMut(Line<'_>)) {
    batches(source, |batch| batch.iter().for_each(|line| each(*line)));
}

/// Like [`lines`], but passes several lines at a time: all lines that one read of the source
/// completes.
pub fn batches(source: &dyn Source, mut each: impl FnMut(&[Line<'_>])) {
    let mut line = 1;
    let mut start = if source.read(0..3).as_ref() == b"\xef\xbb\xbf" { 3 } else { 0 };
    let mut at = start;
    // The bytes from `start` on that have been read so far.
    let mut pending: Vec<u8> = Vec::new();
    loop {
        let chunk = source.read(at..at + CHUNK);
        at += chunk.len() as u64;
        let is_last = chunk.is_empty();
        let whole = match memrchr(b'\n', &chunk) {
            _ if is_last => pending.len(),
            Some(feed) => pending.len() + feed + 1,
            None => 0,
        };
        pending.extend_from_slice(&chunk);
        drop(chunk);
        let mut batch = Vec::new();
        for bytes in pending[..whole].split_inclusive(|&byte| byte == b'\n') {
            let (inner, ended) = match bytes.strip_suffix(b"\n") {
                Some(inner) => (inner, true),
                None => (bytes, false),
            };
            batch.push(line_of(line, start, inner, ended));
            start += bytes.len() as u64;
            line += 1;
        }
        each(&batch);
        pending.drain(..whole);
        if is_last {
            return;
        }
    }
}

/// The result of `read` for the first line that is not blank. `None` if all lines are blank, or if
/// `read` returns `None`.
pub fn first<T>(head: &[u8], read: impl Fn(&Line<'_>) -> Option<T>) -> Option<T> {
    let mut first = None;
    lines(&head, |line| {
        if first.is_none() && !line.bytes.trim_ascii().is_empty() {
            first = Some(read(&line));
        }
    });
    first.flatten()
}

/// A type that is parsed from one line.
pub trait ParseLine<'a>: Sized + Send {
    /// Parses a line that is not blank.
    fn parse_line(line: &Line<'a>) -> Result<Self, MalformedJson>;
}

impl<'a> ParseLine<'a> for Document<'a> {
    fn parse_line(line: &Line<'a>) -> Result<Document<'a>, MalformedJson> {
        Document::parse_at(line.bytes, line.record.span.start)
    }
}

/// Parses a line. `None` if the line is blank or malformed; a malformed line is reported, and so
/// are bytes that are not UTF-8.
pub fn record<'a, R: ParseLine<'a>>(line: &Line<'a>, faults: &mut dyn Faults) -> Option<R> {
    if line.bytes.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    match R::parse_line(line) {
        Ok(record) => {
            if std::str::from_utf8(line.bytes).is_err() {
                faults.report(Fault::not_utf8(line.record.line));
            }
            Some(record)
        }
        Err(bad) => {
            faults.report(bad.fault(line.record.line, line.ended));
            None
        }
    }
}

fn line_of(line: u64, start: u64, bytes: &[u8], ended: bool) -> Line<'_> {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let span = Span { start, end: start + bytes.len() as u64 };
    Line { record: Record { line, span }, bytes, ended }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::ops::Range;

    use proptest::prelude::*;

    use super::*;

    /// A source that returns a few bytes per read, as a slow file would.
    struct Stingy(Vec<u8>, u64);

    impl Source for Stingy {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
            self.0.read(range.start..range.end.min(range.start + self.1))
        }
    }

    fn collect(source: &dyn Source) -> Vec<(Record, Vec<u8>, bool)> {
        let mut all = Vec::new();
        lines(source, |line| all.push((line.record, line.bytes.to_vec(), line.ended)));
        all
    }

    #[test]
    fn line_ends_and_marks_belong_to_no_line() {
        let source = b"\xef\xbb\xbfa\r\n\nb".to_vec();
        let record = |line, start, end| Record { line, span: Span { start, end } };
        assert_eq!(
            collect(&source),
            [
                (record(1, 3, 4), b"a".to_vec(), true),
                (record(2, 6, 6), b"".to_vec(), true),
                (record(3, 7, 8), b"b".to_vec(), false),
            ]
        );
    }

    proptest! {
        /// The lines are the same however the bytes arrive.
        #[test]
        fn lines_do_not_depend_on_chunks(text in "(\u{feff})?[ab\r\n]{0,60}", size in 3_u64..9) {
            let whole = text.into_bytes();
            prop_assert_eq!(collect(&Stingy(whole.clone(), size)), collect(&whole));
        }
    }
}
