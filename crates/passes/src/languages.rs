//! Words in ten languages for failures, commands and decisions.
//!
//! The lists are data: `languages.toml` says what each list is for, and why it has these languages.
//! For failures and rules, words only add to what is recognised without them, such as the status of
//! a call or the shape of a list. Decisions are recognised by words alone.

use std::sync::{LazyLock, OnceLock};

use regex::{Regex, RegexBuilder, bytes};
use serde::Deserialize;

/// The words of one language.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Language {
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the table"))]
    name: String,
    error: Vec<String>,
    failed: Vec<String>,
    may_say: Vec<String>,
    commands: Vec<String>,
    rules: Vec<String>,
    decides: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Languages {
    language: Vec<Language>,
}

static LANGUAGES: LazyLock<Vec<Language>> = LazyLock::new(|| {
    let languages: Languages =
        toml::from_str(include_str!("languages.toml")).expect("a test reads the languages");
    languages.language
});

/// Maximum memory, in bytes, of the automaton that reads lines with characters other than ASCII.
/// The automaton allocates only what it needs. With the default maximum of 2 MiB, the automaton
/// discards its states again and again, and then a different engine reads the lines, which takes
/// 1,000 times as long.
const DFA_BYTES: usize = 32 << 20;

/// Patterns of all languages for one purpose.
pub struct LanguagePatterns {
    /// The patterns that can match a line of pure ASCII.
    ascii: bytes::Regex,
    /// All patterns, as one expression.
    expression: String,
    /// All patterns as a compiled expression, compiled at the first use: this takes longer than
    /// compacting a small session, and many sessions contain only ASCII.
    all: OnceLock<Regex>,
}

impl LanguagePatterns {
    /// Patterns of failures. `more` are patterns that depend on no language.
    pub fn failures(more: &[&str]) -> LanguagePatterns {
        let mut patterns: Vec<String> = more.iter().map(|it| (*it).to_owned()).collect();
        patterns.extend(nouns_of_failure(|noun| noun.is_ascii()));
        patterns.extend(nouns_of_failure(|noun| !noun.is_ascii()));
        let phrases = LANGUAGES.iter().flat_map(|language| &language.failed);
        patterns.extend(phrases.map(|phrase| bounded(phrase)));
        LanguagePatterns::new(&patterns)
    }

    /// Patterns of words that mean a failure only in the output of a failed call.
    pub fn may_say() -> LanguagePatterns {
        LanguagePatterns::new(&of_all_languages(|language| &language.may_say))
    }

    /// Patterns of words that command or forbid something.
    pub fn commands() -> LanguagePatterns {
        LanguagePatterns::new(&all_bounded(|language| &language.commands))
    }

    /// Patterns of words in the headings of lists of rules.
    pub fn rules() -> LanguagePatterns {
        LanguagePatterns::new(&all_bounded(|language| &language.rules))
    }

    /// Patterns of decisions, causes and findings.
    pub fn decides() -> LanguagePatterns {
        LanguagePatterns::new(&all_bounded(|language| &language.decides))
    }

    fn new(all: &[String]) -> LanguagePatterns {
        let ascii: Vec<String> = all.iter().filter(|it| it.is_ascii()).cloned().collect();
        // In ASCII text a character is a byte.
        let ascii = bytes::RegexBuilder::new(&any_of(&ascii)).unicode(false).build();
        LanguagePatterns {
            ascii: ascii.expect("a test reads the languages"),
            expression: any_of(all),
            all: OnceLock::new(),
        }
    }

    /// All patterns, compiled on first use.
    fn all(&self) -> &Regex {
        self.all.get_or_init(|| {
            let mut builder = RegexBuilder::new(&self.expression);
            builder.dfa_size_limit(DFA_BYTES).build().expect("a test reads the languages")
        })
    }

    /// Whether any of the patterns matches a part of a line.
    pub fn are_in(&self, line: &str) -> bool {
        match line.is_ascii() {
            true => self.ascii.is_match(line.as_bytes()),
            false => self.all().is_match(line),
        }
    }

    /// The range of the first match in a line; `None` if no pattern matches.
    pub fn find(&self, line: &str) -> Option<std::ops::Range<usize>> {
        match line.is_ascii() {
            true => self.ascii.find(line.as_bytes()).map(|found| found.range()),
            false => self.all().find(line).map(|found| found.range()),
        }
    }
}

/// A pattern that matches wherever one of these patterns matches.
fn any_of(patterns: &[String]) -> String {
    // Use ASCII word boundaries, which are much faster.
    format!("(?i:{})", patterns.join("|")).replace(r"\b", r"(?-u:\b)")
}

/// The words of all languages for one purpose.
fn of_all_languages(words: fn(&Language) -> &Vec<String>) -> Vec<String> {
    LANGUAGES.iter().flat_map(words).cloned().collect()
}

