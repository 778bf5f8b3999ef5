//! Access to the bytes of a session and to the texts in them.

use std::borrow::Cow;
use std::error::Error;
use std::ops::Range;
use std::sync::Arc;

use crate::nested::{decode, decode_owned};

/// The bytes of a session: in memory, in a file, or in another source with changes to it.
///
/// Readers and passes read the ranges that they need and keep none of them, so that memory grows
/// with the number of records and not with their length. An implementation that fails to read
/// returns fewer bytes and remembers the [failure](Source::read_failure); its owner checks for a
/// failure afterwards and discards the result.
pub trait Source: Sync {
    /// Length in bytes.
    fn len(&self) -> u64;

    /// The bytes of `range`, clipped to the length of the source.
    fn read(&self, range: Range<u64>) -> Cow<'_, [u8]>;

    /// The first failure to read, if there was one. What was computed from bytes that could not be
    /// read must be discarded. Bytes in memory never fail.
    fn read_failure(&self) -> Option<ReadFailure> {
        None
    }

    /// Whether the source has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes at `span`.
    fn at(&self, span: Span) -> Cow<'_, [u8]> {
        self.read(span.start..span.end)
    }
}

/// Why bytes could not be read.
pub type ReadFailure = Arc<dyn Error + Send + Sync>;

impl Source for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        let end = usize::try_from(range.end).unwrap_or(usize::MAX).min(<[u8]>::len(self));
        let start = usize::try_from(range.start).unwrap_or(usize::MAX).min(end);
        Cow::Borrowed(&self[start..end])
    }
}

impl Source for Vec<u8> {
    fn len(&self) -> u64 {
        Vec::len(self) as u64
    }

    fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        let end = usize::try_from(range.end).unwrap_or(usize::MAX).min(Vec::len(self));
        let start = usize::try_from(range.start).unwrap_or(usize::MAX).min(end);
        Cow::Borrowed(&self[start..end])
    }
}

impl<S: Source> Source for &S {
    fn len(&self) -> u64 {
        (**self).len()
    }

    fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        (**self).read(range)
    }

    fn read_failure(&self) -> Option<ReadFailure> {
        (**self).read_failure()
    }
}

/// A range of bytes in a [`Source`], counted from its first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

impl Span {
    /// Length in bytes.
    pub fn len(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether the span covers no byte.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Whether `other` lies within this span.
    pub fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// A text of a transcript: the position of a literal in the source, or the text itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// The span of a string literal, quotes included. The literal may be a value of the record, or
    /// be inside JSON or a script that is a string of the record (see
    /// [`literal_as_text`](crate::literal_as_text)).
    Source(Span),
    /// A text that is no literal of the source: epitome made it, or took it out of a longer text.
    Owned(Box<str>),
}

impl Text {
    /// The text itself. Bytes that are not UTF-8 become U+FFFD.
    pub fn read<'a>(&'a self, source: &'a dyn Source) -> Cow<'a, str> {
        match self {
            Text::Owned(text) => Cow::Borrowed(text),
            Text::Source(span) => match source.at(*span) {
                Cow::Borrowed(literal) => decode(literal),
                Cow::Owned(literal) => Cow::Owned(decode_owned(literal)),
            },
        }
    }

    /// The beginning of the text: what the first `bytes` bytes of its literal, or up to six fewer,
    /// contain. `None` for a [`Text::Owned`], and for a literal inside another string.
    pub fn beginning(&self, source: &dyn Source, bytes: usize) -> Option<String> {
        let span = self.span()?;
        let mut literal = source.read(span.start..span.end.min(span.start + bytes as u64));
        if literal.first() != Some(&b'"') {
            return None;
        }
        let mut end = 1;
        // No escape is cut in two, because the loop ends before the last six bytes and an escape
        // has at most six. Between the two escapes of a surrogate pair it may end: then the first
        // escape is decoded to U+FFFD.
        while end + 6 < literal.len() {
            end += match (literal[end], literal[end + 1]) {
                (b'\\', b'u') => 6,
                (b'\\', _) => 2,
                _ => 1,
            };
        }
        let literal = literal.to_mut();
        literal.truncate(end);
        literal.push(b'"');
        Some(decode(literal).into_owned())
    }

    /// The position of the text's literal in the source; `None` for a [`Text::Owned`].
    pub fn span(&self) -> Option<Span> {
        match self {
            Text::Source(span) => Some(*span),
            Text::Owned(_) => None,
        }
    }
}
