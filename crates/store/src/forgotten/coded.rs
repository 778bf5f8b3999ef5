//! A text of which characters are written as codes, such as `\u002B`, `\053`, `&#43;` or a
//! full-width letter, or that is broken by codes which show nothing, such as the colours of a
//! terminal.

use std::collections::BTreeSet;

use epitome_model::Span;

use super::unseen::HIDDEN;
use super::{escape, html, json, unseen};

/// The longest code of a character in bytes, for each byte that the character has in UTF-8: an
/// octal escape with the backslashes of the last level of JSON.
const LONGEST: usize = json::slashes(json::LEVELS) + 3;
/// The longest code of a character that does not depend on the length in UTF-8: two escapes such as
/// `\ud83d\ude00`.
const LONGEST_UNICODE: usize = 2 * (json::slashes(json::LEVELS) + 5);
/// Bytes with which a code can begin.
const FIRST: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = !matches!(byte as u8, b'\t' | b'\n' | b'\r');
        byte += 1;
    }
    let set = b"\x7f\\&\xc2\xcd\xd8\xe1\xe2\xef\xf3";
    let mut at = 0;
    while at < set.len() {
        table[set[at] as usize] = true;
        at += 1;
    }
    table
};

/// A code in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Code {
    /// The offset at which the code ends.
    end: usize,
    /// The character; `None` if the code shows nothing.
    char: Option<char>,
}

/// A text that is searched for in its codes.
pub(super) struct CodedText {
    chars: Vec<PlainChar>,
    longest: usize,
}

/// A character of a text.
struct PlainChar {
    char: char,
    /// The character as it is, and as JSON escapes it without digits, such as `\"`.
    spellings: Vec<Vec<u8>>,
}

impl PlainChar {
    fn new(char: char) -> PlainChar {
        let spellings = json::spellings(&char.to_string()).into_iter().map(String::into_bytes);
        PlainChar { char, spellings: spellings.collect() }
    }

    /// Whether `last` is the last byte of a spelling.
    fn may_end_with(&self, last: Option<u8>) -> bool {
        self.spellings.iter().any(|spelling| spelling.last().copied() == last)
    }
}

impl CodedText {
    pub fn new(text: &str) -> CodedText {
        let longest = |char: char| LONGEST_UNICODE.max(char.len_utf8() * LONGEST);
        CodedText {
            chars: text.chars().map(PlainChar::new).collect(),
            longest: text.chars().map(longest).sum::<usize>() + HIDDEN,
        }
    }

    /// The most bytes that the text takes with its codes.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The occurrence whose first code begins at `at`; of several the longest.
    fn occurrence(&self, bytes: &[u8], at: usize, code: Code) -> Option<Span> {
        let byte_before = at.checked_sub(1).map(|before| bytes[before]);
        let mut longest: Option<Span> = None;
        for count in 0..self.chars.len() {
            // The code is the character at this index, or breaks the text before it.
            let rest = match code.char {
                Some(char) if self.chars[count].char == char => count + 1,
                None if count > 0 => count,
                Some(_) | None => continue,
            };
            // Nearly all codes fail this check, which is faster than the next one.
            if count > 0 && !self.chars[count - 1].may_end_with(byte_before) {
                continue;
            }
            let Some(start) = start(&self.chars[..count], bytes, at) else { continue };
            let Some(end) = end(&self.chars[rest..], bytes, code.end) else { continue };
            let found = Span { start: start as u64, end: end as u64 };
            let is_longer = longest.is_none_or(|it| it.end - it.start < found.end - found.start);
            if end - start <= self.longest && is_longer {
                longest = Some(found);
            }
        }
        longest
    }
}

/// Calls `each` with each occurrence of one of the texts in which a character is written as a code,
/// or which is broken by a code that shows nothing. The other characters may be escaped as in JSON,
/// at different levels: the programs that wrote the inner and the outer JSON may escape other
/// characters.
pub(super) fn find(texts: &[CodedText], bytes: &[u8], mut each: impl FnMut(Span)) {
    let first = bytes.iter().enumerate().filter(|(_, byte)| FIRST[usize::from(**byte)]);
    for (at, byte) in first.map(|(at, byte)| (at, *byte)) {
        let codes: Vec<(usize, Code)> = match (byte, bytes.get(at + 1)) {
            (b'\\', Some(b'u' | b'U' | b'x' | b'e' | b'E' | b'0'..=b'3')) => escapes(bytes, at),
            (b'\\', Some(next)) if escape::is_quoted_in_shells(*next) => escapes(bytes, at),
            (b'\\', _) => continue,
            _ => code(bytes, at).map(|code| (at, code)).into_iter().collect(),
        };
        for text in texts {
            let found = codes.iter().filter_map(|(from, code)| {
                let found = text.occurrence(bytes, *from, *code)?;
                Some((is_whole(bytes, found.start), found.end - found.start, found))
            });
            if let Some((.., found)) = found.max() {
                each(found);
            }
        }
    }
}

