//! The state of a chat: a Protocol Buffers message
//! (<https://protobuf.dev/programming-guides/encoding>), of which two fields are read.

use std::fmt::Write;

/// The content of a state.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The hashes of the messages, in the order in which they are sent (field 1).
    pub messages: Vec<Box<str>>,
    /// The working directories of the chat, as URLs (field 9).
    pub folders: Vec<Box<str>>,
    /// Whether the whole state could be parsed.
    pub is_whole: bool,
}

/// Parses a state in hexadecimal digits. Of a damaged state, the fields before the damage are
/// returned; none if the text is not pairs of such digits.
pub fn read(digits: &str) -> State {
    let mut state = State::default();
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
    let Some(bytes) = bytes else { return state };
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let Some((number, value)) = field(&mut rest) else { return state };
        match (number, value) {
            (1, Some(hash)) => state.messages.push(hexadecimal(hash)),
            (9, Some(folder)) => state.folders.push(String::from_utf8_lossy(folder).into()),
            _ => {}
        }
    }
    state.is_whole = true;
    state
}

/// The next field: its number, and its bytes if it is a field with a length. `None` if the field is
/// malformed.
fn field<'a>(rest: &mut &'a [u8]) -> Option<(u64, Option<&'a [u8]>)> {
    let tag = varint(rest)?;
    let value = match tag & 7 {
        0 => {
            varint(rest)?;
            None
        }
        1 => {
            take(rest, 8)?;
            None
        }
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            Some(take(rest, length)?)
        }
        5 => {
            take(rest, 4)?;
            None
        }
        _ => return None,
    };
    Some((tag >> 3, value))
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for at in 0..10 {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7f).checked_shl(7 * at)?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn byte(digits: &[u8]) -> Option<u8> {
    match digits {
        [high, low] => {
            let high = char::from(*high).to_digit(16)?;
            let low = char::from(*low).to_digit(16)?;
            u8::try_from(high * 16 + low).ok()
        }
        _ => None,
    }
}

fn hexadecimal(bytes: &[u8]) -> Box<str> {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(digits: &str, messages: &[&str], folders: &[&str], is_whole: bool) {
        let of = |list: &[&str]| list.iter().map(|it| (*it).into()).collect();
        let expect = State { messages: of(messages), folders: of(folders), is_whole };
        assert_eq!(read(digits), expect, "{digits}");
    }

    #[test]
    fn messages_and_folders_are_found_among_other_fields() {
        check("", &[], &[], true);
        // The fields of these states: 1 is a hash, 5 a message, 9 a text, 10 a number, 21 eight
        // bytes.
        check("0a02AB010a02cd02", &["ab01", "cd02"], &[], true);
        check("2a0408011002500a4a022f700a01ff", &["ff"], &["/p"], true);
        check("a901112233445566778812500a0100", &[], &[], false);
        check("a90111223344556677880a0100", &["00"], &[], true);
    }

    #[test]
    fn what_is_damaged_is_read_up_to_there() {
        check("0a0100 0a", &[], &[], false);
        check("0a01000", &[], &[], false);
        check("0a01000a7f00", &["00"], &[], false);
        check("0a010003", &["00"], &[], false);
        check("0a0100ffffffffffffffffffff01", &["00"], &[], false);
        check("0a01000affffffffffffffffff01", &["00"], &[], false);
    }
}
