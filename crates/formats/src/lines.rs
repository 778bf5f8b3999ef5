//! Iterates over the lines of a source, with no more than the longest line in memory.

use std::borrow::Cow;

use epitome_json::Malformed;
use epitome_model::{Fault, Faults, Record, Source, Span};
use memchr::{memchr, memrchr};
use rayon::prelude::*;

const CHUNK: u64 = 1 << 20;

/// One line.
pub struct Line<'a> {
    /// Its position, without the line ending.
    pub record: Record,
    /// Its bytes, without line ending and byte order mark.
    pub bytes: &'a [u8],
    /// Whether it ends with a line feed. If not, it is the last line, and may still be being
    /// written.
    pub ended: bool,
}

/// Calls `each` for every line of `source`. Line endings are LF or CRLF; a byte order mark at the
/// beginning belongs to no line.
pub fn lines(source: &dyn Source, mut each: impl FnMut(Line<'_>)) {
    let mut line = 1;
    // The offset of the next line. Its bytes read so far are in `pending`.
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

/// Parses one line on its own.
pub trait ParseLine {
    /// A parsed line.
    type Record<'a>: Send;

    /// Parses a line that is not blank.
    fn parse<'a>(line: &Line<'a>) -> Result<Self::Record<'a>, Malformed>;
}

/// Parses the lines of `source`, as [`lines`] splits them, on all cores, and calls `each` with the
/// results in the order of the lines: the record, if there is one, and what is wrong with the line.
pub fn parsed_lines<P: ParseLine>(
    source: &dyn Source,
    mut each: impl FnMut(&Line<'_>, Option<P::Record<'_>>, Vec<Fault>),
) {
    /// Smaller batches are parsed on one core, which is done before another could start.
    const ENOUGH: usize = 64 << 10;
    let mut line = 1;
    let mut start = if source.read(0..3).as_ref() == b"\xef\xbb\xbf" { 3 } else { 0 };
    let mut at = start;
    // The bytes from `start` on that were read so far.
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
        let parsed: Vec<_> = if whole < ENOUGH {
            batch.iter().map(parsed::<P>).collect()
        } else {
            batch.par_iter().map(parsed::<P>).collect()
        };
        for (line, (record, faults)) in batch.iter().zip(parsed) {
            each(line, record, faults);
        }
        drop(batch);
        pending.drain(..whole);
        if is_last {
            return;
        }
    }
}

fn parsed<'a, P: ParseLine>(line: &Line<'a>) -> (Option<P::Record<'a>>, Vec<Fault>) {
    let mut faults = Vec::new();
    let record = record(line, P::parse, &mut faults);
    (record, faults)
}

/// Parses a line as a record; `None` if it is blank or malformed, which is reported, as are bytes
/// that are not UTF-8.
pub fn record<'a, R>(
    line: &Line<'a>,
    parse: impl FnOnce(&Line<'a>) -> Result<R, Malformed>,
    faults: &mut dyn Faults,
) -> Option<R> {
    if line.bytes.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    match parse(line) {
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

    struct Bytes;

    impl ParseLine for Bytes {
        type Record<'a> = &'a [u8];

        fn parse<'a>(line: &Line<'a>) -> Result<&'a [u8], Malformed> {
            Ok(line.bytes)
        }
    }

    fn collect_parsed(source: &dyn Source) -> Vec<(Record, Vec<u8>, bool)> {
        let mut all = Vec::new();
        parsed_lines::<Bytes>(source, |line, parsed, faults| {
            let is_blank = line.bytes.iter().all(u8::is_ascii_whitespace);
            assert_eq!((parsed, faults), ((!is_blank).then_some(line.bytes), Vec::new()));
            all.push((line.record, line.bytes.to_vec(), line.ended));
        });
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
        fn lines_do_not_depend_on_chunks(text in "[ab\r\n]{0,60}", size in 3_u64..9) {
            let whole = text.into_bytes();
            prop_assert_eq!(collect(&Stingy(whole.clone(), size)), collect(&whole));
        }

        /// Parsing in parallel yields the same lines in the same order.
        #[test]
        fn parsed_lines_are_the_lines(
            text in "(\u{feff})?[ab\r\n]{0,60}", times in 1_usize..4_000, size in 3_u64..9,
        ) {
            let long = text.repeat(times).into_bytes();
            prop_assert_eq!(collect_parsed(&long), collect(&long));
            let short = text.into_bytes();
            prop_assert_eq!(collect_parsed(&Stingy(short.clone(), size)), collect(&short));
        }
    }
}
