//! A text as JSON may spell it: any of its characters as an escape such as `\u002B`, also in JSON
//! inside of JSON.

use std::collections::BTreeSet;

use epitome_model::Span;
use memchr::memmem;

/// How many levels of JSON inside of JSON are searched.
const LEVELS: u32 = 3;
/// The longest spelling of a character in bytes: two escapes, each with the backslashes of the last
/// level, `u` and four digits.
const LONGEST: usize = 2 * (slashes(LEVELS) + 5);

/// The number of backslashes before the `u` of an escape, at a level of JSON inside of JSON.
const fn slashes(level: u32) -> usize {
    1 << (level - 1)
}

/// The text as it is and as in JSON strings on each level, without quotes and without escapes that
/// have digits: these are found by [`find`]. Some programs escape `/`.
pub(super) fn spellings(text: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::from([text.to_owned()]);
    for _ in 0..LEVELS {
        for spelled in all.clone() {
            let inner = in_strings(spelled, 1);
            all.insert(inner.replace('/', "\\/"));
            all.insert(inner);
        }
    }
    all
}

/// The most bytes that a text takes as JSON.
pub(super) fn longest(text: &str) -> usize {
    text.chars().count() * LONGEST
}

/// Calls `each` with each occurrence of a text in JSON that has at least one escape with digits.
pub(super) fn find(text: &str, bytes: &[u8], mut each: impl FnMut(Span)) {
    for last_slash in memmem::find_iter(bytes, b"\\u") {
        for level in 1..=LEVELS {
            let Some(at) = (last_slash + 1).checked_sub(slashes(level)) else { break };
            let Some((char, after)) = escape(bytes, at, level) else { continue };
            // The escape may be any character of the text that equals `char`. The characters before
            // it must have no digits.
            for (before, _) in text.match_indices(char) {
                let (head, rest) = text.split_at(before);
                let rest = &rest[char.len_utf8()..];
                if let Some(start) = start(head, bytes, at, level)
                    && let Some(end) = end(rest, bytes, after, level)
                {
                    each(Span { start: start as u64, end: end as u64 });
                }
            }
        }
    }
}

/// The offset at which the text `head` begins, if it ends at `at` and has no escapes with digits;
/// otherwise `None`.
fn start(head: &str, bytes: &[u8], mut at: usize, level: u32) -> Option<usize> {
    for char in head.chars().rev() {
        let before = &bytes[..at];
        // Two characters, a backslash and a slash, end like a slash that is escaped: the number of
        // backslashes tells them apart.
        let spelled = if char == '/' && ends_with_escaped_slash(before, level) {
            escaped_slash(level)
        } else {
            in_strings(char.to_string(), level)
        };
        at = before.strip_suffix(spelled.as_bytes())?.len();
    }
    Some(at)
}

fn ends_with_escaped_slash(bytes: &[u8], level: u32) -> bool {
    let Some(before) = bytes.strip_suffix(b"/") else { return false };
    let count = before.iter().rev().take_while(|byte| **byte == b'\\').count();
    // A backslash of the text itself takes twice as many backslashes as the escape of a slash.
    count % (2 * slashes(level)) == slashes(level)
}

/// The offset at which the text `rest` ends, if it begins at `at`; otherwise `None`.
fn end(rest: &str, bytes: &[u8], mut at: usize, level: u32) -> Option<usize> {
    for char in rest.chars() {
        if let Some((found, after)) = escape(bytes, at, level)
            && found == char
        {
            at = after;
            continue;
        }
        let spelled = if char == '/' && bytes[at..].starts_with(b"\\") {
            escaped_slash(level)
        } else {
            in_strings(char.to_string(), level)
        };
        if !bytes[at..].starts_with(spelled.as_bytes()) {
            return None;
        }
        at += spelled.len();
    }
    Some(at)
}

/// `\/`, which some programs write for a slash.
fn escaped_slash(level: u32) -> String {
    in_strings("\\/".to_owned(), level - 1)
}

/// A text as it is spelled in a JSON string that is in a JSON string, and so on, without quotes.
/// `levels` is the number of strings.
fn in_strings(mut text: String, levels: u32) -> String {
    for _ in 0..levels {
        let literal = serde_json::to_string(&text).unwrap_or_default();
        text = literal.get(1..literal.len().saturating_sub(1)).unwrap_or_default().to_owned();
    }
    text
}

/// The character that the escape at `at` means, and the offset at which the escape ends. A
/// character of two UTF-16 units has two escapes, which are read together.
fn escape(bytes: &[u8], at: usize, level: u32) -> Option<(char, usize)> {
    let (first, after) = unit(bytes, at, level)?;
    match char::decode_utf16([first]).next()? {
        Ok(char) => Some((char, after)),
        Err(_) => {
            let (second, after) = unit(bytes, after, level)?;
            let char = char::decode_utf16([first, second]).next()?.ok()?;
            Some((char, after))
        }
    }
}

fn unit(bytes: &[u8], at: usize, level: u32) -> Option<(u16, usize)> {
    let digits_at = at + slashes(level) + 1;
    let escape = bytes.get(at..digits_at + 4)?;
    let (mark, digits) = escape.split_at(slashes(level) + 1);
    let (u, slashes) = mark.split_last()?;
    if *u != b'u' || slashes.iter().any(|byte| *byte != b'\\') || digits[0] == b'+' {
        return None;
    }
    let digits = std::str::from_utf8(digits).ok()?;
    Some((u16::from_str_radix(digits, 16).ok()?, digits_at + 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_with_any_of_its_characters_escaped() {
        let cases = [
            (r"a\u002Bb", Some(0..8)),
            (r"xa\u002bbx", Some(1..9)),
            (r"\u0061+\u0062", Some(0..13)),
            (r"\\u0061+b", Some(0..9)),
            (r"\\\\u0061+b", Some(0..11)),
            ("a+b", None),
            (r"a\u002Cb", None),
            (r"a\u+02Bb", None),
            (r"a\u00", None),
        ];
        for (bytes, expect) in cases {
            let mut found = Vec::new();
            find("a+b", bytes.as_bytes(), |span| found.push(span.start..span.end));
            assert_eq!(found.pop(), expect, "{bytes}");
        }
    }

    #[test]
    fn quotes_slashes_and_characters_of_two_units_are_found() {
        let text = "\"/\\+\u{1f600}";
        for bytes in [
            r#"\"/\\\u002b😀"#,
            r#"\u0022\/\\+\uD83D\uDE00"#,
            r#"\\\"\\/\\\\\\u002b\\ud83d\\ude00"#,
        ] {
            let mut found = Vec::new();
            find(text, bytes.as_bytes(), |span| found.push(span));
            assert_eq!(found, [Span { start: 0, end: bytes.len() as u64 }], "{bytes}");
        }
    }
}
