//! The title of a session.

use crate::short;

/// Maximum length of a title in characters.
const LENGTH: usize = 80;

/// The title for a text: its beginning, on one line.
pub fn title(text: &str) -> Box<str> {
    short(text, LENGTH).into()
}
