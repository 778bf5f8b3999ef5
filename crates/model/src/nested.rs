//! Decodes and encodes the string literals of a record, and the string literals inside one of its
//! strings, if that string holds JSON or a script as text.
//!
//! The bytes of a literal inside a string are escaped once more than the bytes of other literals.
//! The beginning of a literal tells its kind: a literal of the record itself begins with `"`, one
//! inside a string with `\"`, `'` or a backtick.

use std::borrow::Cow;

use crate::literal::{decode_json, encode};

/// The text of a string literal, which may be inside another string. `literal` includes the quotes.
///
/// Escapes of lone surrogates and bytes that are not UTF-8 become U+FFFD. Bytes that are not a
/// string literal are returned with their quotes and escapes.
pub fn decode(literal: &[u8]) -> Cow<'_, str> {
    if is_nested(literal) { Cow::Owned(decode_nested(literal)) } else { decode_json(literal) }
}

/// Decodes a literal as [`decode`] does, but takes bytes that the caller owns: a literal without
/// escapes is not copied.
pub(crate) fn decode_owned(mut literal: Vec<u8>) -> String {
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

/// The literal itself as text, with its quotes and its own escapes. A literal inside a string loses
/// the escapes of that string: `\"a\\nb\"` becomes `"a\nb"`.
pub fn literal_as_text(literal: &[u8]) -> Cow<'_, str> {
    if is_nested(literal) {
        without_outer_escapes(literal)
    } else {
        String::from_utf8_lossy(literal)
    }
}

/// Encodes a text as a literal of the same kind as `like`: with the same quotes and, if `like` is a
/// literal inside a string, with the escapes that such a literal needs.
pub fn encode_as(text: &str, like: &[u8]) -> String {
    match like.first() {
        Some(b'\\') => with_outer_escapes(&encode(text)),
        Some(b'\'') => with_outer_escapes(&script_literal(text, '\'')),
        Some(b'`') => with_outer_escapes(&script_literal(text, '`')),
        Some(_) | None => encode(text),
    }
}

fn is_nested(literal: &[u8]) -> bool {
    matches!(literal, [b'\\', b'"', ..] | [b'\'' | b'`', ..])
}

/// The text of a literal inside a string. If the literal does not end with the quote that it begins
/// with, it is returned with its quotes, and only the escapes of the outer string are decoded.
fn decode_nested(literal: &[u8]) -> String {
    let seen = without_outer_escapes(literal);
    let mut chars = seen.chars();
    let (Some(open), Some(close)) = (chars.next(), chars.next_back()) else {
        return seen.into_owned();
    };
    if open != close {
        return seen.into_owned();
    }
    match serde_json::from_str(&seen) {
        Ok(text) if open == '"' => text,
        Ok(_) | Err(_) => script_text(chars.as_str()),
    }
}

/// Decodes the escapes of the string around a literal.
fn without_outer_escapes(literal: &[u8]) -> Cow<'_, str> {
    if !literal.contains(&b'\\') {
        return String::from_utf8_lossy(literal);
    }
    let outer = [b"\"", literal, b"\""].concat();
    Cow::Owned(decode_json(&outer).into_owned())
}

/// Encodes a literal as it is written inside a string.
fn with_outer_escapes(text: &str) -> String {
    let outer = encode(text);
    outer[1..outer.len() - 1].to_owned()
}

/// A text as a JavaScript literal in the given quotes.
fn script_literal(text: &str, quote: char) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push(quote);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\t' => literal.push_str("\\t"),
            '\\' => literal.push_str("\\\\"),
            '$' if quote == '`' && chars.peek() == Some(&'{') => literal.push_str("\\$"),
            _ if c == quote => literal.extend(['\\', c]),
            _ if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                literal.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            _ => literal.push(c),
        }
    }
    literal.push(quote);
    literal
}

/// The text of the inside of a JavaScript literal: ECMA-262, "String Literals". Lone surrogates
/// become U+FFFD, as in JSON.
fn script_text(inner: &str) -> String {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(c) = rest.chars().next() else { break };
        let after = &rest[c.len_utf8()..];
        rest = match c {
            'n' => push_unescaped(&mut text, '\n', after),
            'r' => push_unescaped(&mut text, '\r', after),
            't' => push_unescaped(&mut text, '\t', after),
            'b' => push_unescaped(&mut text, '\u{8}', after),
            'f' => push_unescaped(&mut text, '\u{c}', after),
            'v' => push_unescaped(&mut text, '\u{b}', after),
            '0' => push_unescaped(&mut text, '\0', after),
            'x' => push_code_point(&mut text, after.get(..2), after, 2),
            'u' => push_unicode(&mut text, after),
            // The backslash is the last character of a line: the literal continues on the next
            // line.
            '\n' => after,
            '\r' => after.strip_prefix('\n').unwrap_or(after),
            _ => push_unescaped(&mut text, c, after),
        };
    }
    text.push_str(rest);
    text
}

