//! The string literals in a text, in order, and whether the rest of the text is JSON.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr2};

/// A literal in a text, quotes included.
pub(crate) struct Literal {
    pub(crate) range: Range<usize>,
    /// Whether a colon follows the literal.
    pub(crate) is_key: bool,
}

/// Iterates over the string literals of JSON text.
pub(crate) struct Literals<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Whether something was found that is not JSON: a byte between the strings that JSON cannot
    /// have there, or a string without an end.
    pub(crate) broken: bool,
}

impl<'a> Literals<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Literals<'a> {
        let at = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        Literals { bytes, at, broken: false }
    }
}

impl Iterator for Literals<'_> {
    type Item = Literal;

    fn next(&mut self) -> Option<Literal> {
        let rest = &self.bytes[self.at..];
        let gap = memchr(b'"', rest).unwrap_or(rest.len());
        self.broken |= rest[..gap].iter().any(|&byte| !STRUCTURE[usize::from(byte)]);
        if gap == rest.len() {
            self.at = self.bytes.len();
            return None;
        }
        let start = self.at + gap;
        let Some(end) = end_of(self.bytes, start) else {
            // The string has no end, so that the caller must search the line as text, too.
            self.broken = true;
            self.at = self.bytes.len();
            return None;
        };
        self.at = end;
        let next = self.bytes[end..].iter().find(|byte| !byte.is_ascii_whitespace());
        Some(Literal { range: start..end, is_key: next == Some(&b':') })
    }
}

fn end_of(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        let found = at + memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[found] == b'"' {
            return Some(found + 1);
        }
        at = found + 2;
    }
}

/// The bytes that may be between the strings of JSON.
const STRUCTURE: [bool; 256] = {
    let mut table = [false; 256];
    let set = b"{}[]:, \t\r\n0123456789+-.eEtrufalsn";
    let mut idx = 0;
    while idx < set.len() {
        table[set[idx] as usize] = true;
        idx += 1;
    }
    table
};

/// Bytes as a text of the same length: bytes that are not UTF-8 become control characters.
pub(crate) fn as_text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '\u{1a}'));
    }
    Cow::Owned(text)
}

/// Whether a text is a JSON object or array, or consists of lines that each are one, and contains a
/// string. Other texts are searched as plain text.
pub(crate) fn is_json(text: &str) -> bool {
    if !opens(text) || !text.contains('"') {
        return false;
    }
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    is_whole(text) || lines.all(|line| opens(line) && is_whole(line))
}

fn opens(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

fn is_whole(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_found_in_anything() {
        let cases: &[(&str, &[&str], bool)] = &[
            (
                r#"{"a": ["b\"", {"c" : 1.5e3, "d":null}]}"#,
                &["\"a\":", r#""b\"""#, "\"c\":", "\"d\":"],
                false,
            ),
            (r#"  "key": "value","#, &["\"key\":", "\"value\""], false),
            (r#"PASS="x" {"a":"open"#, &["\"x\"", "\"a\":"], true),
            (r#"{"a":"b\"#, &["\"a\":"], true),
            ("{}", &[], false),
        ];
        for (text, expect, broken) in cases {
            let mut literals = Literals::new(text.as_bytes());
            let found: Vec<String> = literals
                .by_ref()
                .map(|it| format!("{}{}", &text[it.range], if it.is_key { ":" } else { "" }))
                .collect();
            assert_eq!(
                (found, literals.broken),
                (expect.iter().map(|it| (*it).to_owned()).collect(), *broken),
                "{text}"
            );
        }
    }

    #[test]
    fn json_is_told_from_text() {
        let json = [r#"{"a":1}"#, "[\"x\"]\n", "{\"a\":1}\n\n{\"b\":2}\n", "{\n \"a\": [\n1]}"];
        let text = ["", "x", "\"x\"", "{a}", "{\"a\":1} x", "{\"a\":1}\nx", "{}", "[1]"];
        assert!(json.iter().all(|it| is_json(it)));
        assert!(!text.iter().any(|it| is_json(it)));
    }
}
