//! Checks the length of files, functions and lines.

use super::{Findings, Repo};

/// Lines of a file: above the first number is a warning, above the second an error.
const FILE: (usize, usize) = (500, 800);
/// Maximum number of lines of a function.
const FUNCTION: usize = 70;
/// Maximum number of columns of a line.
const COLUMNS: usize = 100;

/// Files that are one table, and may be longer.
const TABLES: &[&str] = &["crates/tokens/src/weights.rs"];

/// Files are short enough to be understood as a whole.
pub(super) fn files_are_short(repo: &Repo, findings: &mut Findings) {
    for file in repo.rust().filter(|file| !TABLES.contains(&&*file.path)) {
        let n = file.written_lines().count();
        if n > FILE.1 {
            findings.fail(&file.path, 0, format!("{n} lines, more than {}", FILE.1));
        } else if n > FILE.0 {
            findings.warn(&file.path, 0, format!("{n} lines, more than {}", FILE.0));
        }
    }
}

/// Lines fit into a window. Literals with a link or a fixture may be longer if they cannot be
/// split.
pub(super) fn lines_fit(repo: &Repo, findings: &mut Findings) {
    for file in repo.rust() {
        for (line, text) in file.written_lines() {
            let n = text.chars().count();
            if n > COLUMNS {
                findings.fail(&file.path, line, format!("{n} columns, more than {COLUMNS}"));
            }
        }
    }
}

/// Functions fit on a page. A function ends where its indentation occurs again, as rustfmt writes
/// it.
pub(super) fn functions_are_short(repo: &Repo, findings: &mut Findings) {
    for file in repo.rust() {
        let mut open: Vec<(usize, usize, usize, String)> = Vec::new();
        for (at, (line, text)) in file.written_lines().enumerate() {
            let indent = text.len() - text.trim_start().len();
            let name = function(text.trim_start());
            if let Some(name) = name.filter(|_| !text.trim_end().ends_with('}')) {
                open.push((indent, at, line, name.to_owned()));
                continue;
            }
            let closes = text.trim_start().starts_with('}') || text.trim_end() == ";";
            while closes && open.last().is_some_and(|(outer, ..)| *outer >= indent) {
                let Some((_, first, begin, name)) = open.pop() else { break };
                let n = at - first + 1;
                if n > FUNCTION {
                    let what = format!("{name} has {n} lines, more than {FUNCTION}");
                    findings.fail(&file.path, begin, what);
                }
            }
        }
    }
}

/// The name of the function whose signature begins here. A declaration without a body is ignored.
fn function(text: &str) -> Option<&str> {
    if text.ends_with(';') || text.starts_with("//") {
        return None;
    }
    let (before, after) = text.split_once("fn ")?;
    let words = ["pub", "pub(crate)", "pub(super)", "const", "async", "unsafe", "extern", "\"C\""];
    let is_signature = before.split_whitespace().all(|word| words.contains(&word));
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (is_signature && end > 0).then_some(&after[..end])
}

#[cfg(test)]
mod tests {
    use super::super::{Level, check};
    use super::*;

    #[test]
    fn long_files_are_found_and_tables_are_not() {
        let (long, longer) = ("//\n".repeat(501), "//\n".repeat(801));
        check(
            files_are_short,
            &[("a.rs", &long), ("b.rs", &longer)],
            &["a.rs:0: 501 lines", "b.rs:0: 801 lines"],
        );
        check(files_are_short, &[(TABLES[0], &longer), ("a.md", &longer)], &[]);
        let mut findings = Findings::default();
        files_are_short(&Repo::from_files(&[("a.rs", &long)]), &mut findings);
        assert_eq!(findings.0[0].level, Level::Warn);
    }

    #[test]
    fn long_lines_are_found_by_columns_and_not_by_bytes() {
        let (fits, long) = ("ä".repeat(100), "x".repeat(101));
        check(lines_fit, &[("a.rs", &format!("{fits}\n{long}\n"))], &["a.rs:2: 101 columns"]);
    }

    #[test]
    fn long_functions_are_found() {
        let of = |lines: usize, head: &str| {
            format!("impl X {{\n    {head} {{\n{}    }}\n}}\n", "        x();\n".repeat(lines))
        };
        let cases = [
            (of(68, "fn f()"), None),
            (of(69, "pub(crate) const fn f()"), Some("a.rs:2: f has 71 lines")),
            (of(70, "/// fn f()"), None),
            (of(70, "fn inner(&self) -> u8"), Some("a.rs:2: inner has 72 lines")),
        ];
        for (text, expect) in cases {
            let expect: Vec<&str> = expect.into_iter().collect();
            check(functions_are_short, &[("a.rs", &text)], &expect);
        }
    }

    #[test]
    fn the_text_of_an_inline_snapshot_is_not_measured() {
        let printed = "x".repeat(101) + "\n";
        let snapshot =
            format!("    assert_snapshot!(run(), @r#\"\n{}    \"#);\n", printed.repeat(70));
        let text = format!("fn f() {{\n{snapshot}}}\n");
        check(lines_fit, &[("a.rs", &text)], &[]);
        check(functions_are_short, &[("a.rs", &text)], &[]);
        let behind = format!("{text}{printed}");
        check(lines_fit, &[("a.rs", &behind)], &["a.rs:75: 101 columns"]);
    }

    #[test]
    fn declarations_and_types_are_no_functions() {
        for text in ["fn name(&self) -> &str;", "run: fn() -> u8,", "let f = |x| x;", "Fn (u8)"] {
            assert_eq!(function(text), None, "{text}");
        }
        assert_eq!(function("pub fn list<T>(of: T) {"), Some("list"));
    }
}