/// The escapes whose last backslash is at `last`, each with the offset at which it begins. There
/// can be one on each level of JSON, because escapes of lower levels have fewer backslashes.
fn escapes(bytes: &[u8], last: usize) -> Vec<(usize, Code)> {
    let found = (1..=json::LEVELS).filter_map(|level| {
        let at = (last + 1).checked_sub(json::slashes(level))?;
        Some((at, escape(bytes, at, level)?))
    });
    found.collect()
}

/// Whether no escape is cut at `at`: the number of backslashes before it is even.
fn is_whole(bytes: &[u8], at: u64) -> bool {
    let before = &bytes[..usize::try_from(at).unwrap_or(bytes.len())];
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0
}

/// The offset at which the text `head` begins, if it ends at `at` and has no codes; otherwise
/// `None`. Of several offsets the first.
fn start(head: &[PlainChar], bytes: &[u8], at: usize) -> Option<usize> {
    let mut offsets = BTreeSet::from([at]);
    for char in head.iter().rev() {
        let mut before = BTreeSet::new();
        for at in offsets {
            let found = char.spellings.iter().filter(|it| bytes[..at].ends_with(it));
            before.extend(found.map(|it| at - it.len()));
        }
        if before.is_empty() {
            return None;
        }
        offsets = before;
    }
    offsets.first().copied()
}

/// The offset at which the text `rest` ends, if it begins at `at`; otherwise `None`. Of several
/// offsets the last.
fn end(rest: &[PlainChar], bytes: &[u8], at: usize) -> Option<usize> {
    let mut offsets = BTreeSet::from([at]);
    for char in rest {
        let mut after = BTreeSet::new();
        while let Some(at) = offsets.pop_first() {
            let found = char.spellings.iter().filter(|it| bytes[at..].starts_with(it));
            after.extend(found.map(|it| at + it.len()));
            for code in codes(bytes, at) {
                match code.char {
                    Some(found) if found == char.char => drop(after.insert(code.end)),
                    Some(_) => {}
                    None => drop(offsets.insert(code.end)),
                }
            }
        }
        if after.is_empty() {
            return None;
        }
        offsets = after;
    }
    offsets.last().copied()
}

/// The codes that begin at `at`.
fn codes(bytes: &[u8], at: usize) -> Vec<Code> {
    match bytes.get(at) {
        Some(b'\\') => (1..=json::LEVELS).filter_map(|it| escape(bytes, at, it)).collect(),
        Some(byte) if FIRST[usize::from(*byte)] => code(bytes, at).into_iter().collect(),
        Some(_) | None => Vec::new(),
    }
}

/// The code at `at` that is no escape: a reference of HTML, a full-width letter, or a character
/// that shows nothing.
fn code(bytes: &[u8], at: usize) -> Option<Code> {
    if bytes[at] == b'&' {
        let (char, len) = html::reference(&bytes[at..])?;
        return code_of(bytes, char, at + len);
    }
    let len = match bytes[at] {
        0..=0x7f => 1,
        0x80..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    };
    let char = std::str::from_utf8(bytes.get(at..at + len)?).ok()?.chars().next()?;
    match char {
        // Full-width forms of ASCII characters.
        '\u{ff01}'..='\u{ff5e}' => {
            let char = char::from_u32(u32::from(char) - 0xfee0);
            Some(Code { end: at + len, char })
        }
        _ => code_of(bytes, char, at + len).filter(|code| code.char.is_none()),
    }
}

/// The escape at `at`, at a level of JSON inside of JSON.
fn escape(bytes: &[u8], at: usize, level: u32) -> Option<Code> {
    let (char, end) = escape::char_at(bytes, at, level)?;
    code_of(bytes, char, end)
}

