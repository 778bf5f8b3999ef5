//! Parts of a text with their codes decoded, and the position of each of their bytes in the text.

use std::ops::Range;

use crate::code::{self, Code, Reason};

/// The number of bytes before a code that are searched: they may be the beginning of the token, or
/// the name of a variable whose value is the token.
const BEFORE: usize = 128;
/// The number of bytes after a code in which a token may contain white space.
const BEHIND: usize = 256;
/// The number of bytes after a code in which a longer token without white space may end.
const FAR: usize = 16 << 10;
/// The minimum length of a word before which an escape such as `\n` is decoded. Numbers may be
/// shorter.
const WORD: usize = 7;

/// How an invisible code is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unseen {
    /// The code is left out, so that the text before it and the text after it join.
    Joins,
    /// The code becomes a space: the text around it is two words.
    Parts,
}

/// A part of a text, with its codes decoded: escapes, entities, percent codes, and characters that
/// show nothing.
pub(crate) struct View {
    pub(crate) text: String,
    /// Whether the view is of the whole text.
    pub(crate) is_whole: bool,
    /// Whether the part contained invisible codes.
    pub(crate) has_unseen: bool,
    /// For each decoded code and each added letter, in order: its range in the view, and its byte
    /// range in the text.
    pieces: Vec<(Range<usize>, Range<usize>)>,
    /// The position of the part in the text.
    start: usize,
}

impl View {
    /// Decodes the codes in a part of `text`.
    pub(crate) fn new(text: &str, part: Range<usize>, unseen: Unseen) -> View {
        let mut view = View {
            text: String::with_capacity(part.len()),
            is_whole: part == (0..text.len()),
            has_unseen: false,
            pieces: Vec::new(),
            start: part.start,
        };
        // If the part begins within a word, the letter `x` is put before it, so that rules do not
        // take the end of this word for a whole word.
        if is_in_word(text, part.start) {
            view.piece(Some('x'), part.start..part.start);
        }
        let mut from = part.start;
        while let Some(at) = code::next(&text[..part.end], from) {
            view.text.push_str(&text[from..at]);
            match code::at(&text[..part.end], at) {
                Some(Code { len, to, .. }) => {
                    view.has_unseen |= to.is_none();
                    let shown = to.or((unseen == Unseen::Parts).then_some(' '));
                    view.piece(shown, at..at + len);
                    from = at + len;
                }
                None => {
                    let c = text[at..].chars().next().unwrap_or_default();
                    view.text.push(c);
                    from = at + c.len_utf8();
                }
            }
        }
        view.text.push_str(&text[from..part.end]);
        if is_in_word(text, part.end) {
            view.piece(Some('x'), part.end..part.end);
        }
        view
    }

    fn piece(&mut self, shown: Option<char>, of: Range<usize>) {
        let at = self.text.len();
        self.text.extend(shown);
        self.pieces.push((at..self.text.len(), of));
    }

    /// The byte range of the text that is decoded to a range of the view. A code of the text is
    /// either completely in it or not at all.
    pub(crate) fn origin(&self, range: &Range<usize>) -> Range<usize> {
        let behind = |idx: usize, at: usize| match idx.checked_sub(1).map(|it| &self.pieces[it]) {
            Some((here, there)) => (at - here.end) + there.end,
            None => at + self.start,
        };
        // Invisible codes before the first character are not included.
        let idx = self.pieces.partition_point(|(here, _)| here.end <= range.start);
        let start = match self.pieces.get(idx) {
            Some((here, there)) if here.start <= range.start => there.start,
            Some(_) | None => behind(idx, range.start),
        };
        let idx = self.pieces.partition_point(|(here, _)| here.start < range.end);
        let end = match idx.checked_sub(1).map(|it| &self.pieces[it]) {
            Some((here, there)) if range.end <= here.end => there.end,
            Some(_) | None => behind(idx, range.end),
        };
        start..end.max(start)
    }
}

/// Whether the characters before and after this offset belong to one word.
fn is_in_word(text: &str, at: usize) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text[..at].ends_with(is_word) && text[at..].starts_with(is_word)
}

/// The parts of a text that may contain a token hidden by codes, sorted and disjoint.
pub(crate) fn parts(text: &str) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    while let Some(at) = code::next(text, from) {
        from = at + text[at..].chars().next().map_or(1, char::len_utf8);
        let Some(code) = code::at(text, at) else { continue };
        let (code, end) = behind_backslashes(text, at, code);
        from = end;
        let hides = match code.reason {
            Reason::Always => true,
            Reason::BeforeWord => before_word(&text.as_bytes()[end..]),
            Reason::Never => false,
        };
        if !hides {
            continue;
        }
        let reach = reach(text, at, end);
        match parts.last_mut().filter(|last| reach.start <= last.end) {
            Some(last) => last.end = last.end.max(reach.end),
            None => parts.push(reach),
        }
    }
    parts
}

/// For a code after several backslashes, as in `\\\\n`: the code that remains when the backslashes
/// are decoded repeatedly, and its end. For any other code: the code itself and its end.
fn behind_backslashes(text: &str, at: usize, code: Code) -> (Code, usize) {
    let rest = &text.as_bytes()[at..];
    let count = rest.iter().position(|byte| *byte != b'\\').unwrap_or(rest.len());
    match count.checked_sub(1).map(|more| at + more) {
        Some(last) if last > at => match code::at(text, last) {
            Some(code) => (code, last + code.len),
            None => (code, last + 1),
        },
        Some(_) | None => (code, at + code.len),
    }
}

