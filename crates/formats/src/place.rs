//! Converts ranges of a line into spans and texts of its source. A range counts from the beginning
//! of the line, a span from the beginning of the source.
//!
//! In readers, `at` is the [`RecordBytes`] of the current record, and `place` is the range of one
//! value in it.

use std::ops::Range;

use epitome_api::arguments::{self, Rule};
use epitome_model::{Block, Call, Entry, FieldRemainder, HiddenField, Span, Text, decode};

use crate::Line;
use crate::fields::Found;

/// A line and its position in a source.
pub struct RecordBytes<'a> {
    /// The bytes of the line.
    pub line: &'a [u8],
    /// The offset of the line in the source.
    pub base: u64,
}

impl<'a> RecordBytes<'a> {
    /// The bytes of a line and its offset.
    pub fn from_line(line: &Line<'a>) -> RecordBytes<'a> {
        RecordBytes { line: line.bytes, base: line.record.span.start }
    }

    /// The span in the source of a range of the line.
    pub fn span(&self, range: &Range<usize>) -> Span {
        Span { start: self.base + range.start as u64, end: self.base + range.end as u64 }
    }

    /// The decoded text of the string literal at a range.
    pub fn text(&self, range: &Range<usize>) -> Box<str> {
        decode(&self.line[range.clone()]).into()
    }

    /// The decoded text of the string literal at a span of the source.
    pub fn text_at(&self, span: Span) -> Box<str> {
        self.text(&((span.start - self.base) as usize..(span.end - self.base) as usize))
    }

    /// The first text of an entry in this line; `None` if the entry has no such text.
    pub fn first_text(&self, entry: &Entry) -> Option<Box<str>> {
        let span = entry.blocks.iter().find_map(|block| match block {
            Block::Text(text) => text.span(),
            _ => None,
        })?;
        Some(self.text_at(span))
    }

    /// The decoded text of the string literal at a range; `None` if there is no range.
    pub fn maybe(&self, range: Option<&Range<usize>>) -> Option<Box<str>> {
        range.map(|range| self.text(range))
    }

    /// The string literal at a range, as a [`Text`] that refers to it.
    pub fn source(&self, range: &Range<usize>) -> Text {
        Text::Source(self.span(range))
    }

    /// The raw bytes of a value; `None` if the value is missing. The bytes of a string include the
    /// quotes.
    pub fn literal(&self, found: &Found) -> Option<&'a [u8]> {
        found.as_ref().map(|range| &self.line[range.clone()])
    }

    /// A value that no model sees, as a hidden field; `None` if the value is missing.
    pub fn hidden(
        &self,
        name: &'static str,
        found: &Found,
        left: FieldRemainder,
    ) -> Option<HiddenField> {
        found.as_ref().map(|range| HiddenField { name, value: self.span(range), left })
    }

    /// A call of one of an agent's tools, classified by the table `tools`. `place` is the range of
    /// the arguments.
    pub fn call(&self, tools: &[Rule], id: Box<str>, name: Box<str>, place: &Range<usize>) -> Call {
        let classified = arguments::classify(tools, &name, self.line, place, self.base);
        classified.into_call(id, name, self.span(place))
    }
}
