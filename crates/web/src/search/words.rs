//! The words of a text: what is indexed, and what is asked for.

use std::str::CharIndices;

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// What the index calls this way of finding words.
pub(super) const NAME: &str = "words";
/// Longer ones are hashes and pictures in base64: nobody types them.
pub(super) const LONGEST: usize = 64;

/// Runs of letters and digits in lower case; of scripts that put no spaces between words, each
/// character alone.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    token: Token,
}

impl Tokenizer for Words {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream<'a> {
        self.token.reset();
        WordStream { text, chars: text.char_indices(), next: None, token: &mut self.token }
    }
}

/// The words of one text.
pub(super) struct WordStream<'a> {
    text: &'a str,
    chars: CharIndices<'a>,
    /// A character that was read and belongs to the next word.
    next: Option<(usize, char)>,
    token: &'a mut Token,
}

impl WordStream<'_> {
    fn take(&mut self) -> Option<(usize, char)> {
        self.next.take().or_else(|| self.chars.next())
    }

    fn word(&mut self) -> bool {
        self.token.text.clear();
        let first = loop {
            match self.take() {
                Some((at, c)) if c.is_alphanumeric() => break (at, c),
                Some(_) => {}
                None => return false,
            }
        };
        let (from, c) = first;
        self.token.offset_from = from;
        self.token.text.extend(c.to_lowercase());
        let mut end = from + c.len_utf8();
        while !stands_alone(c) {
            match self.take() {
                Some((_, c)) if c.is_alphanumeric() && !stands_alone(c) => {
                    end += c.len_utf8();
                    self.token.text.extend(c.to_lowercase());
                }
                other => {
                    self.next = other.filter(|(_, c)| c.is_alphanumeric());
                    break;
                }
            }
        }
        self.token.offset_to = end;
        debug_assert!(self.text.is_char_boundary(end));
        true
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        loop {
            self.token.position = self.token.position.wrapping_add(1);
            if !self.word() {
                return false;
            }
            if self.token.text.len() <= LONGEST {
                return true;
            }
        }
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

/// Hands the words of a text to `take`.
pub(super) fn each(text: &str, mut take: impl FnMut(&Token)) {
    let mut words = Words::default();
    let mut stream = words.token_stream(text);
    while stream.advance() {
        take(stream.token());
    }
}

/// Han and kana, which know no spaces.
fn stands_alone(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[(&str, usize)]) {
        let mut found = Vec::new();
        each(text, |token| {
            let shown = &text[token.offset_from..token.offset_to];
            assert_eq!(shown.to_lowercase(), token.text);
            found.push((token.text.clone(), token.position));
        });
        let expect: Vec<_> = expect.iter().map(|(word, at)| ((*word).to_owned(), *at)).collect();
        assert_eq!(found, expect, "{text:?}");
    }

    #[test]
    fn words_are_runs_of_letters_and_characters_without_spaces() {
        check("", &[]);
        check("fn parse_header(&self)", &[("fn", 0), ("parse", 1), ("header", 2), ("self", 3)]);
        check("Größe ÉTÉ", &[("größe", 0), ("été", 1)]);
        check("v2漢字ok", &[("v2", 0), ("漢", 1), ("字", 2), ("ok", 3)]);
        check(&format!("a {} b", "x".repeat(65)), &[("a", 0), ("b", 2)]);
    }
}
