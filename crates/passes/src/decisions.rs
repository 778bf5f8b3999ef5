//! What the model says that it decided or found out.

use std::sync::LazyLock;

use regex::Regex;

/// Words of a sentence that says a decision, a cause or a finding, in any case. Of the recorded
/// sessions of six agents, one sentence of the model in 20 has one of them.
static DECIDES: LazyLock<Regex> = LazyLock::new(|| {
    let words = concat!(
        "decided|decision|chose|chosen|opted|settled on|I'll go with|going with|instead of",
        "|rather than|because|therefore|root cause|caused by|turns out|no longer|trade-?offs?",
        "|the (?:(?:real|actual|main) )?(?:fix|solution|problem|issue|bug|reason|cause) (?:is|was)",
        "|which means|confirmed|confirms",
    );
    Regex::new(&format!(r"(?i)(?-u:\b)(?:{words})(?-u:\b)")).expect("the words are fixed")
});

/// The first sentence of a line that says what was decided, what is the cause of something, or
/// what was found. None: no sentence of it does.
pub(crate) fn decision(line: &str) -> Option<&str> {
    let words = DECIDES.find(line)?;
    let ends = |at: &usize| line[*at..].starts_with(". ") || line[*at..].starts_with("! ");
    let places = || line.char_indices().map(|(at, _)| at).filter(ends);
    let begin = places().take_while(|at| *at < words.start()).last().map_or(0, |at| at + 2);
    let end = places().find(|at| *at >= words.end()).map_or(line.len(), |at| at + 1);
    Some(line[begin..end].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_that_decides_is_found() {
        for (line, expect) in [
            ("Now the tests.", None),
            ("- The root cause is a lost lock.", Some("- The root cause is a lost lock.")),
            (
                "I read it. I use zstd instead of gzip! It is faster. Next: tests",
                Some("I use zstd instead of gzip!"),
            ),
            ("Größe. Because of é", Some("Because of é")),
            ("The clause is chosenness.", None),
        ] {
            assert_eq!(decision(line), expect, "{line}");
        }
    }
}
