//! The title of a session.

use epitome_model::short;

/// Characters of a title.
const LENGTH: usize = 80;

/// A title made of a text: its beginning, on one line.
pub fn title(text: &str) -> Box<str> {
    short(text, LENGTH).into()
}
