//! A text as URLs may spell it: any of its bytes as a code such as `%2F`, and spaces as `+`.

use epitome_model::Span;

/// The length of a code in bytes.
const CODE: usize = 3;

/// The maximum length in bytes of a text in a URL.
pub(super) fn longest(text: &str) -> usize {
    text.len() * CODE
}

/// Calls `each` with each occurrence of a text in a URL in which at least one byte is written as a
/// code.
pub(super) fn find(text: &str, bytes: &[u8], mut each: impl FnMut(Span)) {
    let text = text.as_bytes();
    for at in memchr::memchr_iter(b'%', bytes) {
        let Some(byte) = code(&bytes[at..]) else { continue };
        // The code may mean any byte of the text that equals `byte`. The bytes before it must be
        // written without codes.
        for before in memchr::memchr_iter(byte, text) {
            let Some(start) = at.checked_sub(before) else { continue };
            let head = bytes[start..at].iter().zip(text);
            if !head.into_iter().all(|(found, byte)| is_plain(*found, *byte)) {
                continue;
            }
            if let Some(end) = end(&text[before + 1..], bytes, at + CODE) {
                each(Span { start: start as u64, end: end as u64 });
            }
        }
    }
}

/// The offset at which the text `rest` ends, if it begins at `at`; otherwise `None`.
fn end(rest: &[u8], bytes: &[u8], mut at: usize) -> Option<usize> {
    for byte in rest {
        at += match bytes.get(at)? {
            _ if code(&bytes[at..]) == Some(*byte) => CODE,
            found if is_plain(*found, *byte) => 1,
            _ => return None,
        };
    }
    Some(at)
}

/// Whether the byte `found` of a URL means the byte `byte` of a text, without a code: the two are
/// equal, or it is `+` for a space.
fn is_plain(found: u8, byte: u8) -> bool {
    found == byte || byte == b' ' && found == b'+'
}

/// The byte that the code at the beginning of these bytes means.
fn code(bytes: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = bytes else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_with_any_of_its_bytes_in_codes() {
        let cases = [
            ("key=cl%C3%A9%20a/b&x", Some(4..18)),
            ("cl%c3%a9+a%2fb", Some(0..14)),
            ("%63%6C%c3%a9 %61/b", Some(0..18)),
            ("100% cl\u{e9} a/b", None),
            ("cl%C3%A8%20a/b", None),
            ("cl%C3%A9%20a", None),
            ("%A9%20a/b", None),
        ];
        for (bytes, expect) in cases {
            let mut found = Vec::new();
            find("cl\u{e9} a/b", bytes.as_bytes(), |span| found.push(span.start..span.end));
            assert_eq!(found.pop(), expect, "{bytes}");
        }
    }
}
