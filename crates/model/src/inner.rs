//! Decodes a JSON string and remembers where in the record each byte of the text comes from, so
//! that a part of the text can be replaced in the record. The module `nested` decodes strings when
//! only the text is needed.

use std::borrow::Cow;
use std::ops::Range;

use crate::{Span, decode};

/// The text of a JSON string literal, with the position in the source of each range of the text.
pub struct DecodedLiteral<'a> {
    /// The decoded text. Bytes of the literal that are not UTF-8 stay as they are.
    pub text: Cow<'a, [u8]>,
    /// The position in the source after the opening quote.
    start: u64,
    /// For each byte of `text`, and for the end of `text`: the offset from `start` of the byte or
    /// escape in the source that it was decoded from. `None` if nothing was decoded: then each
    /// offset in the text is also the offset in the source.
    offsets: Option<Vec<u32>>,
}

impl<'a> DecodedLiteral<'a> {
    /// Decodes a literal (quotes included) that begins at `at` in the source. A literal of 4 GiB or
    /// more keeps its escapes.
    ///
    /// # Panics
    ///
    /// If `literal` is empty.
    pub fn decode(literal: &'a [u8], at: u64) -> DecodedLiteral<'a> {
        let inner = &literal[1..literal.len().saturating_sub(1).max(1)];
        let start = at + 1;
        if !inner.contains(&b'\\') || u32::try_from(inner.len()).is_err() {
            return DecodedLiteral { text: Cow::Borrowed(inner), start, offsets: None };
        }
        let mut text = Vec::with_capacity(inner.len());
        let mut offsets = Vec::with_capacity(inner.len() + 1);
        let mut from = 0;
        while from < inner.len() {
            let len = first_unit_len(&inner[from..]);
            let raw = &inner[from..from + len];
            let before = text.len();
            if raw[0] == b'\\' {
                let quoted = [b"\"", raw, b"\""].concat();
                text.extend_from_slice(decode(&quoted).as_bytes());
            } else {
                text.extend_from_slice(raw);
            }
            offsets.resize(offsets.len() + text.len() - before, from as u32);
            from += len;
        }
        offsets.push(inner.len() as u32);
        DecodedLiteral { text: Cow::Owned(text), start, offsets: Some(offsets) }
    }

    /// The range in the source that a range of the text was decoded from.
    pub fn span(&self, range: &Range<usize>) -> Span {
        Span { start: self.source_offset(range.start), end: self.source_offset(range.end) }
    }

    fn source_offset(&self, idx: usize) -> u64 {
        self.start
            + match &self.offsets {
                Some(offsets) => u64::from(offsets[idx]),
                None => idx as u64,
            }
    }
}

/// The number of bytes of `rest` that are decoded together: the length of an escape (of two
/// escapes, if they are the halves of a surrogate pair), or 1.
fn first_unit_len(rest: &[u8]) -> usize {
    match rest {
        [b'\\', b'u', ..] => {
            let is_pair = matches!(escaped_unit(rest), Some(0xD800..=0xDBFF))
                && matches!(escaped_unit(&rest[6..]), Some(0xDC00..=0xDFFF));
            if is_pair { 12 } else { rest.len().min(6) }
        }
        [b'\\', _, ..] => 2,
        _ => 1,
    }
}

/// The UTF-16 code unit of the escape `\uXXXX` that `bytes` begins with; `None` if `bytes` does not
/// begin with such an escape.
fn escaped_unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use crate::encode;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_of_the_text_are_found_in_the_record() {
        let literal = br#""a\n\"b\" \ud83e\udd16 c""#;
        let inner = DecodedLiteral::decode(literal, 100);
        assert_eq!(&*inner.text, "a\n\"b\" 🤖 c".as_bytes());
        let at = |range: Range<usize>| {
            let Span { start, end } = inner.span(&range);
            std::str::from_utf8(&literal[start as usize - 100..end as usize - 100]).unwrap()
        };
        assert_eq!(at(2..5), r#"\"b\""#);
        assert_eq!(at(6..10), r"\ud83e\udd16");
        assert_eq!(at(0..inner.text.len()), r#"a\n\"b\" \ud83e\udd16 c"#);
    }

    #[test]
    fn an_escape_of_four_digits_is_one_character() {
        let literal = br#""\u00e9b\ud83e c""#;
        let inner = DecodedLiteral::decode(literal, 0);
        assert_eq!(&*inner.text, "éb\u{fffd} c".as_bytes());
        assert_eq!(inner.span(&(0..2)), Span { start: 1, end: 7 });
        assert_eq!(inner.span(&(2..3)), Span { start: 7, end: 8 });
        assert_eq!(inner.span(&(3..6)), Span { start: 8, end: 14 });
    }

    proptest! {
        /// The text equals the encoded one, and each character comes from the reported position.
        #[test]
        fn the_text_is_the_decoded_one(text: String) {
            let literal = encode(&text);
            let inner = DecodedLiteral::decode(literal.as_bytes(), 0);
            prop_assert_eq!(&*inner.text, text.as_bytes());
            for (at, c) in text.char_indices() {
                let Span { start, end } = inner.span(&(at..at + c.len_utf8()));
                let raw = format!("\"{}\"", &literal[start as usize..end as usize]);
                prop_assert_eq!(decode(raw.as_bytes()), c.to_string());
            }
        }
    }
}
