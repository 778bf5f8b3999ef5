//! Messages that two JSON parsers may understand in different ways. The results in them are not
//! shortened when they are new.

use epitome_json::{Cursor, Kind, MalformedJson};
use memchr::memmem;

/// The maximum nesting at which keys are checked for duplicates: enough for the parts of a result.
const LEVELS: u8 = 8;

/// Whether an object in the outer [`LEVELS`] levels of a message has a key twice, a string in it
/// has half of a surrogate pair, or the message is not valid JSON.
pub(crate) fn is_ambiguous(message: &[u8]) -> bool {
    has_half_of_a_pair(message)
        || !matches!(has_other_keys(&mut Cursor::new(message), LEVELS), Ok(true))
}

/// Whether no object in the next value has the same key twice. Only the outer `levels` levels of
/// arrays and objects are checked.
fn has_other_keys(cursor: &mut Cursor<'_>, levels: u8) -> Result<bool, MalformedJson> {
    let mut are_other = true;
    match cursor.kind() {
        Kind::Object if levels > 0 => {
            let mut keys = Vec::new();
            cursor.object(|value, key| {
                are_other &= !keys.contains(&key);
                keys.push(key);
                are_other &= has_other_keys(value, levels - 1)?;
                Ok(())
            })?;
        }
        Kind::Array if levels > 0 => {
            cursor.array(|element| {
                are_other &= has_other_keys(element, levels - 1)?;
                Ok(())
            })?;
        }
        Kind::Object | Kind::Array | Kind::String | Kind::Other => {
            cursor.skip()?;
        }
    }
    Ok(are_other)
}

/// Whether a JSON string in the message has one half of a surrogate pair without the other half, so
/// that it cannot be decoded. May also return true if the message is not valid JSON.
fn has_half_of_a_pair(message: &[u8]) -> bool {
    // Few messages have the escape of a surrogate at all, so few are parsed here.
    let mut escapes = memmem::find_iter(message, b"\\u").map(|at| &message[at + 2..]);
    let has_surrogate = escapes
        .any(|digits| matches!(digits, [b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F', ..]));
    has_surrogate && serde_json::from_slice::<serde_json::Value>(message).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_twice_and_half_of_a_pair_are_ambiguous() {
        for (message, expect) in [
            (r#"{"role":"user","content":"a"}"#, false),
            (r#"{"role":"user","content":"a","content":"b"}"#, true),
            (r#"{"content":[{"a":1},{"a":2}]}"#, false),
            (r#"{"content":[{"b":1},{"a":2,"a":2}]}"#, true),
            (r#"{"content":"\ud83e\udd16 \\ud800"}"#, false),
            (r#"{"content":"\ud83e x"}"#, true),
            (r#"{"content":"\uDC00"}"#, true),
        ] {
            assert_eq!(is_ambiguous(message.as_bytes()), expect, "{message}");
        }
    }
}
