//! Converts ranges of a line into spans and texts of its source.

use std::ops::Range;

use epitome_model::{Span, Text, decode};

use crate::Line;

/// A line and its position.
pub struct Place<'a> {
    /// Its bytes.
    pub line: &'a [u8],
    /// The offset of the line in the source.
    pub base: u64,
}

impl<'a> Place<'a> {
    /// The place of a line.
    pub fn of(line: &Line<'a>) -> Place<'a> {
        Place { line: line.bytes, base: line.record.span.start }
    }

    /// The span of a range.
    pub fn span(&self, range: &Range<usize>) -> Span {
        Span { start: self.base + range.start as u64, end: self.base + range.end as u64 }
    }

    /// The decoded text of a literal.
    pub fn text(&self, range: &Range<usize>) -> Box<str> {
        decode(&self.line[range.clone()]).into()
    }

    /// The decoded text of a literal that may be missing.
    pub fn maybe(&self, range: Option<&Range<usize>>) -> Option<Box<str>> {
        range.map(|range| self.text(range))
    }

    /// A literal as a text of the source.
    pub fn source(&self, range: &Range<usize>) -> Text {
        Text::Source(self.span(range))
    }
}