/// The code that means `char` and ends at `end`. Of an escape character, the command to the
/// terminal that it begins is a part.
fn code_of(bytes: &[u8], char: char, end: usize) -> Option<Code> {
    match char {
        '\u{1b}' => Some(Code { end: end + unseen::command(&bytes[end..]), char: None }),
        '\u{9b}' => {
            let len = unseen::control_sequence(&bytes[end..]).unwrap_or(0);
            Some(Code { end: end + len, char: None })
        }
        _ if unseen::is_unseen(char) => Some(Code { end, char: None }),
        _ => Some(Code { end, char: Some(char) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, bytes: &str) -> Vec<std::ops::Range<u64>> {
        let mut found = Vec::new();
        let texts = [CodedText::new(text)];
        find(&texts, bytes.as_bytes(), |span| found.push(span.start..span.end));
        found
    }

    /// Checks that the text is found, and takes all of these bytes.
    fn check_whole(text: &str, bytes: &str) {
        let found = found(text, bytes);
        assert!(found.contains(&(0..bytes.len() as u64)), "{bytes:?}: {found:?}");
        assert!(bytes.len() <= CodedText::new(text).longest(), "{bytes:?}");
    }

    #[test]
    fn a_text_is_found_with_any_of_its_characters_escaped() {
        let cases = [
            (r"a\u002Bb", Some(0..8)),
            (r"xa\u002bbx", Some(1..9)),
            (r"\u0061+\u0062", Some(0..13)),
            (r"\\u0061+b", Some(0..9)),
            (r"\\\\u0061+b", Some(0..11)),
            (r"a\x2bb", Some(0..6)),
            (r"a\\x2Bb", Some(0..7)),
            (r"a\053b", Some(0..6)),
            (r"\141\\053\142", Some(0..13)),
            (r"a\u{2b}b", Some(0..8)),
            (r"a\U0000002bb", Some(0..12)),
            ("a\u{ff0b}b", Some(0..5)),
            ("a+b", None),
            (r"a\u002Cb", None),
            (r"a\u+02Bb", None),
            (r"a\u00", None),
            (r"a\05", None),
            (r"a\453b", None),
        ];
        for (bytes, expect) in cases {
            assert_eq!(found("a+b", bytes).pop(), expect, "{bytes}");
        }
    }

    #[test]
    fn characters_may_be_escaped_at_different_levels() {
        for bytes in [
            // The inner JSON has only the escapes that it must have; the outer one is ASCII.
            r#"pass\\\"word-\u00e9-42x>9"#,
            r#"pass\\\\\\\"word-\u00e9-42x>9"#,
            r#"pass\\\"word-é-42x\u003e9"#,
            r#"pass\\\"word-\\u00e9-42x\u003e9"#,
            r#"pass\\\"word-\\xc3\\xa9-42x&gt;9"#,
            r#"pass&quot;word-\303\251-42x>9"#,
            r#"pass&quot;word-é-42x>9"#,
            r#"pass\\\"word-é-42x&gt;9"#,
        ] {
            check_whole("pass\"word-\u{e9}-42x>9", bytes);
        }
    }

    #[test]
    fn characters_may_be_quoted_for_a_shell() {
        for bytes in [
            r"pa\$\$w0rd&More\!x",
            r"pa\\$\\$w0rd&More\\!x",
            r"pa\$\$w0rd\&More\!x",
            r"pa\\\\$\\\\$w0rd\\\\&More\\\\!x",
            r"pa\\$\\$w0rd\\u0026More\\!x",
        ] {
            check_whole("pa$$w0rd&More!x", bytes);
        }
        check_whole("$ecret word's", r"\$ecret\ word\'s");
        assert_eq!(found("a$b", r"a\%b"), []);
    }

    #[test]
    fn quotes_slashes_and_characters_of_two_units_are_found() {
        for bytes in [
            r#"\"/\\\u002b😀"#,
            r#"\u0022\/\\+\uD83D\uDE00"#,
            r#"\\\"\\/\\\\\\u002b\\ud83d\\ude00"#,
        ] {
            check_whole("\"/\\+\u{1f600}", bytes);
        }
    }

    #[test]
    fn a_text_is_found_where_codes_that_show_nothing_break_it() {
        for bytes in [
            "pass\u{1b}[31mword-1",
            "p\u{1b}[0m\u{1b}[01;31m\u{1b}[Kassword-1",
            r"pass\u001b[31mword\u001b[0m-1",
            r"pass\\u001b[38;2;255;255;255mword-1",
            r"pass\x1b[31mword-1",
            r"pass\\033[1mword\\e[0m-1",
            "pass\u{1b}(Bword-1",
            r"pass\u001b]8;;http://x\u0007word-1",
            r"pass\u001b]8;;http://x\u001b\\word-1",
            r"p\u0000a\u0000s\u0000s\u0000w\u0000o\u0000r\u0000d\u0000-\u00001",
            "pass\0word-1",
            "pass\u{200b}word\u{ad}-1",
            r"pass\u200bword&#8203;-1",
            r"pass\u001b[31m\u0077ord-1",
        ] {
            check_whole("password-1", bytes);
        }
        for bytes in [
            "password-1\u{1b}[0m",
            "\u{1b}[31mpassword-1",
            "pass\nword-1",
            r"pass\nword-1",
            "pass\u{1b}[31m word-1",
            "\u{1b}[31mpass\u{1b}[31mwor",
        ] {
            assert_eq!(found("password-1", bytes), [], "{bytes:?}");
        }
    }

    #[test]
    fn a_mask_never_cuts_an_escape_of_json() {
        // In JSON, these are a backslash and then the text.
        for bytes in [r"\\\u0061+b", r"\\\\\\u0061+b"] {
            let found = found("a+b", bytes).pop().expect("it is there");
            let slashes = usize::try_from(found.start).expect("an offset");
            assert_eq!(slashes % 2, 0, "{bytes} {found:?}");
        }
    }
}
