//! A text in base64, and digits (of base64 or hexadecimal) that are broken into lines.

use memchr::memmem::Finder;

use epitome_model::Span;

/// The length of the shortest line that is expected, except for a last line: PEM has 64 characters,
/// MIME 76, columns of data files fewer.
const LINE: usize = 32;
/// The longest run of backslashes of an escaped line break, in JSON inside of JSON.
const BACKSLASHES: usize = 8;
/// The longest indentation of a line.
const INDENT: usize = 32;
/// The most digits of the number of a line.
const NUMBER: usize = 9;
/// The longest separator between the number of a line and the line.
const SEPARATOR: usize = 16;
/// The longest line break in bytes: `\r` and `\n`, both escaped, the indentation, which may end
/// with an escaped tab, and the number of the line.
const BREAK: usize = 3 * (BACKSLASHES + 1) + INDENT + NUMBER + SEPARATOR + BACKSLASHES + 5;

/// The spellings of a text in base64, in both alphabets. The text may begin at any of three offsets
/// in a group of three bytes, and each offset gives another spelling. Characters that depend also
/// on the bytes around the text are left out.
pub(super) fn spellings(text: &[u8]) -> Vec<Vec<u8>> {
    let mut spelled = in_alphabet(text, b"+/");
    spelled.extend(in_alphabet(text, b"-_"));
    spelled.sort();
    spelled.dedup();
    spelled
}

/// The spellings in one alphabet, whose last two characters are `last`.
fn in_alphabet(bytes: &[u8], last: &[u8; 2]) -> Vec<Vec<u8>> {
    const FIRST: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let digit = |value: usize| FIRST.get(value).copied().unwrap_or(last[value % 2]);
    let mut found = Vec::new();
    for before in 0..3_usize {
        // The first bits of the text are skipped if they share a character with the bytes before
        // the text.
        let skipped = (before * 8).div_ceil(6) * 6 - before * 8;
        let bits = bytes.len() * 8 - skipped;
        let bit = |at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
        let digits = (0..bits / 6).map(|n| {
            let from = skipped + n * 6;
            let value = (from..from + 6).fold(0, |value, at| value << 1 | bit(at));
            digit(usize::from(value))
        });
        found.push(digits.collect());
    }
    found
}

/// Finds a spelling that is divided by line breaks. Its lines may be indented, and numbered.
pub(super) struct BrokenSpelling {
    digits: Vec<u8>,
    /// What replaces each digit.
    pub mask: u8,
    /// The first and the second piece of the spelling. A line break divides at most one of them,
    /// because both together are not longer than the shortest line.
    pieces: [Finder<'static>; 2],
}

impl BrokenSpelling {
    pub fn new(digits: Vec<u8>, mask: u8) -> BrokenSpelling {
        let len = (digits.len() / 2).min(LINE / 2);
        let pieces = [&digits[..len], &digits[len..2 * len]];
        let pieces = pieces.map(|piece| Finder::new(piece).into_owned());
        BrokenSpelling { digits, mask, pieces }
    }

    /// The most bytes that the spelling takes with its line breaks.
    pub fn longest(&self) -> usize {
        self.digits.len() + (self.digits.len() / LINE + 1) * BREAK
    }

    /// Calls `each` with the range of each occurrence that has line breaks in it, and with the
    /// ranges of these line breaks.
    pub fn find(&self, bytes: &[u8], mut each: impl FnMut(Span, Vec<Span>)) {
        for (n, piece) in self.pieces.iter().enumerate() {
            let len = piece.needle().len();
            let mut from = 0;
            while let Some(found) = piece.find(&bytes[from..]) {
                let at = from + found;
                // Occurrences may overlap.
                from = at + 1;
                let mut breaks = Vec::new();
                let Some(start) = self.start(bytes, at, n * len, &mut breaks) else { continue };
                breaks.reverse();
                let Some(end) = self.end(bytes, at + len, (n + 1) * len, &mut breaks) else {
                    continue;
                };
                if !breaks.is_empty() {
                    each(span(start, end), breaks);
                }
            }
        }
    }

    /// The offset at which the spelling begins, if its first `count` characters end at `at`;
    /// otherwise `None`. Adds the line breaks between them to `breaks`, the last one first.
    fn start(
        &self,
        bytes: &[u8],
        mut at: usize,
        count: usize,
        breaks: &mut Vec<Span>,
    ) -> Option<usize> {
        for digit in self.digits[..count].iter().rev() {
            let len = break_before(&bytes[..at]);
            if len > 0 {
                breaks.push(span(at - len, at));
                at -= len;
            }
            at = at.checked_sub(1).filter(|at| bytes[*at] == *digit)?;
        }
        Some(at)
    }

