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

/// The text as it is, and as it is in JSON strings of each level, without quotes, and with and
/// without an escape of `/`. Spellings with other escapes, which have digits, are found by
/// [`find`].
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

/// The maximum length in bytes of a text as JSON.
pub(super) fn longest(text: &str) -> usize {
    text.chars().count() * LONGEST
}

/// Calls `each` with each occurrence of a text in JSON that has at least one escape with digits.
/// The characters may be escaped at different levels, because one program may have written the
/// inner JSON, and another one, which escapes more or less, the outer.
pub(super) fn find(text: &str, bytes: &[u8], mut each: impl FnMut(Span)) {
    for last_slash in memmem::find_iter(bytes, b"\\u") {
        // An escape with fewer of these backslashes is one of a lower level. Of several
        // occurrences, the longest is reported.
        let mut longest: Option<Span> = None;
        for level in 1..=LEVELS {
            let Some(at) = (last_slash + 1).checked_sub(slashes(level)) else { break };
            let Some((char, after)) = escape(bytes, at, level) else { continue };
            // The escape may be any character of the text that equals `char`. The characters before
            // it must have no digits.
            for (before, _) in text.match_indices(char) {
                let (head, rest) = text.split_at(before);
                let rest = &rest[char.len_utf8()..];
                if let Some(start) = start(head, bytes, at)
                    && let Some(end) = end(rest, bytes, after, |at, char| escapes(bytes, at, char))
                {
                    let found = Span { start: start as u64, end: end as u64 };
                    if longest.is_none_or(|it| it.end - it.start < end as u64 - start as u64) {
                        longest = Some(found);
                    }
                }
            }
        }
        longest.into_iter().for_each(&mut each);
    }
}

/// The offset at which the text `head` begins, if it ends at `at` and has no escapes with digits;
/// otherwise `None`. Of several offsets the first.
pub(super) fn start(head: &str, bytes: &[u8], at: usize) -> Option<usize> {
    let mut offsets = BTreeSet::from([at]);
    for char in head.chars().rev() {
        let spellings = spellings(&char.to_string());
        let mut before = BTreeSet::new();
        for at in offsets {
            let found = spellings.iter().filter(|it| bytes[..at].ends_with(it.as_bytes()));
            before.extend(found.map(|it| at - it.len()));
        }
        offsets = before;
    }
    offsets.first().copied()
}

/// The offset at which the text `rest` ends, if it begins at `at`; otherwise `None`. Of several
/// offsets the last. `coded` returns, for an offset and a character, the offsets at which the
/// character may end if it is written as a code there.
pub(super) fn end(
    rest: &str,
    bytes: &[u8],
    at: usize,
    coded: impl Fn(usize, char) -> Vec<usize>,
) -> Option<usize> {
    let mut offsets = BTreeSet::from([at]);
    for char in rest.chars() {
        let spellings = spellings(&char.to_string());
        let mut after = BTreeSet::new();
        for at in offsets {
            let found = spellings.iter().filter(|it| bytes[at..].starts_with(it.as_bytes()));
            after.extend(found.map(|it| at + it.len()));
            after.extend(coded(at, char));
        }
        offsets = after;
    }
    offsets.last().copied()
}

/// The offsets at which the escapes with digits end that begin at `at` and mean `char`.
fn escapes(bytes: &[u8], at: usize, char: char) -> Vec<usize> {
    let found = (1..=LEVELS).filter_map(|level| escape(bytes, at, level));
    found.filter(|(found, _)| *found == char).map(|(_, after)| after).collect()
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
    fn characters_may_be_escaped_at_different_levels() {
        let text = "pass\"word-\u{e9}-42x>9";
        for bytes in [
            // The inner JSON has only the escapes that it must have; the outer one is ASCII.
            r#"pass\\\"word-\u00e9-42x>9"#,
            r#"pass\\\\\\\"word-\u00e9-42x>9"#,
            r#"pass\\\"word-é-42x\u003e9"#,
            r#"pass\\\"word-\\u00e9-42x\u003e9"#,
        ] {
            let mut found = Vec::new();
            find(text, bytes.as_bytes(), |span| found.push(span));
            assert_eq!(found, [Span { start: 0, end: bytes.len() as u64 }], "{bytes}");
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
