//! The topic that a user names for a digest: lines that contain its words have a higher value.

use std::collections::BTreeSet;

use epitome_model::parallel;
use regex::{RegexSet, RegexSetBuilder, escape};

use super::pieces::{Piece, Speaker};

/// What is added to the value of a line that contains all words of the topic.
const WORTH: f64 = 4.0;
/// Maximum number of words of a topic.
const MOST: usize = 40;
/// A word with at least this many characters also matches as a part of a longer word.
const PART: usize = 4;

/// The words of a topic, and how much each of them adds to the value of a line: a rare word adds
/// more.
pub(super) struct Focus {
    words: Option<RegexSet>,
    worth: Vec<f64>,
}

impl Focus {
    /// Splits a topic into words and gives each word a value, which is higher the fewer lines of
    /// the pieces contain the word. Lines of reasoning are not counted.
    pub fn new(text: &str, pieces: &[Piece]) -> Focus {
        let words = words(text);
        let patterns = words.iter().map(|word| pattern(word));
        let set = RegexSetBuilder::new(patterns).case_insensitive(true).build().ok();
        let Some(set) = set.filter(|set| !set.is_empty()) else {
            return Focus { words: None, worth: Vec::new() };
        };
        let searched_pieces =
            pieces.iter().filter(|piece| piece.speaker != Speaker::Thinking).collect();
        let found = parallel::map(searched_pieces, |piece: &Piece| {
            let words = piece.lines.iter().map(|line| set.matches(&line.text));
            words.flatten().collect::<Vec<usize>>()
        });
        let lines = pieces.iter().filter(|piece| piece.speaker != Speaker::Thinking);
        let mut sums = vec![0; set.len() + 1];
        sums[0] = lines.map(|piece| piece.lines.len() as u64).sum();
        found.iter().flatten().for_each(|word| sums[word + 1] += 1);
        let rarities =
            sums[1..].iter().map(|with| (sums[0] as f64 / (*with).max(1) as f64).ln_1p());
        let rarities: Vec<f64> = rarities.collect();
        // A word that no line contains does not lower the values of the other words.
        let there = rarities.iter().zip(&sums[1..]).filter(|(_, with)| **with > 0);
        let all: f64 = there.map(|(rarity, _)| rarity).sum();
        let worth = rarities.iter().map(|rarity| WORTH * rarity / all.max(1e-9)).collect();
        Focus { words: Some(set), worth }
    }

    /// What the topic adds to the value of a text: the sum of the values of the words that the text
    /// contains; 0 without a topic.
    pub fn worth(&self, text: &str) -> f64 {
        let Some(words) = &self.words else { return 0.0 };
        words.matches(text).iter().map(|word| self.worth[word]).sum()
    }
}

/// The words of a text, without repetitions, at most [`MOST`]. In a script without spaces, every
/// two adjacent characters are taken for a word.
fn words(text: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut words = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
        let word = word.to_lowercase();
        let chars: Vec<char> = word.chars().collect();
        let parts = match chars.len() {
            0 => Vec::new(),
            1 => vec![word.clone()],
            _ if chars.iter().any(|c| is_unspaced(*c)) => {
                chars.windows(2).map(|pair| pair.iter().collect()).collect()
            }
            _ => vec![word.clone()],
        };
        words.extend(parts.into_iter().filter(|word| found.insert(word.clone())));
    }
    words.truncate(MOST);
    words
}

/// Whether a character belongs to a script without spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

/// A pattern for a word. A short word must match a whole word. A longer word, or one in a script
/// without spaces, may match a part of a word.
fn pattern(word: &str) -> String {
    let is_short = word.chars().count() < PART && !word.chars().any(is_unspaced);
    if is_short { format!(r"\b{}\b", escape(word)) } else { escape(word) }
}
