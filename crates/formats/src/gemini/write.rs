//! Turns edits into replacements of bytes.

use epitome_json::write::{self, BlockRemainder, OwnReplacement, Shapes};
use epitome_model::{
    At, Block, Edit, Image, Output, Part, Source, Span, Splice, Transcript, Verb, encode,
};

use crate::Unwritable;

const SHAPES: Shapes =
    Shapes { output: write::literal, block: part, thinking: BlockRemainder::Nothing };

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
    write::splices_with(transcript, source, edits, &SHAPES, &|edit| own(transcript, edit))
}

/// A text as a part of a turn.
pub fn part(text: &str) -> String {
    format!(r#"{{"text":{}}}"#, encode(text))
}

/// The replacements for an edit that puts a text in place of a result with pictures or of one
/// picture of a result; `None` for any other edit. Google's API accepts no text in place of a
/// picture: the picture is removed, and the new text is written into the text of the result.
fn own(transcript: &Transcript, edit: &Edit) -> Option<Vec<OwnReplacement>> {
    let (At::Block { item, block } | At::Part { item, block, .. }) = edit.at else { return None };
    let entry = transcript.items.get(item)?.entry()?;
    let Block::Output(output) = entry.blocks.get(block)? else { return None };
    let Verb::Replace(words) = &edit.verb else { return None };
    let mut pictures = pictures(output).peekable();
    match edit.at {
        At::Block { .. } => {
            pictures.peek()?;
            let words = OwnReplacement::Value(output.whole, encode(words));
            Some(std::iter::once(words).chain(pictures.map(remove)).collect())
        }
        At::Part { part, .. } => {
            let Part::Image(image) = output.parts.get(part)? else { return None };
            // The pictures of a result come after its text, so the text that replaces a picture is
            // added at the end.
            let end = output.whole.end.checked_sub(1)?;
            let literal = encode(&format!("\n{words}"));
            let inner = literal[1..literal.len() - 1].to_owned();
            Some(vec![OwnReplacement::Value(Span { start: end, end }, inner), remove(image)])
        }
        At::Field { .. } | At::Items { .. } | At::HiddenField { .. } => None,
    }
}

fn pictures(output: &Output) -> impl Iterator<Item = &Image> {
    output.parts.iter().filter_map(|part| match part {
        Part::Image(image) => Some(image),
        Part::Text(_) | Part::Opaque(_) => None,
    })
}

fn remove(image: &Image) -> OwnReplacement {
    OwnReplacement::Child(image.whole)
}
