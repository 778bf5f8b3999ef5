//! Words in ten languages for failures, commands and decisions.
//!
//! The lists are data: `languages.toml` says what each list is for, and why it has these languages.
//! Words only support rules that work without them; no decision depends on words alone.

use std::sync::{LazyLock, OnceLock};

use regex::{Regex, bytes};
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

/// Patterns of all languages for one purpose.
pub struct LanguagePatterns {
    /// The patterns that can match a line of pure ASCII.
    ascii: bytes::Regex,
    /// All patterns, as one expression.
    expression: String,
    /// The compiled expression. It takes longer to compile than a small session to compact, and
    /// many sessions have nothing but ASCII.
    all: OnceLock<Regex>,
}

impl LanguagePatterns {
    /// Patterns of failures. `more` are patterns that depend on no language.
    pub fn failed(more: &[&str]) -> LanguagePatterns {
        let of = |it: &Language| {
            let nouns = it.error.iter().flat_map(|noun| noun_of_failure(noun));
            nouns.chain(it.failed.iter().map(|phrase| bounded(phrase))).collect()
        };
        LanguagePatterns::new(of, more)
    }

    /// Patterns that mean a failure only in the output of a failed call.
    pub fn may_say() -> LanguagePatterns {
        LanguagePatterns::new(|it| it.may_say.clone(), &[])
    }

    /// Patterns that command or forbid.
    pub fn commands() -> LanguagePatterns {
        LanguagePatterns::new(|it| all_bounded(&it.commands), &[])
    }

    /// Patterns in headings of lists of rules.
    pub fn rules() -> LanguagePatterns {
        LanguagePatterns::new(|it| all_bounded(&it.rules), &[])
    }

    /// Patterns of decisions, causes and findings.
    pub fn decides() -> LanguagePatterns {
        LanguagePatterns::new(|it| all_bounded(&it.decides), &[])
    }

    fn new(of: impl Fn(&Language) -> Vec<String>, more: &[&str]) -> LanguagePatterns {
        let mut all: Vec<String> = more.iter().map(|it| (*it).to_owned()).collect();
        all.extend(LANGUAGES.iter().flat_map(of));
        let any = |of: &[String]| {
            // Use ASCII word boundaries, which are much faster.
            format!("(?i:{})", of.join("|")).replace(r"\b", r"(?-u:\b)")
        };
        let ascii: Vec<String> = all.iter().filter(|it| it.is_ascii()).cloned().collect();
        // In ASCII text a character is a byte.
        let ascii = bytes::RegexBuilder::new(&any(&ascii)).unicode(false).build();
        LanguagePatterns {
            ascii: ascii.expect("a test reads the languages"),
            expression: any(&all),
            all: OnceLock::new(),
        }
    }

    /// All patterns, compiled on first use.
    fn all(&self) -> &Regex {
        self.all.get_or_init(|| Regex::new(&self.expression).expect("a test reads the languages"))
    }

    /// Whether a line matches.
    pub fn are_in(&self, line: &str) -> bool {
        match line.is_ascii() {
            true => self.ascii.is_match(line.as_bytes()),
            false => self.all().is_match(line),
        }
    }

    /// The range of the first match in a line.
    pub fn find(&self, line: &str) -> Option<std::ops::Range<usize>> {
        match line.is_ascii() {
            true => self.ascii.find(line.as_bytes()).map(|found| found.range()),
            false => self.all().find(line).map(|found| found.range()),
        }
    }
}

fn all_bounded(words: &[String]) -> Vec<String> {
    words.iter().map(|it| bounded(it)).collect()
}

/// A pattern with word boundaries at those ends that are ASCII letters; words of other scripts have
/// no boundaries.
fn bounded(words: &str) -> String {
    let is_letter = |c: char| c.is_ascii_alphanumeric();
    let begins = words.starts_with(is_letter) || words.is_ascii() && words.starts_with('(');
    let ends = words.ends_with(is_letter) || words.is_ascii() && words.ends_with([')', '?']);
    let ends = ends && !words.ends_with(r"\w");
    let edge = |is_edge| if is_edge { r"\b" } else { "" };
    format!("{}(?:{words}){}", edge(begins), edge(ends))
}

/// Patterns for a noun that reports a failure: before a colon, a bracket or a number other than 0,
/// or as the first word of a line.
fn noun_of_failure(noun: &str) -> [String; 2] {
    let word = bounded(noun);
    let rest = r"\s*(?:$|[^\s0]|0\w)";
    let number = r"\s+(?:TS|code)?\d";
    // Words of other scripts have no boundary.
    let ends = if noun.is_ascii() { "" } else { r"(?:$|\P{L})" };
    [
        format!(r"{word}(?:\[|\s*[:=]{rest}|{number})|^\s*{word}{ends}"),
        format!(r"{word}\s*：{rest}"),
    ]
}

#[cfg(test)]
mod tests {
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
            LanguagePatterns::failed(&[]),
            LanguagePatterns::may_say(),
            LanguagePatterns::commands(),
            LanguagePatterns::rules(),
        ];
        for words in kinds.into_iter().chain([LanguagePatterns::decides()]) {
            assert!(!words.are_in("tea for two"));
            assert!(!words.are_in("thé pour deux"));
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
