//! The difference that a plan makes, block by block.

use std::borrow::Cow;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use epitome::compaction::{CompactionPlan, Shown};
use epitome::redact::SessionScreen;
use epitome_model::{Bytes, Counter, Source};
use similar::{ChangeTag, TextDiff};

use crate::text::{BOLD, DIM, count, field, visible};

const GONE: Style = AnsiColor::Red.on_default();
const NEW: Style = AnsiColor::Green.on_default();

/// Maximum lines of a run that are shown.
const RUN: usize = 8;
/// Maximum characters of a line that are shown.
const WIDTH: usize = 160;

/// Every edit of a plan that changes the context: the removed text and its replacement, with
/// secrets redacted. Of copies in metadata, the number.
pub fn render<S: Source>(
    planned: &CompactionPlan<'_, S>,
    counter: &dyn Counter,
    mut screen: SessionScreen<'_>,
) -> String {
    let mut text = String::new();
    let (mut copies, mut of_copies) = (0, 0);
    for Shown { line, what, pass, saved, before, after } in planned.shown(counter) {
        if pass == "copies" {
            copies += 1;
            of_copies += before.len().saturating_sub(after.len()) as u64;
            continue;
        }
        let what = field(&screen.text(&what));
        let (before, after) = (screen.text(&before), screen.text(&after));
        let saved = match saved.0 {
            0 => String::new(),
            _ => format!(", -{saved} tokens"),
        };
        let _ = writeln!(text, "{BOLD}line {line}: {what}{BOLD:#} {DIM}({pass}{saved}){DIM:#}");
        hunk(&mut text, &before, &after);
        text.push('\n');
    }
    if copies > 0 {
        let (copies, size) = (count(copies, "duplicate"), Bytes(of_copies));
        let _ = writeln!(text, "{DIM}{copies} in metadata, which no model sees ({size}){DIM:#}\n");
    }
    text
}

/// Every line removed or added between two texts, with two lines of context.
pub fn lines(out: &mut String, before: &str, after: &str) {
    let (before, after) = (ended(before), ended(after));
    let diff = TextDiff::from_lines(&*before, &*after);
    for (n, group) in diff.grouped_ops(2).iter().enumerate() {
        if n > 0 {
            let _ = writeln!(out, "  {DIM}…{DIM:#}");
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let mut run = vec![change.value().trim_end_matches('\n').to_owned()];
            flush(out, Some(change.tag()), &mut run);
        }
    }
}

/// Removed, kept and added lines; the middle of a long run is only counted.
fn hunk(out: &mut String, before: &str, after: &str) {
    // A last line is equal with and without its line feed.
    let (before, after) = (ended(before), ended(after));
    let diff = TextDiff::from_lines(&*before, &*after);
    let mut run: Vec<String> = Vec::new();
    let mut tag = None;
    for change in diff.iter_all_changes() {
        if tag != Some(change.tag()) {
            flush(out, tag, &mut run);
            tag = Some(change.tag());
        }
        run.push(change.value().trim_end_matches('\n').to_owned());
    }
    flush(out, tag, &mut run);
}

fn ended(text: &str) -> Cow<'_, str> {
    if text.is_empty() || text.ends_with('\n') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{text}\n"))
    }
}

fn flush(out: &mut String, tag: Option<ChangeTag>, run: &mut Vec<String>) {
    let (mark, style) = match tag {
        Some(ChangeTag::Delete) => ('-', GONE),
        Some(ChangeTag::Insert) => ('+', NEW),
        Some(ChangeTag::Equal) | None => (' ', Style::new()),
    };
    let long = run.len() > RUN + 1;
    let (head, tail) = if long { (RUN / 2, RUN / 2) } else { (run.len(), 0) };
    for line in &run[..head] {
        let _ = writeln!(out, "  {style}{mark} {}{style:#}", cut(line));
    }
    if long {
        let _ = writeln!(out, "  {DIM}{mark} … {} more lines{DIM:#}", run.len() - head - tail);
        for line in &run[run.len() - tail..] {
            let _ = writeln!(out, "  {style}{mark} {}{style:#}", cut(line));
        }
    }
    run.clear();
}

fn cut(line: &str) -> String {
    let shown = visible(line);
    let mut cut: String = shown.chars().take(WIDTH).collect();
    if shown.chars().count() > WIDTH {
        cut.pop();
        cut.push('…');
    }
    cut
}
