//! What a compaction does, in words.

use std::collections::BTreeMap;

/// What a pass does, with the words for one and for several, what matters most first.
const WORDS: [(&str, &str, &str); 7] = [
    ("results", "tool output shortened", "tool outputs shortened"),
    ("stale", "outdated file read dropped", "outdated file reads dropped"),
    ("repeats", "repeated text dropped", "repeated texts dropped"),
    ("thinking", "thinking block removed", "thinking blocks removed"),
    ("arguments", "long argument shortened", "long arguments shortened"),
    ("images", "image removed", "images removed"),
    ("copies", "duplicate removed", "duplicates removed"),
];

/// What each pass did, by its name and how often: `150 tool outputs shortened`.
pub fn edits(by_pass: &BTreeMap<String, u64>) -> Vec<String> {
    let known = WORDS.iter().filter_map(|(pass, one, several)| {
        let n = *by_pass.get(*pass)?;
        Some(format!("{n} {}", if n == 1 { one } else { several }))
    });
    let is_known = |pass: &str| WORDS.iter().any(|(known, ..)| *known == pass);
    let others = by_pass.iter().filter(|(pass, _)| !is_known(pass));
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
