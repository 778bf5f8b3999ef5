//! Functions that several readers of Cursor's formats use.

use epitome_json::Document;
use epitome_model::{Faults, HiddenRecord, Item, Record};

use crate::Line;
use crate::lines::record;

/// The tags that Cursor puts around a text that the user typed.
const QUERY: [&str; 2] = ["<user_query>", "</user_query>"];

/// Parses a line of JSON and passes it to `each`, which pushes the items of the line. A malformed
/// line is kept as a hidden record, and so is a line for which `each` pushes nothing.
pub fn line(
    line: &Line<'_>,
    items: &mut Vec<Item>,
    faults: &mut dyn Faults,
    each: impl FnOnce(&Document<'_>, &mut Vec<Item>),
) {
    let before = items.len();
    if let Some(document) = record::<Document<'_>>(line, faults) {
        each(&document, items);
    }
    if items.len() == before {
        items.push(hidden_item(line.record));
    }
}

/// A record that no model sees.
pub fn hidden_item(record: Record) -> Item {
    Item::Hidden(HiddenRecord { record, hidden_fields: Vec::new() })
}

/// A title from a text; `None` if the text is blank.
pub fn title(words: &str) -> Option<Box<str>> {
    let words = words.trim();
    (!words.is_empty()).then(|| epitome_model::title(words))
}

/// The text that a user typed, which is between Cursor's tags; `None` if there are no such tags.
pub fn user_query(words: &str) -> Option<&str> {
    let [open, close] = QUERY;
    let (_, rest) = words.split_once(open)?;
    Some(rest.split_once(close).map_or(rest, |(typed, _)| typed))
}