/// The range to search around a code.
fn reach(text: &str, at: usize, end: usize) -> Range<usize> {
    let start = text.floor_char_boundary(at.saturating_sub(BEFORE));
    let near = text.ceil_char_boundary((end + BEHIND).min(text.len()));
    let far = text.floor_char_boundary((end + FAR).min(text.len())).max(near);
    let end = text[near..far].find(is_end).map_or(far, |more| near + more);
    start..end
}

fn is_end(c: char) -> bool {
    c.is_ascii_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | ',')
}

/// Whether bytes begin with what may be a token or a number.
fn before_word(rest: &[u8]) -> bool {
    match *rest {
        [b'+' | b'(' | b'0'..=b'9', ..] => true,
        // Bank accounts and identification numbers that begin with letters may have spaces between
        // short groups.
        [a, b, c, d, ..] if a.is_ascii_uppercase() && b.is_ascii_uppercase() => {
            c.is_ascii_digit() || d.is_ascii_digit() || is_long(rest)
        }
        _ => is_long(rest),
    }
}

fn is_long(rest: &[u8]) -> bool {
    let mut begin = rest.iter().take(WORD);
    rest.len() >= WORD && begin.all(|byte| byte.is_ascii_alphanumeric() || b"_-+/.@".contains(byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_found_in_a_view_stands_in_the_text() {
        let cases = [
            ("a\u{1b}[32mbcd\u{1b}[0me", Unseen::Joins, "abcde", "bcd", "bcd"),
            ("a\u{1b}[32mbcd\u{1b}[0me", Unseen::Joins, "abcde", "cde", "cd\u{1b}[0me"),
            ("a\u{1b}[32mbcd", Unseen::Parts, "a bcd", "bcd", "bcd"),
            ("x%3Dabc%26y", Unseen::Joins, "x=abc&y", "abc", "abc"),
            ("x%3Dabc%26y", Unseen::Joins, "x=abc&y", "=abc&", "%3Dabc%26"),
            ("%67%68%70", Unseen::Joins, "ghp", "h", "%68"),
            ("k\\nabc", Unseen::Joins, "k\nabc", "abc", "abc"),
            ("ab\\\n  cd", Unseen::Joins, "abcd", "bc", "b\\\n  c"),
            ("\u{200b}\u{200b}ab", Unseen::Joins, "ab", "ab", "ab"),
        ];
        for (text, unseen, shown, found, origin) in cases {
            let view = View::new(text, 0..text.len(), unseen);
            assert_eq!(view.text, shown);
            let at = shown.find(found).expect("it is there");
            assert_eq!(&text[view.origin(&(at..at + found.len()))], origin, "{text:?}");
        }
    }

    #[test]
    fn only_texts_with_a_reason_are_decoded() {
        let reasons = [
            "a%3Db",
            "\\nghp_abcd",
            "\\\\\\\\nghp_abcd",
            "\\\\u003d",
            "\\n4111",
            "\u{1b}[m",
            "a\u{200b}b",
            "\\x41",
            "^[[1mab",
            "ghp_\\\n  abcdefg",
        ];
        assert!(
            reasons
                .iter()
                .all(|text| parts(text) == std::iter::once(0..text.len()).collect::<Vec<_>>())
        );
        let plain = [
            "plain text",
            "a^[b",
            "make \\\n  --jobs=2",
            "make\\\nall",
            "\\n",
            "print(\"a\\n\")",
            "100%",
            "a & b",
            "ä – ü",
            "C:\\dir",
            "\\\\",
        ];
        for text in plain {
            assert!(parts(text).is_empty(), "{text}");
        }
        let far = format!("{}%3Dtoken {}", "word ".repeat(100), "word ".repeat(100));
        let found = parts(&far);
        assert!(found.len() == 1 && found[0].start == 500 - 128 && found[0].end < 900, "{found:?}");
    }

    /// Texts of characters with which codes begin or end, and of whole codes.
    const TEXTS: &str = concat!(
        "([a-c%&;#x^\n\\\\nu0-9 äｇ\u{1b}\u{200b}\\[m]",
        "|%41|\\\\n|&amp;|\u{1b}\\[0m|\\^\\[\\[1m|\\\\\n){0,30}",
    );

    proptest! {
        /// Every range of a view comes from a range of the text that decodes to it.
        #[test]
        fn codes_are_never_cut(
            text in TEXTS,
            from in 0_usize..40,
            len in 1_usize..20,
        ) {
            for unseen in [Unseen::Joins, Unseen::Parts] {
                let view = View::new(&text, 0..text.len(), unseen);
                let start = view.text.floor_char_boundary(from.min(view.text.len()));
                let end = view.text.ceil_char_boundary((start + len).min(view.text.len()));
                if start == end {
                    continue;
                }
                let origin = view.origin(&(start..end));
                let again = View::new(&text[origin.clone()], 0..origin.len(), Unseen::Joins);
                let shown: String = again.text;
                let expect = &view.text[start..end];
                // A code that is cut off from the text before it may be decoded differently.
                if unseen == Unseen::Joins && !text.contains('\\') {
                    prop_assert_eq!(shown, expect);
                }
            }
        }
    }
}
