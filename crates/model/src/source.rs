//! Where the bytes of a session are, and how a text in them is read.

use std::borrow::Cow;
use std::ops::Range;

use crate::nested;

/// The bytes of a stored session, wherever they are: memory, a file, a file with edits over it.
///
/// Readers and passes ask for the ranges that they need and hold none of them, so that memory
/// follows the number of records. An implementation that fails to read returns fewer bytes and
/// remembers the failure; its owner asks it afterwards and throws the result away.
pub trait Source: Sync {
    /// Length in bytes.
    fn len(&self) -> u64;

    /// The bytes of `range`, clipped to the length of the source.
    fn read(&self, range: Range<u64>) -> Cow<'_, [u8]>;

    /// Whether there are no bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes at `span`.
    fn at(&self, span: Span) -> Cow<'_, [u8]> {
        self.read(span.start..span.end)
    }
}

impl Source for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        let end = usize::try_from(range.end).unwrap_or(usize::MAX).min(<[u8]>::len(self));
        let start = usize::try_from(range.start).unwrap_or(usize::MAX).min(end);
        Cow::Borrowed(&self[start..end])
    }
}

impl Source for Vec<u8> {
    fn len(&self) -> u64 {
        Vec::len(self) as u64
    }

    fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        let end = usize::try_from(range.end).unwrap_or(usize::MAX).min(Vec::len(self));
        let start = usize::try_from(range.start).unwrap_or(usize::MAX).min(end);
        Cow::Borrowed(&self[start..end])
    }
}

impl<S: Source> Source for &S {
    fn len(&self) -> u64 {
        (**self).len()
    }

    fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        (**self).read(range)
    }
}

/// A range of bytes in a [`Source`], counted from its first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

impl Span {
    /// Length in bytes.
    pub fn len(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether it covers nothing.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Whether `other` lies within this span.
    pub fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// A text of a transcript: where it stands in the source, or one that we made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// The span of a string literal, quotes included: of the record, or of JSON or a script that
    /// stands in a string of the record (see [`as_seen`](crate::as_seen)).
    Source(Span),
    /// A text that stands in no source.
    Made(Box<str>),
}

impl Text {
    /// The text itself. Bytes that are no text are shown as U+FFFD; they are never written back.
    pub fn read<'a>(&'a self, source: &'a dyn Source) -> Cow<'a, str> {
        match self {
            Text::Made(text) => Cow::Borrowed(text),
            Text::Source(span) => match source.at(*span) {
                Cow::Borrowed(literal) => decode(literal),
                Cow::Owned(literal) => Cow::Owned(decode_owned(literal)),
            },
        }
    }

    /// Where it stands, if it stands somewhere.
    pub fn span(&self) -> Option<Span> {
        match self {
            Text::Source(span) => Some(*span),
            Text::Made(_) => None,
        }
    }
}

/// The text of a string literal (quotes included), also of one that stands within a string.
///
/// Escapes of lone surrogates and bytes that are not UTF-8 become U+FFFD, as the agents themselves
/// read them. Anything that is no string literal is returned as it stands.
pub fn decode(literal: &[u8]) -> Cow<'_, str> {
    if nested::is_nested(literal) {
        return Cow::Owned(nested::decode_nested(literal));
    }
    let Some(inner) = literal.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) else {
        return String::from_utf8_lossy(literal);
    };
    if !inner.contains(&b'\\') {
        return String::from_utf8_lossy(inner);
    }
    if let Some(text) = std::str::from_utf8(inner).ok().and_then(unescaped) {
        return Cow::Owned(text);
    }
    let literal = String::from_utf8_lossy(literal);
    match serde_json::from_str::<String>(&literal) {
        Ok(text) => Cow::Owned(text),
        Err(_) => Cow::Owned(
            serde_json::from_str(&without_lone_surrogates(&literal))
                .unwrap_or_else(|_| literal.into_owned()),
        ),
    }
}

/// The same of a literal that is not needed any more: one without escapes is not copied.
fn decode_owned(mut literal: Vec<u8>) -> String {
    let is_plain =
        matches!(literal.as_slice(), [b'"', inner @ .., b'"'] if !inner.contains(&b'\\'));
    if !is_plain {
        return decode(&literal).into_owned();
    }
    literal.pop();
    literal.remove(0);
    String::from_utf8(literal)
        .unwrap_or_else(|err| String::from_utf8_lossy(err.as_bytes()).into_owned())
}

