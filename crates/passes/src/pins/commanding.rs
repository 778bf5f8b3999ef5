//! The lines of a long rule file that command or forbid.

use std::sync::LazyLock;

use regex::Regex;

/// Words of a line that commands or forbids, in any case.
static COMMANDS: LazyLock<Regex> = LazyLock::new(|| {
    let words = concat!(
        "must|mustn't|never|always|do not|don't|does not|cannot|can't|may not|not allowed|only",
        "|require|requires|required|mandatory|forbidden|forbid|prohibited|disallowed|shall|should",
        "|shouldn't|avoid|prefer|ensure|make sure|important|instead of|rather than|unless|refuse",
    );
    Regex::new(&format!(r"(?i)(?-u:\b)(?:{words})(?-u:\b)")).expect("the words are fixed")
});

/// A heading of a list of rules: every item below it is one.
static HEADS_RULES: LazyLock<Regex> = LazyLock::new(|| {
    let words = concat!(
        "rules?|constraints?|guidelines?|conventions?|requirements?|polic(?:y|ies)|principles?",
        "|standards?|style|do not|don'ts?|never|always|must|forbidden|boundaries|instructions?",
    );
    Regex::new(&format!(r"(?i)(?-u:\b)(?:{words})(?-u:\b)")).expect("the words are fixed")
});

/// Every line that commands or forbids, with the headings above it: one with a word of command
/// (must, never, always, do not, only, required, forbidden, shall, should, avoid, prefer …), what
/// continues its list item, and every list item below a heading that speaks of rules.
pub fn commanding(text: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut headings: Vec<(usize, &str)> = Vec::new();
    let mut told = 0;
    let (mut of_rules, mut goes_on) = (None, false);
    for line in text.lines() {
        let words = line.trim();
        let level = words.bytes().take_while(|it| *it == b'#').count();
        if level > 0 && words[level..].starts_with(' ') {
            headings.retain(|(above, _)| *above < level);
            told = told.min(headings.len());
            headings.push((level, line));
            of_rules = of_rules.filter(|above| *above < level);
            if of_rules.is_none() && HEADS_RULES.is_match(words) {
                of_rules = Some(level);
            }
            goes_on = false;
            continue;
        }
        let is_indented = line.starts_with([' ', '\t']);
        let is_rule = COMMANDS.is_match(words) || of_rules.is_some() && is_item(words);
        goes_on = !words.is_empty() && (is_rule || goes_on && is_indented && !is_item(words));
        if goes_on {
            kept.extend(headings[told..].iter().map(|(_, heading)| *heading));
            told = headings.len();
            kept.push(line);
        }
    }
    kept.join("\n")
}

/// Whether a line is an item of a list.
fn is_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = number.len() < line.len() && number.starts_with([')', '.']);
    line.starts_with("- ") || line.starts_with("* ") || line.starts_with("+ ") || numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_command_stay_under_their_headings() {
        for (text, expect) in [
            ("Some words.\nNEVER push.\nMore words.", "NEVER push."),
            ("# A\nwords\n## B\nwords\n## C\nYou should test.", "# A\n## C\nYou should test."),
            (
                "# Style rules\nwords\n- two spaces\n- short names",
                "# Style rules\n- two spaces\n- short names",
            ),
            ("# Rules\n## Names\n1. short\n# Usage\n- run it", "# Rules\n## Names\n1. short"),
            (
                "- do not merge\n  what is red,\n  ever\n- fine",
                "- do not merge\n  what is red,\n  ever",
            ),
            ("The museum and the mustard.", ""),
            ("#hash is no heading, don't\n", "#hash is no heading, don't"),
        ] {
            assert_eq!(commanding(text), expect, "{text}");
        }
    }
}