/// The words of all languages for one purpose, with word boundaries.
fn all_bounded(words: fn(&Language) -> &Vec<String>) -> Vec<String> {
    LANGUAGES.iter().flat_map(words).map(|it| bounded(it)).collect()
}

/// Adds a word boundary at each end of a pattern where an ASCII word begins or ends. No boundary is
/// added to words in other scripts.
fn bounded(words: &str) -> String {
    let is_letter = |c: char| c.is_ascii_alphanumeric();
    let begins = words.starts_with(is_letter) || words.is_ascii() && words.starts_with('(');
    let ends = words.ends_with(is_letter) || words.is_ascii() && words.ends_with([')', '?']);
    let ends = ends && !words.ends_with(r"\w");
    let before = if begins { r"\b" } else { "" };
    let after = if ends { r"\b" } else { "" };
    format!("{before}(?:{words}){after}")
}

/// Patterns for the nouns of all languages for which `is_wanted` is true. A noun reports a failure
/// before `[`, before `:` or `=` (unless the number 0 follows), before a number, or as the first
/// word of a line.
///
/// All nouns are in one group, so that the pattern contains the large character classes after them
/// only once.
fn nouns_of_failure(is_wanted: fn(&str) -> bool) -> [String; 2] {
    let nouns = LANGUAGES.iter().flat_map(|language| &language.error);
    let wanted = nouns.filter(|noun| is_wanted(noun));
    let bounded: Vec<String> = wanted.map(|noun| bounded(noun)).collect();
    let word = format!("(?:{})", bounded.join("|"));
    let rest = r"\s*(?:$|[^\s0]|0\w)";
    let number = r"\s+(?:TS|code)?\d";
    // Nouns in other scripts have no word boundary. Instead, the next character must not be a
    // letter.
    let ends = if word.is_ascii() { "" } else { r"(?:$|\P{L})" };
    [
        format!(r"{word}(?:\[|\s*[:=]{rest}|{number})|^\s*{word}{ends}"),
        format!(r"{word}\s*：{rest}"),
    ]
}

#[cfg(test)]
mod tests {
    use regex_automata::hybrid;

    use super::*;

    #[test]
    fn every_language_has_words_of_every_kind() {
        let names: Vec<&str> = LANGUAGES.iter().map(|it| &*it.name).collect();
        let expect = [
            "English",
            "Chinese",
            "Spanish",
            "Portuguese",
            "French",
            "German",
            "Japanese",
            "Russian",
            "Korean",
            "Turkish",
        ];
        assert_eq!(names, expect);
        for language in LANGUAGES.iter() {
            let Language { name, error, failed, may_say, commands, rules, decides } = language;
            for words in [error, failed, may_say, commands, rules, decides] {
                assert!(!words.is_empty(), "{name}");
            }
        }
        let kinds = [
            LanguagePatterns::failures(&[]),
            LanguagePatterns::may_say(),
            LanguagePatterns::commands(),
            LanguagePatterns::rules(),
        ];
        for words in kinds.into_iter().chain([LanguagePatterns::decides()]) {
            assert!(!words.are_in("tea for two"));
            assert!(!words.are_in("thé pour deux"));
        }
    }

    /// If an automaton must discard its states too often, another engine takes over, which is far
    /// slower.
    #[test]
    fn there_is_room_for_the_automaton_of_each_kind() {
        let kinds = [
            LanguagePatterns::failures(&[]),
            LanguagePatterns::may_say(),
            LanguagePatterns::commands(),
            LanguagePatterns::rules(),
            LanguagePatterns::decides(),
        ];
        let mut lines = Vec::new();
        for language in LANGUAGES.iter() {
            let Language { error, failed, may_say, commands, rules, decides, name: _ } = language;
            for word in [error, failed, may_say, commands, rules, decides].into_iter().flatten() {
                lines.push(format!("→ {word}: {word} — {word}"));
            }
        }
        for LanguagePatterns { expression, .. } in kinds {
            let room = hybrid::dfa::Config::new().cache_capacity(DFA_BYTES);
            let automaton = hybrid::regex::Builder::new().dfa(room).build(&expression);
            let automaton = automaton.expect("an automaton");
            let mut cache = automaton.create_cache();
            for line in &lines {
                automaton.find(&mut cache, line);
            }
            let (forward, reverse) = cache.as_parts();
            assert_eq!((forward.clear_count(), reverse.clear_count()), (0, 0));
        }
    }

    #[test]
    fn a_word_ends_where_its_letters_do() {
        for (words, expect) in [
            ("never", r"\b(?:never)\b"),
            ("ошибка", "(?:ошибка)"),
            ("échec", r"(?:échec)\b"),
            ("falló", r"\b(?:falló)"),
            ("rules?", r"\b(?:rules?)\b"),
            ("not found:", r"\b(?:not found:)"),
        ] {
            assert_eq!(bounded(words), expect);
        }
    }
}
