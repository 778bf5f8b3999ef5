//! Splits text into words, for indexing and for searching.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The length in bytes of the longest word in the index. Longer words, such as pictures in base64,
/// are nothing that users type.
pub(super) const LONGEST: usize = 64;
/// The index contains this text in place of a word that is longer than [`LONGEST`], so that the
/// words before and after it are not next to each other. It has no letter or digit, so no query
/// finds it.
const TOO_LONG: &str = "…";

/// A run of letters, with the marks on them, and digits, or a single Han or kana character.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// The word in lower case, in Unicode's composed form (NFC): `é` and `e` with an accent after
    /// it, as in names of files on macOS, are one letter.
    pub(super) text: String,
    /// The number of words before the word in the text.
    pub(super) place: usize,
    /// The range of the word in the text, in bytes.
    pub(super) range: Range<usize>,
}

impl Word {
    /// Whether the word is short enough for the index.
    pub(super) fn is_indexed(&self) -> bool {
        self.text.len() <= LONGEST
    }
}

/// Calls `take` with each word of a text, in order, even with words that are too long for the
/// index.
pub(super) fn each(text: &str, mut take: impl FnMut(&Word)) {
    let mut word = Word::default();
    let mut chars = text.char_indices().peekable();
    while let Some((start, first)) = chars.next() {
        if !first.is_alphanumeric() {
            continue;
        }
        word.text.clear();
        word.text.extend(first.to_lowercase());
        word.range = start..start + first.len_utf8();
        let is_alone = is_word_alone(first);
        while let Some((at, c)) = chars.next_if(|(_, c)| is_continued_by(*c, is_alone)) {
            word.text.extend(c.to_lowercase());
            word.range.end = at + c.len_utf8();
        }
        if !word.text.is_ascii() {
            word.text = word.text.nfc().collect();
        }
        take(&word);
        word.place += 1;
    }
}

/// The words of a text, separated by single spaces, so that the tokenizer of the index finds the
/// same words. A word that is too long for the index is replaced by a placeholder.
pub(super) fn normalized(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    each(text, |word| {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(if word.is_indexed() { &word.text } else { TOO_LONG });
    });
    words
}

/// Whether `c` belongs to the word before it: a mark on a letter always does, a letter or a digit
/// does if neither it nor the word is a word by itself.
fn is_continued_by(c: char, is_alone: bool) -> bool {
    is_combining_mark(c) || (c.is_alphanumeric() && !is_alone && !is_word_alone(c))
}

/// Whether a character is a word by itself: Han and kana, which are written without spaces.
fn is_word_alone(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[(&str, usize)], expect_normalized: &str) {
        let mut found = Vec::new();
        each(text, |word| {
            let composed: String = text[word.range.clone()].to_lowercase().nfc().collect();
            assert_eq!(composed, word.text);
            if word.is_indexed() {
                found.push((word.text.clone(), word.place));
            }
        });
        let expect: Vec<_> = expect.iter().map(|(word, at)| ((*word).to_owned(), *at)).collect();
        assert_eq!(found, expect, "{text:?}");
        assert_eq!(normalized(text), expect_normalized, "{text:?}");
    }

    #[test]
    fn words_are_runs_of_letters_and_characters_without_spaces() {
        check("", &[], "");
        let expect = [("fn", 0), ("parse", 1), ("header", 2), ("self", 3)];
        check("fn parse_header(&self)", &expect, "fn parse header self");
        check("Größe ÉTÉ", &[("größe", 0), ("été", 1)], "größe été");
        let composed = [("café", 0), ("été", 1)];
        check("cafe\u{301} E\u{301}te\u{301}", &composed, "café été");
        check("\u{301}a\u{301} \u{301}", &[("á", 0)], "á");
        check("か\u{3099}き", &[("が", 0), ("き", 1)], "が き");
        check("v2漢字ok", &[("v2", 0), ("漢", 1), ("字", 2), ("ok", 3)], "v2 漢 字 ok");
        check(&format!("a {} b", "x".repeat(65)), &[("a", 0), ("b", 2)], "a … b");
        check(&"x".repeat(64), &[(&*"x".repeat(64), 0)], &"x".repeat(64));
    }
}
