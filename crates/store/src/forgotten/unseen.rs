//! Codes that show nothing: commands to a terminal, and characters without a width.

use super::escape::{char_at, slashes_at};
use super::json::LEVELS;

/// The most bytes that such codes take in a text together.
pub(super) const HIDDEN: usize = 4 << 10;

/// Whether a character has no width on a screen.
pub(super) fn is_unseen(char: char) -> bool {
    match char {
        '\t' | '\n' | '\r' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' => true,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{feff}' | '\u{e0000}'..='\u{e007f}' => true,
        _ => char.is_control(),
    }
}

/// The length of the terminal command that `rest` continues, without its escape character (ECMA-48,
/// section 5); 0 if `rest` continues none.
pub(super) fn command(rest: &[u8]) -> usize {
    match rest.first() {
        Some(b'[') => control_sequence(&rest[1..]).map_or(0, |len| len + 1),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => text_command(rest).unwrap_or(0),
        Some(b'(' | b')') if rest.get(1).is_some_and(u8::is_ascii_alphanumeric) => 2,
        Some(b'0'..=b'9' | b'=' | b'>') => 1,
        Some(_) | None => 0,
    }
}

/// The length of a control sequence: parameters, intermediate bytes and the final byte. `None` if
/// the final byte is missing or not valid.
pub(super) fn control_sequence(rest: &[u8]) -> Option<usize> {
    let rest = &rest[..rest.len().min(HIDDEN)];
    let last = rest.iter().position(|byte| !(b' '..=b'?').contains(byte))?;
    (b'@'..=b'~').contains(&rest[last]).then_some(last + 1)
}

/// The length of a command with a text, such as a link, up to the bell or the escape character and
/// backslash that end it. `None` if a line feed or a quote comes first.
fn text_command(rest: &[u8]) -> Option<usize> {
    let rest = &rest[..rest.len().min(HIDDEN)];
    let mut at = 1;
    loop {
        let (char, end) = match *rest.get(at)? {
            b'\n' | b'"' => return None,
            b'\\' => {
                let known = (1..=LEVELS).find_map(|level| char_at(rest, at, level));
                known.unwrap_or(('\\', at + slashes_at(rest, at)))
            }
            byte => (char::from(byte), at + 1),
        };
        match char {
            '\u{7}' => return Some(end),
            '\u{1b}' => return Some(end + slashes_at(rest, end)),
            _ => at = end,
        }
    }
}
