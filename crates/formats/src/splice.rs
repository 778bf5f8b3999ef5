//! A source with replacements of bytes laid over it, and reads that fail if bytes are missing.

use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;

use epitome_error::{Error, ErrorKind, Result};
use epitome_model::{ReadFailure, Source, Span, Splice};

/// Bytes per read when a source is read from one end to the other.
pub const CHUNK: u64 = 1 << 20;

/// A source with some ranges replaced by other bytes. Nothing is copied until it is read.
///
/// ```
/// use epitome_formats::Spliced;
/// use epitome_model::{Source, Span, Splice};
///
/// let base: &[u8] = b"one two three";
/// let two = Splice { span: Span { start: 4, end: 7 }, with: b"2".as_slice().into() };
/// let spliced = Spliced::new(&base, vec![two])?;
/// assert_eq!(&*spliced.read(0..spliced.len()), b"one 2 three");
/// # Ok::<(), epitome_error::Error>(())
/// ```
pub struct Spliced<'a> {
    base: Base<'a>,
    splices: Vec<Splice>,
    /// The position of each splice's bytes in the new source.
    starts: Vec<u64>,
    len: u64,
}

/// The source that splices are laid over.
enum Base<'a> {
    Borrowed(&'a dyn Source),
    // The box has no lifetime `'a`, so that a `Spliced` may be dropped after the value that it
    // borrows from.
    Owned(Box<dyn Source + Send>),
}

impl Base<'_> {
    fn source(&self) -> &dyn Source {
        match self {
            Base::Borrowed(source) => *source,
            Base::Owned(source) => &**source,
        }
    }
}

impl<'a> Spliced<'a> {
    /// Lays `splices` over `base`. Sorts them by position first; those at the same position keep
    /// their order.
    ///
    /// # Errors
    ///
    /// `Refused` if two splices overlap, or if one exceeds the end of the base.
    pub fn new(base: &'a dyn Source, splices: Vec<Splice>) -> Result<Spliced<'a>> {
        Spliced::over(Base::Borrowed(base), splices)
    }

    /// Like [`new`](Spliced::new), but owns its base.
    ///
    /// # Errors
    ///
    /// The same as of [`new`](Spliced::new).
    pub fn with_owned_base(
        base: impl Source + Send + 'static,
        splices: Vec<Splice>,
    ) -> Result<Spliced<'a>> {
        Spliced::over(Base::Owned(Box::new(base)), splices)
    }

    fn over(base: Base<'a>, mut splices: Vec<Splice>) -> Result<Spliced<'a>> {
        let base_len = base.source().len();
        splices.sort_by_key(|splice| (splice.span.start, splice.span.end));
        let mut starts = Vec::with_capacity(splices.len());
        let mut from = 0;
        let mut len = 0;
        for splice in &splices {
            let Span { start, end } = splice.span;
            if start < from || end < start || end > base_len {
                let what = "changes to a file overlap or reach past its end";
                return Err(Error::new(ErrorKind::Refused, what));
            }
            len += start - from;
            starts.push(len);
            len += splice.with.len() as u64;
            from = end;
        }
        len += base_len - from;
        Ok(Spliced { base, splices, starts, len })
    }

    /// The splices, sorted by position in the base.
    pub fn splices(&self) -> &[Splice] {
        &self.splices
    }

    /// The position of each splice's bytes in this source: `starts[n]` belongs to `splices()[n]`.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// The splices, sorted by position in the base, without the base.
    pub fn into_splices(self) -> Vec<Splice> {
        self.splices
    }

    /// Applies more splices to this source; their positions are positions in this source. Returns
    /// one set of splices with the same base as this one.
    ///
    /// # Errors
    ///
    /// `Refused` as by [`new`](Spliced::new).
    pub fn with_more(self, more: Vec<Splice>) -> Result<Spliced<'a>> {
        let over = Spliced::new(&self, more)?;
        let mut joined = Joined { at: 0, pending: Vec::new(), splices: Vec::new() };
        let mut from = 0;
        for Splice { span, with } in over.splices() {
            self.runs(from..span.start, &mut joined);
            joined.pending.extend_from_slice(with);
            from = span.end;
        }
        self.runs(from..self.len, &mut joined);
        drop(over);
        let end = self.base.source().len();
        joined.keep(end..end);
        Spliced::over(self.base, joined.splices)
    }

    /// The range of the base that is at `span` of this source. `None` if the bytes at `span` are
    /// not one unchanged range of the base, or if `span` goes beyond the end of this source.
    pub fn span_in_base(&self, span: Span) -> Option<Span> {
        // The place of an empty span is found by the byte after it or the byte before it.
        let probes = [Some(span.start), span.start.checked_sub(1).filter(|_| span.is_empty())];
        probes.into_iter().flatten().find_map(|probe| {
            let Run::Base { range } = (probe < self.len).then(|| self.run_at(probe))? else {
                return None;
            };
            let start = range.start + (span.start - probe);
            let end = start + span.len();
            (end <= range.end).then_some(Span { start, end })
        })
    }

    /// Writes the whole source, a mebibyte at a time.
    ///
    /// # Errors
    ///
    /// The error of `out`; the error of the base if a read of it fails; `Changed` if the base
    /// returns fewer bytes than its length without an error.
    pub fn copy_to(&self, out: &mut dyn Write) -> Result<()> {
        copy(self, 0..self.len, out)
    }

