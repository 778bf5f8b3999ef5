//! A preview of a call's changes to files, as a diff of lines.

use std::time::Duration;

use ratatui::text::{Line, Span};
use similar::{Algorithm, ChangeTag, TextDiff};

use super::text::{Breaks, clean, wrap};
use super::theme::Theme;

/// The time limit for computing a diff. A diff that takes longer becomes coarse, which is good
/// enough.
const PATIENCE: Duration = Duration::from_millis(100);
/// The number of context lines around a change.
const AROUND: usize = 3;

/// A diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    rows: Vec<Row>,
    added: usize,
    removed: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    kind: Kind,
    /// The line number: in the new text, or in the old one for a removed line.
    number: usize,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Same,
    Added,
    Removed,
    Gap,
    /// The name of a file, as a heading.
    File,
}

impl Preview {
    /// The diffs of several files, one after the other. Each item is a file's name, its old text
    /// and its new text.
    pub fn from_files<'t>(files: impl IntoIterator<Item = (String, &'t str, &'t str)>) -> Preview {
        let mut all = Preview { rows: Vec::new(), added: 0, removed: 0 };
        for (name, before, after) in files {
            let Preview { rows, added, removed } = Preview::between(before, after);
            all.rows.push(Row { kind: Kind::File, number: 0, text: name });
            all.rows.extend(rows);
            all.added += added;
            all.removed += removed;
        }
        all
    }

    /// The diff of two texts.
    pub fn between(before: &str, after: &str) -> Preview {
        let mut config = TextDiff::configure();
        config.algorithm(Algorithm::Myers).timeout(PATIENCE);
        let diff = config.diff_lines(before, after);
        let mut rows = Vec::new();
        for (at, group) in diff.grouped_ops(AROUND).iter().enumerate() {
            if at > 0 {
                rows.push(Row { kind: Kind::Gap, number: 0, text: String::new() });
            }
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let line = change.value().trim_end_matches(['\n', '\r']);
                let (kind, number) = match change.tag() {
                    ChangeTag::Equal => (Kind::Same, change.new_index()),
                    ChangeTag::Insert => (Kind::Added, change.new_index()),
                    ChangeTag::Delete => (Kind::Removed, change.old_index()),
                };
                let number = number.map_or(0, |number| number + 1);
                rows.push(Row { kind, number, text: line.to_owned() });
            }
        }
        let added = rows.iter().filter(|row| row.kind == Kind::Added).count();
        let removed = rows.iter().filter(|row| row.kind == Kind::Removed).count();
        Preview { rows, added, removed }
    }

    /// The numbers of added and removed lines: `+3 −1`.
    pub(super) fn summary(&self) -> String {
        format!("+{} −{}", self.added, self.removed)
    }

    /// The first rows of the diff, at most `most`, wrapped, and the number of the other rows.
    pub(super) fn lines(
        &self,
        width: usize,
        most: usize,
        theme: Theme,
    ) -> (Vec<Line<'static>>, usize) {
        let digits = self.rows.iter().map(|row| row.number).max().unwrap_or(0).to_string().len();
        let mut lines = Vec::new();
        for row in self.rows.iter().take(most) {
            let (mark, style) = match row.kind {
                Kind::Same => (" ", theme.dim()),
                Kind::Added => ("+", theme.good()),
                Kind::Removed => ("-", theme.bad()),
                Kind::File => {
                    let name = [Span::styled(clean(&row.text), theme.bold())];
                    lines.extend(wrap(&name, width, Breaks::Anywhere, &[], &[Span::raw("  ")]));
                    continue;
                }
                Kind::Gap => {
                    lines.push(Line::styled(format!("{:digits$} ⋮", ""), theme.dim()));
                    continue;
                }
            };
            let first = [
                Span::styled(format!("{:>digits$} ", row.number), theme.dim()),
                Span::styled(format!("{mark} "), style),
            ];
            let rest = [Span::raw(" ".repeat(digits + 3))];
            let text = Span::styled(clean(&row.text), style);
            lines.extend(wrap(&[text], width, Breaks::Anywhere, &first, &rest));
        }
        (lines, self.rows.len().saturating_sub(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(preview: &Preview, most: usize) -> Vec<String> {
        let (lines, _) = preview.lines(40, most, Theme { colours: false });
        lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
    }

    #[test]
    fn changes_are_shown_with_their_lines_and_a_little_around() {
        let before: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        let after = before.replace("line 2\n", "line two\n").replace("line 20\n", "\u{1b}[2J\n");
        let preview = Preview::between(&before, &after);
        let expect = [
            " 1   line 1",
            " 2 - line 2",
            " 2 + line two",
            " 3   line 3",
            " 4   line 4",
            " 5   line 5",
            "   ⋮",
            "17   line 17",
            "18   line 18",
            "19   line 19",
            "20 - line 20",
            "20 + ␛[2J",
        ];
        assert_eq!(lines(&preview, 99), expect);
        assert_eq!(
            (preview.summary(), preview.lines(40, 2, Theme { colours: true }).1),
            ("+2 −2".into(), 10)
        );
    }

    #[test]
    fn several_files_have_their_names() {
        let files = [("a.txt".to_owned(), "1\n", "2\n"), ("b.txt".to_owned(), "", "x\n")];
        let preview = Preview::from_files(files);
        assert_eq!(lines(&preview, 99), ["a.txt", "1 - 1", "1 + 2", "b.txt", "1 + x"]);
        assert_eq!(preview.summary(), "+2 −1");
    }
}
