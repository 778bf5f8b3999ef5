//! Snippets: the part of a text around the matching words, on one line.

use std::ops::Range;

use epitome_render::visible;
use serde::Serialize;

use super::query::Clause;
use super::terms::{self, Word};

/// The approximate length of a snippet in bytes.
const LENGTH: usize = 200;
/// A snippet shows at most about this many bytes before the first matching word.
const BEFORE: usize = 60;
/// The maximum number of matches in a text that are considered.
const PLACES: usize = 5_000;

/// A part of a snippet. Control and invisible characters are made visible; markup is not escaped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Run {
    /// The text of the part.
    pub text: String,
    /// Whether the text matches the query.
    pub marked: bool,
}

/// Returns a snippet in which the words of these clauses are marked, or the beginning of the text
/// if no clause matches.
pub(super) fn snippet(text: &str, clauses: &[Clause]) -> Vec<Run> {
    let wanted: Vec<&Clause> = clauses.iter().filter(|clause| !clause.is_excluded).collect();
    let places = places(text, &wanted);
    let best = best(&places);
    let start = best.map_or(0, |at| begin(text, places[at].1.start));
    let end = end(text, start + LENGTH);
    let mut runs = Vec::new();
    let mut at = start;
    for (_, place) in &places[best.unwrap_or(0)..] {
        if place.start < at || place.end > end {
            continue;
        }
        push(&mut runs, &text[at..place.start], false);
        push(&mut runs, &text[place.clone()], true);
        at = place.end;
    }
    push(&mut runs, &text[at..end], false);
    if let Some(first) = runs.first_mut().filter(|_| start > 0) {
        first.text.insert(0, '…');
    }
    if let Some(last) = runs.last_mut().filter(|_| end < text.len()) {
        last.text.truncate(last.text.trim_end().len());
        last.text.push('…');
    }
    runs
}

/// The places in the text where clauses match, as ranges of bytes, in order, each with the index of
/// its clause. If places overlap, only the first is returned; if places begin at the same position,
/// only the longest.
fn places(text: &str, wanted: &[&Clause]) -> Vec<(usize, Range<usize>)> {
    let mut last: Vec<Word> = Vec::new();
    let longest = wanted.iter().map(|clause| clause.words.len()).max().unwrap_or(0);
    let mut places: Vec<(usize, Range<usize>)> = Vec::new();
    terms::each(text, |word| {
        if longest == 0 || places.len() >= PLACES || !word.is_indexed() {
            return;
        }
        if last.len() == longest {
            last.remove(0);
        }
        last.push(word.clone());
        for (idx, clause) in wanted.iter().enumerate() {
            let Some(from) = last.len().checked_sub(clause.words.len()) else { continue };
            let found = &last[from..];
            if is_met(clause, found) {
                places.push((idx, found[0].range.start..word.range.end));
            }
        }
    });
    places.sort_by_key(|(_, range)| (range.start, std::cmp::Reverse(range.end)));
    places.dedup_by(|later, earlier| later.1.start < earlier.1.end);
    places
}

/// Whether these words of a text, as many as the clause has, match the clause.
fn is_met(clause: &Clause, found: &[Word]) -> bool {
    let last = clause.words.len() - 1;
    let mut pairs = clause.words.iter().zip(found).enumerate();
    pairs.all(|(idx, (wanted, word))| {
        let is_same = if clause.is_prefix && idx == last {
            word.text.starts_with(wanted.as_str())
        } else {
            word.text == *wanted
        };
        is_same && word.place == found[0].place + idx
    })
}

/// The index of the place to begin a snippet with: the one with which the snippet contains matches
/// of the most clauses. Of several such places, the first; `None` if there are no places.
fn best(places: &[(usize, Range<usize>)]) -> Option<usize> {
    (0..places.len()).max_by_key(|&at| {
        let start = places[at].1.start;
        let near =
            places[at..].iter().take_while(|(_, place)| place.end <= start + LENGTH - BEFORE);
        let mut met: Vec<usize> = near.take(100).map(|(clause, _)| *clause).collect();
        met.sort_unstable();
        met.dedup();
        (met.len(), std::cmp::Reverse(at))
    })
}

/// The offset at which a snippet for a match at `at` begins: some bytes before the match, if
/// possible at the start of a word.
fn begin(text: &str, at: usize) -> usize {
    let from = text.floor_char_boundary(at.saturating_sub(BEFORE));
    if from == 0 {
        return 0;
    }
    // If no word starts in the first half of the bytes before the match, the snippet begins inside
    // of a word.
    let words = text[from..at].char_indices().take_while(|(at, _)| *at < BEFORE / 2);
    let space = words.skip_while(|(_, c)| !c.is_whitespace()).find(|(_, c)| !c.is_whitespace());
    space.map_or(from, |(space, _)| from + space)
}

fn end(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    let at = text.ceil_char_boundary(at);
    let behind = text[at..].find(char::is_whitespace).unwrap_or(text.len() - at);
    if behind <= BEFORE / 2 { at + behind } else { at }
}

fn push(runs: &mut Vec<Run>, text: &str, marked: bool) {
    let mut flat = String::with_capacity(text.len());
    let mut space = false;
    for c in text.chars() {
        if c.is_whitespace() {
            if !space {
                flat.push(' ');
            }
        } else {
            flat.push(c);
        }
        space = c.is_whitespace();
    }
    if !flat.is_empty() {
        runs.push(Run { text: visible(&flat), marked });
    }
}

#[cfg(test)]
mod tests {
    use super::super::Query;
    use super::*;

    fn check(query: &str, text: &str, expect: &str) {
        let query = Query::parse(query).expect("a query");
        let runs = snippet(text, &query.clauses);
        let shown: String = runs
            .iter()
            .map(|run| if run.marked { format!("[{}]", run.text) } else { run.text.clone() })
            .collect();
        assert_eq!(shown, expect, "{text:?}");
    }

    #[test]
    fn the_words_are_marked_and_shown_on_one_line() {
        check("checker", "the borrow\n\n  Checker says", "the borrow [Checker] says");
        check("\"borrow checker\"", "borrow it, borrow checker", "borrow it, [borrow checker]");
        check("foo_bar", "a foo_bar foo bar", "a [foo_bar] [foo bar]");
        let hash = "0".repeat(65);
        let shown = &hash[9..];
        check("\"a b\"", &format!("a {hash} b, a b"), &format!("…{shown} b, [a b]"));
        check("pars*", "parse, parser <b>", "[parse], [parser] <b>");
        check("x -y", "x\u{1b}[31my\u{202e}", "[x]␛[31my\\u{202e}");
        check("role:user", "just the beginning", "just the beginning");
        check("gone", "not here", "not here");
    }

    #[test]
    fn of_a_long_text_the_part_is_shown_with_most_of_the_words() {
        let filler = "lorem ipsum ".repeat(100);
        let text = format!("one {filler}one and two {filler}");
        let before = "ipsum lorem ipsum lorem ipsum lorem ipsum lorem ipsum";
        let behind = "lorem ipsum ".repeat(11);
        let expect = format!("…{before} [one] and [two] {behind}lorem…");
        check("one two", &text, &expect);
        let one_word = "ä".repeat(5_000);
        check("x", &format!("{one_word} x"), "…ääääääääääääääääääääääääääääää [x]");
    }
}
