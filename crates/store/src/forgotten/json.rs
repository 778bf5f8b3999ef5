//! The spellings of a text in JSON, also in JSON inside of JSON.

use std::collections::BTreeSet;

/// How many levels of JSON inside of JSON are searched.
pub(super) const LEVELS: u32 = 3;

/// The number of backslashes of an escape, at a level of JSON inside of JSON.
pub(super) const fn slashes(level: u32) -> usize {
    1 << (level - 1)
}

/// The text as it is and as in JSON strings on each level, without quotes and without escapes that
/// have digits: these are found by [`coded::find`](super::coded::find). Some programs escape `/`.
pub(super) fn spellings(text: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::from([text.to_owned()]);
    for _ in 0..LEVELS {
        for spelled in all.clone() {
            let inner = in_strings(spelled, 1);
            all.insert(inner.replace('/', "\\/"));
            all.insert(inner);
        }
    }
    all
}

/// A text as it is spelled in a JSON string that is in a JSON string, and so on, without quotes.
/// `levels` is the number of strings.
fn in_strings(mut text: String, levels: u32) -> String {
    for _ in 0..levels {
        let literal = serde_json::to_string(&text).unwrap_or_default();
        text = literal.get(1..literal.len().saturating_sub(1)).unwrap_or_default().to_owned();
    }
    text
}
