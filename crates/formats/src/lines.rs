//! The lines of a source, without holding more of it than the longest line.

use std::borrow::Cow;

use epitome_model::{Record, Source, Span};
use memchr::memchr;

use crate::json::Malformed;
use crate::{Fault, Faults};

const CHUNK: u64 = 1 << 20;

/// One line.
pub struct Line<'a> {
    /// Where it stands, line end left out.
    pub record: Record,
    /// Its bytes, line end and byte order mark left out.
    pub bytes: &'a [u8],
    /// Whether a line feed ends it: if not, it is the last one, and it may still be being written.
    pub ended: bool,
}

/// Calls `each` for every line of `source`. Line ends are LF or CRLF; a byte order mark at the
/// beginning belongs to no line.
pub fn lines(source: &dyn Source, mut each: impl FnMut(Line<'_>)) {
    let mut line = 1;
    // Where the next line begins. What has been fetched of it so far is in `pending`.
    let mut start = if source.read(0..3).as_ref() == b"\xef\xbb\xbf" { 3 } else { 0 };
    let mut pending: Vec<u8> = Vec::new();
    let mut at = start;
    while at < source.len() {
        let chunk: Cow<'_, [u8]> = source.read(at..at + CHUNK);
        if chunk.is_empty() {
            break;
        }
        at += chunk.len() as u64;
        let mut rest: &[u8] = &chunk;
        while let Some(feed) = memchr(b'\n', rest) {
            let (bytes, after) = (&rest[..feed], &rest[feed + 1..]);
            let whole = if pending.is_empty() {
                bytes
            } else {
                pending.extend_from_slice(bytes);
                &pending
            };
            let next = start + whole.len() as u64 + 1;
            each(line_of(line, start, whole, true));
            pending.clear();
            start = next;
            line += 1;
            rest = after;
        }
        pending.extend_from_slice(rest);
    }
    if !pending.is_empty() {
        each(line_of(line, start, &pending, false));
    }
}

/// A line as a record, and nothing if it is blank or no record; the faults are told.
pub fn record<R>(
    line: &Line<'_>,
    parse: fn(&[u8]) -> Result<R, Malformed>,
    faults: &mut dyn Faults,
) -> Option<R> {
    if line.bytes.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    match parse(line.bytes) {
        Ok(record) => {
            if std::str::from_utf8(line.bytes).is_err() {
                faults.report(Fault::not_utf8(line.record.line));
            }
            Some(record)
        }
        Err(bad) => {
            faults.report(Fault::no_record(line.record.line, &bad, line.ended));
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
    use std::ops::Range;

    use proptest::prelude::*;

    use super::*;

    /// Gives out a few bytes at a time, as a slow file would.
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
        /// However the bytes arrive, the lines are the same.
        #[test]
        fn lines_do_not_depend_on_chunks(text in "[ab\r\n]{0,60}", size in 3_u64..9) {
            let whole = text.into_bytes();
            prop_assert_eq!(collect(&Stingy(whole.clone(), size)), collect(&whole));
        }
    }
}
