//! Finds the name that the user probably meant by a misspelt one.

/// The most similar of the `known` names. `None` if none is similar enough.
pub(crate) fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let scored = known.map(|known| {
        // The last word of a name may be right although its table is wrong.
        let same_word = if last_word(name) == last_word(known) { 0.9 } else { 0.0 };
        (strsim::jaro_winkler(name, known).max(same_word), known)
    });
    let scored = scored.filter(|(score, _)| *score > 0.75);
    // Of several equally similar names, the first is returned.
    scored.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, known)| known)
}

fn last_word(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::keys::KEYS;

    #[test]
    fn a_name_that_was_probably_meant_is_found() {
        let near = |name| nearest(name, KEYS.iter().map(|key| key.name.as_str()));
        for (name, expect) in [
            ("compaction.reciepe", Some("compaction.recipe")),
            ("recipe", Some("compaction.recipe")),
            ("live.windows", Some("live.window")),
            ("compaction.keep.result", Some("compaction.keep.results")),
            ("zzz", None),
        ] {
            assert_eq!(near(name), expect, "{name}");
        }
    }
}
