//! Finds sentences in which the model states a decision or a finding.

use std::sync::LazyLock;

use crate::languages::LanguagePatterns;

/// Words in sentences that state a decision, a cause or a finding. In recorded sessions of six
/// agents, one in 20 sentences of the model has such a word.
static DECIDES: LazyLock<LanguagePatterns> = LazyLock::new(LanguagePatterns::decides);

/// The ends of a sentence; a Chinese or Japanese full stop needs no space after it.
const ENDS: [&str; 5] = [". ", "! ", "。", "！", "？"];

/// The first sentence of a line that states a decision, a cause or a finding, if there is one.
pub(crate) fn decision(line: &str) -> Option<&str> {
    let words = DECIDES.find(line)?;
    // The position after the last character of a sentence.
    let end_of = |(at, c): (usize, char)| {
        ENDS.iter().any(|end| line[at..].starts_with(end)).then_some(at + c.len_utf8())
    };
    let ends = || line.char_indices().filter_map(end_of);
    let begin = ends().take_while(|end| *end <= words.start).last().unwrap_or(0);
    let end = ends().find(|end| *end >= words.end).unwrap_or(line.len());
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
            (
                "Gelesen. Die Ursache ist eine Sperre. Nun die Tests.",
                Some("Die Ursache ist eine Sperre."),
            ),
            ("看了代码。根本原因是锁被取了两次。接下来测试。", Some("根本原因是锁被取了两次。")),
            ("Leído. La causa es un bloqueo.", Some("La causa es un bloqueo.")),
            ("読みました。原因はロックです。", Some("原因はロックです。")),
            ("Прочитал. Причина в блокировке.", Some("Причина в блокировке.")),
            ("读完了。", None),
        ] {
            assert_eq!(decision(line), expect, "{line}");
        }
    }
}
