//! The edits of a plan as a diff, block by block.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use epitome::compaction::{PreparedCompaction, ShownEdit};
use epitome::redact::SessionScreen;
use epitome_model::{Bytes, Counter, Source};
use epitome_render::{DiffLine, LineChange, changed_lines, diff_lines};

use crate::text::{BOLD, DIM, count, field, visible};

/// The number of lines that are displayed of a longer run of lines with the same change.
const RUN: usize = 8;
/// The maximum number of characters of a line that are displayed.
const WIDTH: usize = 160;

/// Shows the edits of a plan: the removed text and its replacement, with secrets redacted. Edits of
/// copies in metadata are only counted.
pub fn render<S: Source>(
    planned: &PreparedCompaction<'_, S>,
    counter: &dyn Counter,
    mut screen: SessionScreen<'_>,
) -> String {
    let mut text = String::new();
    let mut copies = 0;
    let mut of_copies = 0;
    for ShownEdit { line, what, pass, saved, before, after } in planned.describe_edits(counter) {
        if pass == "copies" {
            copies += 1;
            of_copies += before.len().saturating_sub(after.len()) as u64;
            continue;
        }
        let what = field(&screen.text(&what));
        let before = screen.text(&before);
        let after = screen.text(&after);
        let saved = match saved.0 {
            0 => String::new(),
            _ => format!(", -{saved} tokens"),
        };
        let _ = writeln!(text, "{BOLD}line {line}: {what}{BOLD:#} {DIM}({pass}{saved}){DIM:#}");
        hunk(&mut text, &before, &after);
        text.push('\n');
    }
    if copies > 0 {
        let copies = count(copies, "duplicate");
        let size = Bytes(of_copies);
        let _ = writeln!(text, "{DIM}{copies} in metadata, which no model sees ({size}){DIM:#}\n");
    }
    text
}

/// Adds the lines that were removed or added between two texts, with two lines of context.
pub fn lines(out: &mut String, before: &str, after: &str) {
    for line in changed_lines(before, after, 2) {
        match line {
            DiffLine::Shown(change, text) => push_line(out, change, &text),
            DiffLine::Hidden(..) => {
                let _ = writeln!(out, "  {DIM}…{DIM:#}");
            }
        }
    }
}

fn hunk(out: &mut String, before: &str, after: &str) {
    for line in diff_lines(before, after, RUN) {
        match line {
            DiffLine::Shown(change, text) => push_line(out, change, &text),
            DiffLine::Hidden(change, lines) => {
                let (mark, _) = look(change);
                let _ = writeln!(out, "  {DIM}{mark} … {lines} more lines{DIM:#}");
            }
        }
    }
}

fn push_line(out: &mut String, change: LineChange, text: &str) {
    let (mark, style) = look(change);
    let text = epitome_model::short(&visible(text), WIDTH);
    let _ = writeln!(out, "  {style}{mark} {text}{style:#}");
}

/// The mark of a line, and its colour.
fn look(change: LineChange) -> (char, Style) {
    match change {
        LineChange::Removed => ('-', AnsiColor::Red.on_default()),
        LineChange::Added => ('+', AnsiColor::Green.on_default()),
        LineChange::Same => (' ', Style::new()),
    }
}