/// What stands between the quotes of a string literal, without its escapes; nothing if one of them
/// is none of JSON or is half of a surrogate pair, or if a control character stands there.
fn unescaped(inner: &str) -> Option<String> {
    if has_bare(inner) {
        return None;
    }
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let escape = rest.as_bytes().get(at + 1)?;
        let (c, len) = match escape {
            b'"' | b'\\' | b'/' => (char::from(*escape), 2),
            b'b' => ('\u{8}', 2),
            b'f' => ('\u{c}', 2),
            b'n' => ('\n', 2),
            b'r' => ('\r', 2),
            b't' => ('\t', 2),
            b'u' => {
                let unit = unit(rest, at)?;
                match char::from_u32(unit.into()) {
                    Some(c) => (c, 6),
                    None => {
                        let pair = [unit, unit_behind(rest, at + 6)?];
                        (char::decode_utf16(pair).next()?.ok()?, 12)
                    }
                }
            }
            _ => return None,
        };
        text.push(c);
        rest = &rest[at + len..];
    }
    text.push_str(rest);
    Some(text)
}

/// Whether a control character or a quote stands in a literal without an escape.
fn has_bare(inner: &str) -> bool {
    let mut escaped = false;
    inner.bytes().any(|byte| {
        let is_bare = byte < b' ' || byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_bare
    })
}

/// The four hexadecimal digits behind `\\u` at `at`.
fn unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at + 2..at + 6)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

/// The same, if there is such an escape at `at`.
fn unit_behind(text: &str, at: usize) -> Option<u16> {
    text.get(at..)?.starts_with("\\u").then(|| unit(text, at)).flatten()
}

/// A text as a JSON string literal, quotes included.
pub fn encode(text: &str) -> String {
    serde_json::to_string(text).expect("a string always serialises")
}

/// Adds the JSON string literal of a text to `to`, without a copy of its own.
pub fn encode_to(to: &mut Vec<u8>, text: &str) {
    to.reserve(text.len() + 2);
    serde_json::to_writer(to, text).expect("a string always serialises");
}

/// Puts the escape of U+FFFD in the place of each escaped surrogate that has no partner.
fn without_lone_surrogates(literal: &str) -> String {
    let bytes = literal.as_bytes();
    let unit = |at: usize| -> Option<u32> {
        let hex = literal.get(at + 2..at + 6)?;
        (bytes[at] == b'\\' && bytes.get(at + 1) == Some(&b'u'))
            .then(|| u32::from_str_radix(hex, 16).ok())
            .flatten()
    };
    let mut fixed = String::with_capacity(literal.len());
    let (mut at, mut copied) = (0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        let step = match unit(at) {
            Some(0xD800..=0xDBFF)
                if at + 6 < bytes.len() && matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) =>
            {
                12
            }
            Some(0xD800..=0xDFFF) => {
                fixed.push_str(&literal[copied..at]);
                fixed.push_str("\\ufffd");
                copied = at + 6;
                6
            }
            Some(_) => 6,
            None => 2,
        };
        at += step;
    }
    fixed.push_str(&literal[copied..]);
    fixed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn literals_are_decoded_as_agents_read_them() {
        let cases: &[(&[u8], &str)] = &[
            (br#""plain""#, "plain"),
            (br#""a\nb\t\"c\" \u00e9 \/""#, "a\nb\t\"c\" é /"),
            (br#""\ud83e\udd16""#, "🤖"),
            (br#""lone \ud83e end""#, "lone \u{fffd} end"),
            (br#""\udd16\ud83e\n""#, "\u{fffd}\u{fffd}\n"),
            (br#""\\ud83e""#, "\\ud83e"),
            (b"\"bad \xff byte\"", "bad \u{fffd} byte"),
            (b"\"bad \xff \\n\"", "bad \u{fffd} \n"),
            (b"\"\"", ""),
        ];
        for (literal, expect) in cases {
            assert_eq!(decode(literal), *expect, "{}", String::from_utf8_lossy(literal));
        }
    }

    /// What stands between the quotes of a literal: escapes, and what only looks like one.
    const ESCAPED: &str =
        concat!(r#"([aé" \x01]|\\["\\/bfnrtux]|"#, r"\\u[dD][8c][0-9a-f]{2}|\\u00[0-9]{2}){0,8}");

    proptest! {
        /// Escapes are taken out as serde_json does it, and refused where it refuses them.
        #[test]
        fn escapes_are_taken_out_as_by_serde_json(inner in ESCAPED) {
            let expect = serde_json::from_str::<String>(&format!("\"{inner}\"")).ok();
            prop_assert_eq!(unescaped(&inner), expect);
        }

        /// A text that we write is the text that is read.
        #[test]
        fn encoding_and_decoding_are_inverse(text: String) {
            let literal = encode(&text);
            prop_assert_eq!(decode(literal.as_bytes()), text);
        }

        /// No literal makes the decoder fail.
        #[test]
        fn decoding_never_fails(inner: Vec<u8>) {
            let literal = [b"\"", inner.as_slice(), b"\""].concat();
            decode(&literal);
        }
    }
}