    /// The offset at which the spelling ends, if its characters from `count` on begin at `at`;
    /// otherwise `None`. Adds the line breaks between them to `breaks`.
    fn end(
        &self,
        bytes: &[u8],
        mut at: usize,
        count: usize,
        breaks: &mut Vec<Span>,
    ) -> Option<usize> {
        for digit in &self.digits[count..] {
            let len = break_at(&bytes[at..]);
            if len > 0 {
                breaks.push(span(at, at + len));
                at += len;
            }
            if bytes.get(at) != Some(digit) {
                return None;
            }
            at += 1;
        }
        Some(at)
    }
}

fn span(start: usize, end: usize) -> Span {
    Span { start: start as u64, end: end as u64 }
}

/// The length of the line break at the beginning of these bytes, with the indentation and the
/// number of the next line; 0 if there is none.
fn break_at(bytes: &[u8]) -> usize {
    let len = match bytes {
        [b'\n', ..] => 1,
        [b'\r', b'\n', ..] => 2,
        [b'\\', ..] => match escaped_at(bytes, b'r') {
            0 => escaped_at(bytes, b'n'),
            len => match escaped_at(&bytes[len..], b'n') {
                0 => 0,
                rest => len + rest,
            },
        },
        _ => 0,
    };
    if len == 0 {
        return 0;
    }
    let len = len + indent_at(&bytes[len..]);
    len + number_at(&bytes[len..])
}

/// The length of the number of a line at the beginning of these bytes, with what separates it from
/// the line, such as `:`, `|`, a tab or an arrow; 0 if there is none.
fn number_at(bytes: &[u8]) -> usize {
    let digits = bytes.iter().take(NUMBER).take_while(|byte| byte.is_ascii_digit()).count();
    let rest = &bytes[digits..];
    let mut len = 0;
    while digits > 0 && len < SEPARATOR {
        len += match rest[len..] {
            [b' ' | b'\t' | b':' | b'|' | b')' | b'.', ..] => 1,
            [0xe2, 0x86, 0x92, ..] => 3,
            [b'\\', ..] => match (escaped_at(&rest[len..], b't'), arrow_at(&rest[len..])) {
                (0, 0) => break,
                (tab, arrow) => tab + arrow,
            },
            _ => break,
        };
    }
    if len == 0 { 0 } else { digits + len }
}

/// The length of an escaped arrow (`\u2192`) at the beginning of these bytes; 0 if there is none.
fn arrow_at(bytes: &[u8]) -> usize {
    match escaped_at(bytes, b'u') {
        len if len > 0 && bytes[len..].starts_with(b"2192") => len + 4,
        _ => 0,
    }
}

/// The length of the spaces and tabs at the beginning of these bytes. Tabs may be escaped.
fn indent_at(bytes: &[u8]) -> usize {
    let mut len = 0;
    while len < INDENT {
        len += match bytes.get(len) {
            Some(b' ' | b'\t') => 1,
            Some(b'\\') if escaped_at(&bytes[len..], b't') > 0 => escaped_at(&bytes[len..], b't'),
            Some(_) | None => break,
        };
    }
    len
}

/// If the bytes begin with backslashes and then this letter, the length of both together; otherwise
/// 0.
fn escaped_at(bytes: &[u8], letter: u8) -> usize {
    let slashes = bytes.iter().take(BACKSLASHES).take_while(|byte| **byte == b'\\').count();
    let is_letter = slashes > 0 && bytes.get(slashes) == Some(&letter);
    if is_letter { slashes + 1 } else { 0 }
}

/// The length of the line break at the end of these bytes, with the indentation and the number of
/// the next line; 0 if there is none.
fn break_before(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(BREAK);
    (from..bytes.len())
        .find(|at| break_at(&bytes[*at..]) == bytes.len() - at)
        .map_or(0, |at| bytes.len() - at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_are_recognised() {
        let cases = [
            ("\nA", 1),
            ("\r\n  A", 4),
            ("\\nA", 2),
            ("\\r\\n\tA", 5),
            ("\\\\r\\\\nA", 6),
            ("\\n\\t\\tA", 6),
            ("\n  12\tA", 6),
            ("\n 7: A", 5),
            ("\n12 | A", 6),
            ("\\n    12\u{2192}A", 11),
            ("\\\\n12\\\\u2192A", 12),
            ("\n12A", 1),
            ("\\rA", 0),
            ("\\tA", 0),
            ("  A", 0),
            ("n", 0),
        ];
        for (bytes, len) in cases {
            assert_eq!(break_at(bytes.as_bytes()), len, "{bytes:?}");
            let before = &bytes.as_bytes()[..len];
            assert_eq!(break_before(&[b"A", before].concat()), len, "{bytes:?}");
        }
    }
}
