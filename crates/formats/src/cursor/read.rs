//! Which of Cursor's shapes a source has, and what they have in common.

use epitome_model::{Item, Kept, Record, Source, Transcript, short};

use super::{chat, composer, text, transcript};
use crate::document::Document;
use crate::lines::record;
use crate::place::Place;
use crate::{Faults, Line, json};

/// Bytes that are enough to tell the shape.
const HEAD: u64 = 64 << 10;

/// Characters of a title.
const TITLE: usize = 80;

/// What Cursor wraps around what a user typed.
const QUERY: [&str; 2] = ["<user_query>", "</user_query>"];

/// What a source is.
enum Shape {
    /// Rows of `state.vscdb`.
    Composer,
    /// Rows of a `store.db`.
    Chat,
    /// A transcript of JSON lines.
    Transcript,
    /// A transcript as text.
    Text,
}

/// Rows as lines, or a transcript.
pub fn sniff(head: &[u8]) -> bool {
    shape(head).is_some()
}

/// Reads a conversation.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    match shape(&source.read(0..HEAD)) {
        Some(Shape::Composer) => composer::read(source, faults),
        Some(Shape::Chat) => chat::read(source, faults),
        Some(Shape::Text) => text::read(source, faults),
        Some(Shape::Transcript) | None => transcript::read(source, faults),
    }
}

fn shape(head: &[u8]) -> Option<Shape> {
    if head.starts_with(b"{\"key\":\"composerData:") {
        Some(Shape::Composer)
    } else if head.starts_with(b"{\"meta\":\"0\",") {
        Some(Shape::Chat)
    } else if transcript::begins(head) {
        Some(Shape::Transcript)
    } else {
        text::begins(head).then_some(Shape::Text)
    }
}

/// Gives a line of JSON to `each`, which pushes what it is. A line that is none is kept, as is one
/// of which nothing was pushed.
pub fn line(
    line: &Line<'_>,
    items: &mut Vec<Item>,
    faults: &mut dyn Faults,
    each: impl FnOnce(&Place<'_>, &Document<'_>, &mut Vec<Item>),
) {
    let before = items.len();
    if record(line, json::check, faults).is_some()
        && let Ok(document) = Document::parse(line.bytes)
    {
        each(&Place::of(line), &document, items);
    }
    if items.len() == before {
        items.push(kept(line.record));
    }
}

/// A record that says nothing.
pub fn kept(record: Record) -> Item {
    Item::Kept(Kept { record, copies: Vec::new() })
}

/// A title, from words that say something.
pub fn title(words: &str) -> Option<Box<str>> {
    let words = words.trim();
    (!words.is_empty()).then(|| short(words, TITLE).into())
}

/// What a user typed, if something was put around it.
pub fn typed(words: &str) -> Option<&str> {
    let [open, close] = QUERY;
    let (_, rest) = words.split_once(open)?;
    Some(rest.split_once(close).map_or(rest, |(typed, _)| typed))
}
