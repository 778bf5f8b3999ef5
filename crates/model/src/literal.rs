//! JSON string literals: decoding and encoding.
//!
//! The module `nested` builds on this one: its functions also take literals that are inside another
//! string. The rest of the program uses `nested` to decode literals.

use std::borrow::Cow;

use memchr::memchr2;

/// The text of a JSON string literal, quotes included. Escapes of lone surrogates and bytes that
/// are not UTF-8 become U+FFFD. Bytes that are not a string literal are returned with their quotes
/// and escapes.
pub(crate) fn decode_json(literal: &[u8]) -> Cow<'_, str> {
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

/// Decodes the inside of a string literal. `None` if an escape is not valid JSON or is half of a
/// surrogate pair, or if a control character or a quote is not escaped.
///
/// `serde_json` decodes a literal with escapes into a scratch buffer and copies that into the
/// `String`. This function writes directly into the `String`: for a literal of 200 MiB the program
/// takes 390 MB at its peak instead of 573 MB.
fn unescaped(inner: &str) -> Option<String> {
    // Without an early exit, because this loop is vectorised then.
    if inner.bytes().fold(false, |found, byte| found | (byte < b' ')) {
        return None;
    }
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr2(b'\\', b'"', rest.as_bytes()) {
        text.push_str(&rest[..at]);
        // A quote that no backslash escapes is not valid in a literal.
        let escape = rest[at..].strip_prefix('\\')?.as_bytes().first()?;
        let (c, len) = match escape {
            b'"' | b'\\' | b'/' => (char::from(*escape), 2),
            b'b' => ('\u{8}', 2),
            b'f' => ('\u{c}', 2),
            b'n' => ('\n', 2),
            b'r' => ('\r', 2),
            b't' => ('\t', 2),
            b'u' => {
                let unit = utf16_unit(rest, at)?;
                match char::from_u32(unit.into()) {
                    Some(c) => (c, 6),
                    None => {
                        let pair = [unit, escaped_utf16_unit(rest, at + 6)?];
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

/// The UTF-16 code unit of the four hexadecimal digits after the `\u` at `at`. `None` if other
/// characters follow. The caller must have checked that a `\u` is at `at`.
fn utf16_unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at + 2..at + 6)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

/// Like [`utf16_unit`], but returns `None` unless a `\u` is at `at`.
fn escaped_utf16_unit(text: &str, at: usize) -> Option<u16> {
    text.get(at..)?.starts_with("\\u").then(|| utf16_unit(text, at)).flatten()
}

/// A text as a JSON string literal, quotes included.
pub fn encode(text: &str) -> String {
    serde_json::to_string(text).expect("a string always serialises")
}

/// Appends the JSON string literal of a text to `to`, without a temporary copy.
pub fn encode_to(to: &mut Vec<u8>, text: &str) {
    to.reserve(text.len() + 2);
    serde_json::to_writer(to, text).expect("a string always serialises");
}

/// Replaces each escaped surrogate without a partner with the escape of U+FFFD.
fn without_lone_surrogates(literal: &str) -> String {
    let bytes = literal.as_bytes();
    let mut fixed = String::with_capacity(literal.len());
    let mut at = 0;
    let mut copied = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        let step = match escaped_unit(literal, at) {
            Some(0xD800..=0xDBFF)
                if at + 6 < bytes.len()
                    && matches!(escaped_unit(literal, at + 6), Some(0xDC00..=0xDFFF)) =>
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

/// The UTF-16 code unit of the escape `\uXXXX` at an offset, in a literal whose syntax was not
/// checked. `None` if there is no such escape.
fn escaped_unit(literal: &str, at: usize) -> Option<u32> {
    let hex = literal.get(at + 2..at + 6)?;
    if !literal.as_bytes()[at..].starts_with(b"\\u") {
        return None;
    }
    u32::from_str_radix(hex, 16).ok()
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
            assert_eq!(decode_json(literal), *expect, "{}", String::from_utf8_lossy(literal));
        }
    }

    /// The inside of a literal: escapes, and characters that only look like escapes.
    const ESCAPED: &str =
        concat!(r#"([aé" \x01]|\\["\\/bfnrtux]|"#, r"\\u[dD][8c][0-9a-f]{2}|\\u00[0-9]{2}){0,8}");

    proptest! {
        /// Escapes are decoded as `serde_json` does it, and refused where it refuses them.
        #[test]
        fn escapes_are_taken_out_as_by_serde_json(inner in ESCAPED) {
            let expect = serde_json::from_str::<String>(&format!("\"{inner}\"")).ok();
            prop_assert_eq!(unescaped(&inner), expect);
        }

        /// A text that we encode is decoded to the same text.
        #[test]
        fn encoding_and_decoding_are_inverse(text: String) {
            let literal = encode(&text);
            let mut appended = b"1,".to_vec();
            encode_to(&mut appended, &text);
            prop_assert_eq!(appended, format!("1,{literal}").into_bytes());
            prop_assert_eq!(decode_json(literal.as_bytes()), text);
        }

        /// No literal makes the decoder fail.
        #[test]
        fn decoding_never_fails(inner: Vec<u8>) {
            let literal = [b"\"", inner.as_slice(), b"\""].concat();
            decode_json(&literal);
        }
    }
}
