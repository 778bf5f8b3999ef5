//! Finds sentences in which the model states a decision or a finding.

use std::sync::LazyLock;

use crate::languages::LanguagePatterns;

/// Patterns of words that state a decision, a cause or a finding. In recorded sessions of six
/// agents, one in 20 sentences of the model has such a word.
static DECIDES: LazyLock<LanguagePatterns> = LazyLock::new(LanguagePatterns::decides);

/// The ends of a sentence; a Chinese or Japanese full stop needs no space after it.
const ENDS: [&str; 5] = [". ", "! ", "。", "！", "？"];

/// The first sentence of a line that states a decision, a cause or a finding; `None` if no sentence
/// does.
pub(crate) fn decision(line: &str) -> Option<&str> {
    let words = DECIDES.find(line)?;
    let mut begin = 0;
    let mut end = line.len();
    for (at, c) in line.char_indices() {
        if !ENDS.iter().any(|end| line[at..].starts_with(end)) {
            continue;
        }
        let sentence_end = at + c.len_utf8();
        if sentence_end <= words.start {
            begin = sentence_end;
        } else if sentence_end >= words.end {
            end = sentence_end;
            break;
        }
    }
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
            // The word that marks the decision is the last word of its sentence.
            ("Тесты это подтвердили. Дальше запись.", Some("Тесты это подтвердили.")),
            ("读完了。", None),
        ] {
            assert_eq!(decision(line), expect, "{line}");
        }
    }
}
