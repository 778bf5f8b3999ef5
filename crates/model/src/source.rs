//! Where the bytes of a session are, and how a text in them is read.

use std::borrow::Cow;
use std::ops::Range;

use crate::nested::{decode, decode_owned};

/// The bytes of a stored session, wherever they are: memory, a file, a file with edits over it.
///
/// Readers and passes ask for the ranges that they need and hold none of them, so that memory
/// follows the number of records. An implementation that fails to read returns fewer bytes and
/// remembers the failure; its owner asks it afterwards and throws the result away.
pub trait Source: Sync {
    /// Length in bytes.
    fn len(&self) -> u64;

    /// The bytes of `range`, clipped to the length of the source.
    fn read(&self, range: Range<u64>) -> Cow<'_, [u8]>;

    /// Whether there are no bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes at `span`.
    fn at(&self, span: Span) -> Cow<'_, [u8]> {
        self.read(span.start..span.end)
    }
}

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

    /// Whether it covers nothing.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Whether `other` lies within this span.
    pub fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// A text of a transcript: where it stands in the source, or one that we made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// The span of a string literal, quotes included: of the record, or of JSON or a script that
    /// stands in a string of the record (see [`as_seen`](crate::as_seen)).
    Source(Span),
    /// A text that stands in no source.
    Made(Box<str>),
}

impl Text {
    /// The text itself. Bytes that are no text are shown as U+FFFD; they are never written back.
    pub fn read<'a>(&'a self, source: &'a dyn Source) -> Cow<'a, str> {
        match self {
            Text::Made(text) => Cow::Borrowed(text),
            Text::Source(span) => match source.at(*span) {
                Cow::Borrowed(literal) => decode(literal),
                Cow::Owned(literal) => Cow::Owned(decode_owned(literal)),
            },
        }
    }

    /// Where it stands, if it stands somewhere.
    pub fn span(&self) -> Option<Span> {
        match self {
            Text::Source(span) => Some(*span),
            Text::Made(_) => None,
        }
    }
}
