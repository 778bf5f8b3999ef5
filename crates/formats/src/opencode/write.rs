//! Turns edits into replacements of bytes.

use std::ops::Range;

use epitome_json::write::{self, BlockRemainder, OwnReplacement, Shapes};
use epitome_model::{At, Block, Edit, Part, Source, Span, Splice, Transcript, Verb, encode};

use super::raw;
use crate::Unwritable;

/// A text that replaces content is written as a string: an edit replaces members of a part, and
/// never the whole part.
const SHAPES: Shapes = Shapes { output: encode, block: encode, thinking: BlockRemainder::Nothing };

/// The replacements that apply `edits`.
///
/// # Errors
///
/// [`Unwritable`] if an edit cannot be written into the records.
pub fn write(
    transcript: &Transcript,
    source: &dyn Source,
    edits: &[Edit],
) -> Result<Vec<(Splice, At)>, Unwritable> {
    write::splices_with(transcript, source, edits, &SHAPES, &|edit| own(transcript, source, edit))
}

/// The replacements for edits that must be written in OpenCode's own form: a part must stay a part,
/// with the members that its kind requires. `None` for an edit that needs no special form, or that
/// cannot be written in this form.
fn own(transcript: &Transcript, source: &dyn Source, edit: &Edit) -> Option<Vec<OwnReplacement>> {
    let (At::Block { item, block } | At::Part { item, block, .. }) = edit.at else { return None };
    let entry = transcript.items.get(item)?.entry()?;
    let record = Record::read(source, entry.record.span)?;
    match (entry.blocks.get(block)?, edit.at, &edit.verb) {
        (Block::Thinking(_), At::Block { .. }, Verb::Drop) => Some(record.without_reasoning()),
        (Block::Image(_), At::Block { .. }, Verb::Replace(words)) => record.as_text(words),
        (Block::Output(output), At::Block { .. }, Verb::Replace(words)) => {
            let mut pieces = vec![OwnReplacement::Value(output.whole, encode(words))];
            let state = record.part.state.as_ref();
            let files = state.and_then(|state| state.attachments.whole.as_ref());
            pieces.extend(files.map(|files| OwnReplacement::Child(record.span(files))));
            Some(pieces).filter(|_| !output.whole.is_empty())
        }
        (Block::Output(output), At::Part { part, .. }, Verb::Replace(words)) => {
            let Part::Image(image) = output.parts.get(part)? else { return None };
            // The pictures of a result come after its text, so the text that replaces a picture is
            // added at the end.
            let end = output.whole.end.checked_sub(1)?;
            let literal = encode(&format!("\n{words}"));
            let inner = literal[1..literal.len() - 1].to_owned();
            let words = OwnReplacement::Value(Span { start: end, end }, inner);
            Some(vec![words, OwnReplacement::Child(image.whole)])
        }
        _ => None,
    }
}

/// A part, and the offset of its record in the source.
struct Record {
    from: u64,
    part: raw::Part,
}

impl Record {
    fn read(source: &dyn Source, span: Span) -> Option<Record> {
        Some(Record { from: span.start, part: raw::part_of(&source.at(span))? })
    }

    fn span(&self, place: &Range<usize>) -> Span {
        Span { start: self.from + place.start as u64, end: self.from + place.end as u64 }
    }

    /// Empties reasoning: OpenCode does not send reasoning without text and signature.
    fn without_reasoning(&self) -> Vec<OwnReplacement> {
        let words = self.part.text.iter();
        let words = words.map(|place| OwnReplacement::Value(self.span(place), "\"\"".to_owned()));
        let signature =
            self.part.metadata.iter().map(|it| OwnReplacement::Child(self.span(&it.whole)));
        words.chain(signature).collect()
    }

    /// Turns a picture into a text of the same role. The file name of the picture stays in the part
    /// and is not sent. `None` if the part has no type or no URL.
    fn as_text(&self, words: &str) -> Option<Vec<OwnReplacement>> {
        let kind = self.part.kind.as_ref()?;
        let url = self.part.url.as_ref()?;
        let text = OwnReplacement::Member(self.span(url), format!("\"text\":{}", encode(words)));
        Some(vec![OwnReplacement::Value(self.span(kind), "\"text\"".to_owned()), text])
    }
}
