//! Line diffs of two texts.

use std::borrow::Cow;

use similar::{ChangeTag, TextDiff};

/// The kind of a line in a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineChange {
    /// The line is in both texts.
    Same,
    /// The line is only in the first text.
    Removed,
    /// The line is only in the second text.
    Added,
}

/// A line of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffLine {
    /// A line without its line feed.
    Shown(LineChange, String),
    /// The number of lines that are left out.
    Hidden(LineChange, usize),
}

/// Returns all lines of two texts. If a run of removed, added or equal lines is more than one line
/// longer than `most`, only `most` of them are returned, the first and the last ones, with a
/// [`DiffLine::Hidden`] between them. A last line with and without a line feed counts as the same.
pub fn diff_lines(before: &str, after: &str, most: usize) -> Vec<DiffLine> {
    let before = ended(before);
    let after = ended(after);
    let diff = TextDiff::from_lines(&*before, &*after);
    let mut lines = Vec::new();
    let mut run: Vec<DiffLine> = Vec::new();
    let mut run_change = LineChange::Same;
    for change in diff.iter_all_changes() {
        let line_change = change_of(change.tag());
        if line_change != run_change {
            end_run(&mut lines, &mut run, run_change, most);
            run_change = line_change;
        }
        run.push(DiffLine::Shown(line_change, line(change.value())));
    }
    end_run(&mut lines, &mut run, run_change, most);
    lines
}

/// Returns the lines in which two texts differ, with at most `around` equal lines before and after
/// each difference, and the number of equal lines that are left out between them.
pub fn changed_lines(before: &str, after: &str, around: usize) -> Vec<DiffLine> {
    let before = ended(before);
    let after = ended(after);
    let diff = TextDiff::from_lines(&*before, &*after);
    let mut lines = Vec::new();
    let mut end = 0;
    for group in diff.grouped_ops(around) {
        if let Some(first) = group.first().filter(|_| end > 0) {
            lines.push(DiffLine::Hidden(LineChange::Same, first.new_range().start - end));
        }
        for op in &group {
            let changes = diff.iter_changes(op);
            lines.extend(changes.map(|it| DiffLine::Shown(change_of(it.tag()), line(it.value()))));
            end = op.new_range().end;
        }
    }
    lines
}

/// Adds a run of lines, and replaces the middle of a long one by the number of its lines.
fn end_run(lines: &mut Vec<DiffLine>, run: &mut Vec<DiffLine>, change: LineChange, most: usize) {
    if run.len() > most + 1 {
        let hidden = run.len() - most;
        run.splice(most / 2..most / 2 + hidden, [DiffLine::Hidden(change, hidden)]);
    }
    lines.append(run);
}

fn change_of(tag: ChangeTag) -> LineChange {
    match tag {
        ChangeTag::Equal => LineChange::Same,
        ChangeTag::Delete => LineChange::Removed,
        ChangeTag::Insert => LineChange::Added,
    }
}

fn line(text: &str) -> String {
    text.strip_suffix('\n').unwrap_or(text).to_owned()
}

fn ended(text: &str) -> Cow<'_, str> {
    if text.is_empty() || text.ends_with('\n') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{text}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(lines: Vec<DiffLine>) -> String {
        let mark = |change| match change {
            LineChange::Same => ' ',
            LineChange::Removed => '-',
            LineChange::Added => '+',
        };
        let line = |line| match line {
            DiffLine::Shown(change, text) => format!("{}{text}\n", mark(change)),
            DiffLine::Hidden(change, lines) => format!("{}…{lines}\n", mark(change)),
        };
        lines.into_iter().map(line).collect()
    }

    #[test]
    fn the_middle_of_a_long_run_is_counted() {
        assert_eq!(marked(diff_lines("one\ntwo\n", "two\nthree\n", 12)), "-one\n two\n+three\n");
        assert_eq!(marked(diff_lines("one\ntwo", "two\nthree\n", 12)), "-one\n two\n+three\n");
        let long: String = (0..100).map(|n| format!("{n}\n")).collect();
        let expect = "-0\n-1\n-…96\n-98\n-99\n+gone\n";
        assert_eq!(marked(diff_lines(&long, "gone\n", 4)), expect);
        // A single line is shown instead of "1 line".
        assert_eq!(marked(diff_lines("1\n2\n3\n", "", 2)), "-1\n-2\n-3\n");
    }

    #[test]
    fn equal_lines_far_from_changes_are_counted() {
        let before: String = (0..9).map(|n| format!("{n}\n")).collect();
        let after = before.replace("0\n", "").replace("8\n", "eight");
        let expect = "-0\n 1\n …5\n 7\n-8\n+eight\n";
        assert_eq!(marked(changed_lines(&before, &after, 1)), expect);
        assert_eq!(changed_lines("same", "same\n", 1), []);
    }
}