    /// Adds a range of this source to `joined`: its bytes from the base as kept ranges, and the
    /// bytes of splices as new bytes.
    fn runs(&self, range: Range<u64>, joined: &mut Joined) {
        let mut at = range.start;
        while at < range.end {
            match self.run_at(at) {
                Run::Base { range: base } => {
                    let want = (base.end - base.start).min(range.end - at);
                    joined.keep(base.start..base.start + want);
                    at += want;
                }
                Run::With { idx, from, end } => {
                    let want = (end - at).min(range.end - at);
                    let bytes = &self.splices[idx].with[from..from + usize_of(want)];
                    joined.pending.extend_from_slice(bytes);
                    at += want;
                }
            }
        }
    }

    /// The run of bytes that begins at `at`: a part of the base or of a splice. `at` must be before
    /// the end.
    fn run_at(&self, at: u64) -> Run {
        // The last splice that begins at or before `at`. If several begin at the same position, all
        // of them but the last are empty.
        let idx = self.starts.partition_point(|&start| start <= at);
        let next = self.starts.get(idx).copied().unwrap_or(self.len);
        let Some(idx) = idx.checked_sub(1) else {
            return Run::Base { range: at..next };
        };
        let start = self.starts[idx];
        let with = &self.splices[idx].with;
        let inside = at - start;
        if inside < with.len() as u64 {
            return Run::With { idx, from: usize_of(inside), end: start + with.len() as u64 };
        }
        let from = self.splices[idx].span.end + (inside - with.len() as u64);
        Run::Base { range: from..from + (next - at) }
    }
}

/// Makes splices from ranges of a base that are kept, in their order, and from the new bytes
/// between these ranges.
struct Joined {
    /// The end in the base of the range that was kept last.
    at: u64,
    /// The new bytes after that range. They replace the base up to the next range that is kept.
    pending: Vec<u8>,
    splices: Vec<Splice>,
}

impl Joined {
    /// Keeps a range of the base, after the ranges that were kept before.
    fn keep(&mut self, range: Range<u64>) {
        if range.start > self.at || !self.pending.is_empty() {
            let span = Span { start: self.at, end: range.start };
            let with = std::mem::take(&mut self.pending).into();
            self.splices.push(Splice { span, with });
        }
        self.at = range.end;
    }
}

/// Bytes of a spliced source that are next to each other in the base or in a splice.
enum Run {
    /// A range of the base.
    Base { range: Range<u64> },
    /// The bytes of splice `idx` from the offset `from` on; they end at `end` in the new source.
    With { idx: usize, from: usize, end: u64 },
}

impl Source for Spliced<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        let end = range.end.min(self.len);
        let mut at = range.start;
        let mut joined = Vec::new();
        while at < end {
            let (bytes, want) = match self.run_at(at) {
                Run::Base { range } => {
                    let want = (range.end - range.start).min(end - at);
                    (self.base.source().read(range.start..range.start + want), want)
                }
                Run::With { idx, from, end: stop } => {
                    let want = (stop - at).min(end - at);
                    let to = from + usize_of(want);
                    (Cow::Borrowed(&self.splices[idx].with[from..to]), want)
                }
            };
            let got = bytes.len() as u64;
            if joined.is_empty() && (got < want || at + got == end) {
                return bytes;
            }
            joined.extend_from_slice(&bytes);
            if got < want {
                break;
            }
            at += got;
        }
        Cow::Owned(joined)
    }

    fn read_failure(&self) -> Option<ReadFailure> {
        self.base.source().read_failure()
    }
}

/// Writes a range of a source, a mebibyte at a time.
pub fn copy(source: &dyn Source, range: Range<u64>, out: &mut dyn Write) -> Result<()> {
    each_chunk(source, range, |bytes| out.write_all(bytes).map_err(Error::from))
}

/// Passes a range of a source to `take`, a mebibyte at a time.
pub fn each_chunk(
    source: &dyn Source,
    range: Range<u64>,
    mut take: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut at = range.start;
    while at < range.end {
        let end = range.end.min(at + CHUNK);
        take(&exactly(source, at..end)?)?;
        at = end;
    }
    Ok(())
}

/// The error of the first read of `source` that failed; `None` if none failed.
pub fn failure_of<S: Source + ?Sized>(source: &S) -> Option<Error> {
    let failure = source.read_failure()?;
    Some(match failure.downcast_ref::<Error>() {
        Some(err) => err.clone(),
        None => Error::new(ErrorKind::Unreadable, "cannot read the session").because(failure),
    })
}

/// Returns `made`, which was computed from `source`, unless a read of `source` failed.
///
/// # Errors
///
/// The error of a read of `source` that failed; otherwise the error in `made`.
pub fn if_read<S: Source + ?Sized, T>(source: &S, made: Result<T>) -> Result<T> {
    failure_of(source).map_or(made, Err)
}

/// The bytes of `range`, all of them.
///
/// # Errors
///
/// The error of `source` if the read failed; `Changed` if it returns fewer bytes without an error.
pub fn exactly(source: &dyn Source, range: Range<u64>) -> Result<Cow<'_, [u8]>> {
    let want = range.end.saturating_sub(range.start);
    let bytes = source.read(range);
    if bytes.len() as u64 == want {
        return Ok(bytes);
    }
    Err(failure_of(source).unwrap_or_else(|| {
        Error::new(ErrorKind::Changed, "the file became shorter while it was read")
    }))
}

fn usize_of(len: u64) -> usize {
    usize::try_from(len).expect("an offset into bytes in memory")
}
