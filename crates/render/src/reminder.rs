//! Reminders that an agent puts into other texts.

use std::borrow::Cow;
use std::ops::Range;

const BEGIN: &str = "<system-reminder>";
const END: &str = "</system-reminder>";

/// A text without its reminders, and the reminders. A reminder begins at the start of a line and
/// ends at the end of one; in other places its tags are text.
pub(crate) fn without_reminders(text: &str) -> (Cow<'_, str>, Vec<&str>) {
    let mut kept = String::new();
    let mut reminders = Vec::new();
    let mut rest = text;
    while let Some(at) = reminder(rest) {
        reminders.push(rest[at.start + BEGIN.len()..at.end - END.len()].trim());
        kept.push_str(without_last_line_feed(without_last_line_feed(&rest[..at.start])));
        rest = &rest[at.end..];
    }
    if reminders.is_empty() {
        return (text.into(), reminders);
    }
    if !rest.trim().is_empty() {
        kept.push_str(if kept.is_empty() { rest.trim_start() } else { rest });
    }
    (kept.into(), reminders)
}

/// Removes a line feed at the end, which separates a text from the reminder after it.
fn without_last_line_feed(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}

/// The range of the first reminder, with its tags.
fn reminder(text: &str) -> Option<Range<usize>> {
    let begins = text.match_indices(BEGIN).map(|(at, _)| at);
    let mut lines = begins.filter(|at| *at == 0 || text.as_bytes()[at - 1] == b'\n');
    lines.find_map(|begin| {
        let end = begin + text[begin..].find(END)? + END.len();
        let is_alone = text[end..].is_empty() || text[end..].starts_with('\n');
        is_alone.then_some(begin..end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, kept: &str, reminders: &[&str]) {
        assert_eq!(without_reminders(text), (kept.into(), reminders.to_vec()), "{text:?}");
    }

    #[test]
    fn a_reminder_has_lines_of_its_own() {
        let of = |text: &str| format!("<system-reminder>{text}</system-reminder>");
        check("a\nb\n", "a\nb\n", &[]);
        check(&format!("a\nb\n\n{}\n", of("\nMind <x>.\n")), "a\nb", &["Mind <x>."]);
        check(&format!("{}\n\na", of("M.")), "a", &["M."]);
        check(&of("M."), "", &["M."]);
        check(&format!("a\n\n{}\n\n{}", of("M."), of("N.")), "a", &["M.", "N."]);
        check(&format!("a\n\n{}\nb\n", of("M.")), "a\nb\n", &["M."]);
        let inside = format!("a {}", of("M."));
        check(&inside, &inside, &[]);
        check("1\t<system-reminder>\n2\t", "1\t<system-reminder>\n2\t", &[]);
        check("<system-reminder>\nno end", "<system-reminder>\nno end", &[]);
        let goes_on = format!("{}, it said", of("M."));
        check(&goes_on, &goes_on, &[]);
    }
}
