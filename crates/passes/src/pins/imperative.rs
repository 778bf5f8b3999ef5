//! Finds the lines of a long rule file that command or forbid something.

use std::sync::LazyLock;

use crate::languages::LanguagePatterns;

/// Words in a line that commands or forbids something.
static COMMANDS: LazyLock<LanguagePatterns> = LazyLock::new(LanguagePatterns::commands);

/// Words in the heading of a list of rules: every list item below such a heading is a rule.
static HEADS_RULES: LazyLock<LanguagePatterns> = LazyLock::new(LanguagePatterns::rules);

/// If fewer than one line of a rule file commands or forbids something for every `FEW` list items
/// and emphasised lines, the file is taken to be in a language without a word list.
const FEW: usize = 20;

/// The lines of a rule file that command or forbid something, as [`rule_lines_by_words`] finds
/// them. If these lines, with the headings above them, are fewer than one for every `FEW` list
/// items and emphasised lines, the file is taken to be in a language without a word list: then
/// every list item and every emphasised line is a rule, too.
pub fn rule_lines(text: &str) -> String {
    let items = text.lines().map(str::trim).filter(|line| is_item(line) || stands_out(line));
    let in_words = rule_lines_by_words(text);
    if in_words.lines().count() * FEW >= items.count() {
        return in_words;
    }
    commanding_by(text, |line, _| is_item(line) || stands_out(line) || COMMANDS.are_in(line))
}

/// The lines that command or forbid something, with the headings above them. These are lines with a
/// word of command (must, never, always, do not, only, required, forbidden, shall, should, avoid,
/// prefer …, in ten languages), all list items below a heading that announces rules, and the
/// indented lines that continue any of these.
pub fn rule_lines_by_words(text: &str) -> String {
    commanding_by(text, |line, is_below| COMMANDS.are_in(line) || is_below && is_item(line))
}

/// The lines that are rules, each with its continuation lines and the headings above it. `is_rule`
/// receives a line, and whether the line is below a heading that announces rules.
fn commanding_by(text: &str, is_rule: impl Fn(&str, bool) -> bool) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut headings: Vec<(usize, &str)> = Vec::new();
    // The number of `headings` that are in `kept`.
    let mut written = 0;
    // The level of the heading that announces rules, while the lines below that heading are read.
    let mut of_rules = None;
    let mut goes_on = false;
    for line in text.lines() {
        let words = line.trim();
        let level = words.bytes().take_while(|it| *it == b'#').count();
        if level > 0 && words[level..].starts_with(' ') {
            headings.retain(|(above, _)| *above < level);
            written = written.min(headings.len());
            headings.push((level, line));
            of_rules = of_rules.filter(|above| *above < level);
            if of_rules.is_none() && HEADS_RULES.are_in(words) {
                of_rules = Some(level);
            }
            goes_on = false;
            continue;
        }
        let is_indented = line.starts_with([' ', '\t']);
        let is_rule = is_rule(words, of_rules.is_some());
        goes_on = !words.is_empty() && (is_rule || goes_on && is_indented && !is_item(words));
        if goes_on {
            kept.extend(headings[written..].iter().map(|(_, heading)| *heading));
            written = headings.len();
            kept.push(line);
        }
    }
    kept.join("\n")
}

/// Whether a line is emphasised: it begins in bold, or ends with an exclamation mark.
fn stands_out(line: &str) -> bool {
    line.starts_with("**") || line.starts_with("__") || line.ends_with(['!', '！'])
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
            ("# Regeln\nWorte\n- zwei Leerzeichen", "# Regeln\n- zwei Leerzeichen"),
            ("Etwas.\nNiemals nach main pushen.\nNoch etwas.", "Niemals nach main pushen."),
            ("介绍。\n不要使用 unwrap。\n结束。", "不要使用 unwrap。"),
            ("Texto.\nNunca subas a main.\nMás.", "Nunca subas a main."),
            ("説明。\nunwrap は禁止。\n終わり。", "unwrap は禁止。"),
            ("Текст.\nНельзя менять схему.\nЕщё.", "Нельзя менять схему."),
            // In a language without a word list, every list item and every emphasised line is taken
            // for a rule.
            (
                "# Zasady\nOpis projektu.\n- dwie spacje\n  zawsze\n- krótkie nazwy\n\
                 **Testy przed commitem.**",
                "# Zasady\n- dwie spacje\n  zawsze\n- krótkie nazwy\n**Testy przed commitem.**",
            ),
            ("The museum and the mustard.", ""),
            ("#hash is no heading, don't\n", "#hash is no heading, don't"),
        ] {
            assert_eq!(rule_lines(text), expect, "{text}");
        }
    }
}
