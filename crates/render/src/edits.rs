//! Describes the edits of a compaction.

use std::collections::BTreeMap;

use epitome_model::plural;

/// Passes, with the noun and the verb that describe their edits, the most important first.
const WORDS: [(&str, &str, &str); 7] = [
    ("results", "tool output", "shortened"),
    ("stale", "outdated file read", "dropped"),
    ("repeats", "repeated text", "dropped"),
    ("thinking", "thinking block", "removed"),
    ("arguments", "long argument", "shortened"),
    ("images", "image", "removed"),
    ("copies", "duplicate", "removed"),
];

/// A description of each pass's edits, with their number: `150 tool outputs shortened`.
pub fn edits(by_pass: &BTreeMap<String, u64>) -> Vec<String> {
    let known = WORDS.iter().filter_map(|(pass, what, verb)| {
        Some(format!("{} {verb}", plural(*by_pass.get(*pass)?, what)))
    });
    let others = by_pass.iter().filter(|(pass, _)| !WORDS.iter().any(|(known, ..)| known == pass));
    known.chain(others.map(|(pass, n)| format!("{pass} {n}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_told_in_words() {
        let counts = [("copies", 2), ("new", 3), ("results", 150), ("stale", 1)];
        let counts = counts.map(|(pass, n)| (pass.to_owned(), n));
        assert_eq!(
            edits(&BTreeMap::from(counts)),
            [
                "150 tool outputs shortened",
                "1 outdated file read dropped",
                "2 duplicates removed",
                "new 3"
            ]
        );
    }
}
