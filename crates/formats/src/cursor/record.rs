//! Records, as all of Cursor's shapes have them.

use epitome_model::{Item, Kept, Record};

use crate::document::Document;
use crate::lines::record;
use crate::place::Place;
use crate::{Faults, Line, json};

/// What Cursor wraps around what a user typed.
const QUERY: [&str; 2] = ["<user_query>", "</user_query>"];

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
    (!words.is_empty()).then(|| crate::title::title(words))
}

/// What a user typed, if something was put around it.
pub fn typed(words: &str) -> Option<&str> {
    let [open, close] = QUERY;
    let (_, rest) = words.split_once(open)?;
    Some(rest.split_once(close).map_or(rest, |(typed, _)| typed))
}