/// Appends `c`, the value of an escape, to `text`. Returns `after`, the text after the escape.
fn push_unescaped<'t>(text: &mut String, c: char, after: &'t str) -> &'t str {
    text.push(c);
    after
}

/// Appends the character whose code point is `digits`, in hexadecimal, and returns `after` without
/// its first `len` bytes. If `digits` is `None` or not a number, appends nothing and returns
/// `after`.
fn push_code_point<'t>(
    text: &mut String,
    digits: Option<&str>,
    after: &'t str,
    len: usize,
) -> &'t str {
    let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    match number {
        Some(number) => {
            text.push(char::from_u32(number).unwrap_or('\u{fffd}'));
            &after[len..]
        }
        None => after,
    }
}

/// Appends the character of a `\u` escape, and returns what follows the escape. `after` begins
/// directly after the `\u`.
fn push_unicode<'t>(text: &mut String, after: &'t str) -> &'t str {
    if let Some(braced) = after.strip_prefix('{') {
        let end = braced.find('}');
        return push_code_point(
            text,
            end.map(|end| &braced[..end]),
            after,
            end.map_or(0, |end| end + 2),
        );
    }
    let first = code_unit(after);
    let second = after.get(4..6).filter(|it| *it == "\\u").and_then(|_| code_unit(&after[6..]));
    if let (Some(high @ 0xD800..=0xDBFF), Some(low @ 0xDC00..=0xDFFF)) = (first, second) {
        let c = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
        text.extend(char::from_u32(c));
        return &after[10..];
    }
    push_code_point(text, after.get(..4), after, 4)
}

/// The first four characters of `text`, as a hexadecimal number; `None` if they are not one.
fn code_unit(text: &str) -> Option<u32> {
    u32::from_str_radix(text.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn literals_within_a_string_are_read() {
        let cases: &[(&str, &str)] = &[
            (r#"\"plain\""#, "plain"),
            (r#"\"a\\nb \\\"q\\\" \\u00e9 é\""#, "a\nb \"q\" é é"),
            (r#"\"\\ud83e\\udd16 \\ud83e\""#, "🤖 \u{fffd}"),
            (r"'it\\'s'", "it's"),
            (r"`a\nb \\` \\${x}`", "a\nb ` ${x}"),
            (r"'\\x41\\u{1F916}\\0\\q'", "A🤖\0q"),
            ("'one\\\\\\ntwo'", "onetwo"),
            ("''", ""),
            ("'", "'"),
            ("'open", "'open"),
            (r#"\"\\u12\""#, "12"),
        ];
        for (literal, expect) in cases {
            assert_eq!(decode(literal.as_bytes()), *expect, "{literal}");
        }
    }

    #[test]
    fn a_literal_is_seen_without_the_escapes_of_the_string_around_it() {
        assert_eq!(literal_as_text(br#"\"a\\nb\""#), r#""a\nb""#);
        assert_eq!(literal_as_text(br#""a\nb""#), r#""a\nb""#);
        assert_eq!(literal_as_text(b"'a'"), "'a'");
    }

    #[test]
    fn a_text_for_backticks_substitutes_nothing() {
        assert_eq!(encode_as("${x} $y `z`", b"`"), r"`\\${x} $y \\`z\\``");
        assert_eq!(encode_as("${x} $y `z`", b"'"), "'${x} $y `z`'");
    }

    proptest! {
        /// A text that we encode for the inside of a string is decoded to the same text, in each
        /// kind of quotes.
        #[test]
        fn encoding_and_decoding_are_inverse(text: String, kind in 0_usize..4) {
            let like: &[u8] = [&b"\""[..], b"\\\"", b"'", b"`"][kind];
            let literal = encode_as(&text, like);
            prop_assert_eq!(decode(literal.as_bytes()), text);
            // The string that contains the literal is still one string.
            if kind > 0 {
                let outer = format!("\"{literal}\"");
                prop_assert!(serde_json::from_str::<String>(&outer).is_ok());
            }
        }

        /// No literal makes the decoder fail.
        #[test]
        fn decoding_never_fails(inner: Vec<u8>, kind in 0_usize..3) {
            let quote: &[u8] = [&b"\\\""[..], b"'", b"`"][kind];
            decode(&[quote, inner.as_slice(), quote].concat());
        }
    }
}
