//! Formats a session for a terminal.

mod markdown;
mod wrap;

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use epitome_model::{Call, FieldRole, Output, Part, Role, Source, Text, ToolKind, plural, short};
use unicode_width::UnicodeWidthStr as _;

use crate::call::{self, FileChange, Line, Outcome};
use crate::shorten::{Limit, cut};
use crate::story::{StoryItem, StoryItemKind};
use crate::visible::one_line;
use crate::{Changes, Detail, Facts, Story, time, todo, visible};

pub use markdown::markdown_lines;
pub use wrap::{Breaks, Run, clean, columns, cut as cut_to_width, width_of, wrap};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const USER: Style = AnsiColor::Yellow.on_default().bold();
const AGENT: Style = AnsiColor::Cyan.on_default().bold();
const GREEN: Style = AnsiColor::Green.on_default();
const RED: Style = AnsiColor::Red.on_default();
const THINKING: Style = Style::new().dimmed().italic();

/// The minimum number of columns for which lines are made.
const NARROWEST: usize = 30;
/// The number of lines that are shown of a longer result, or of a longer text in arguments, unless
/// the detail is full.
const RESULT: usize = 12;
/// The number of lines that are shown of a longer system message. It is small, because the sessions
/// of an agent often have the same system messages.
const SYSTEM: usize = 3;
/// Maximum characters of a block that epitome does not know.
const OPAQUE: usize = 300;
const WORDS: Limit = Limit { text: 64 << 10, line: 16 << 10 };

/// A session as text for a terminal with this many columns, with escape sequences for styles. Lines
/// are made for at least 30 and at most 120 columns. Escape sequences in the session itself are
/// made visible, or, if they set a style in a result, removed.
pub fn terminal(story: &Story<'_>, columns: usize) -> String {
    let mut screen = Screen { story, text: String::new(), columns: columns.clamp(NARROWEST, 120) };
    screen.head();
    for turn in &story.turns {
        let when = turn.time.as_deref().and_then(time::parse).map(time::display);
        let name = match turn.number {
            0 => "before the first words".to_owned(),
            number => number.to_string(),
        };
        let label = match when {
            Some(when) => format!("── {name} ── {when} "),
            None => format!("── {name} "),
        };
        let rule = "─".repeat(screen.columns.saturating_sub(label.width()));
        let _ = writeln!(screen.text, "\n{DIM}{label}{rule}{DIM:#}");
        for piece in &story.pieces[turn.pieces.clone()] {
            screen.piece(piece);
        }
    }
    screen.text
}

struct Screen<'s, 'a> {
    story: &'s Story<'a>,
    text: String,
    columns: usize,
}

impl<'a> Screen<'_, 'a> {
    fn head(&mut self) {
        let facts = Facts::from_story(self.story);
        self.put(&facts.title, "", BOLD);
        let mut parts = vec![facts.agent.clone()];
        parts.extend(facts.models.iter().map(|model| visible(model)));
        parts.extend(facts.started.as_deref().and_then(time::parse).map(time::display));
        parts.extend(facts.cwd.as_deref().map(visible));
        parts.push(plural(facts.turns, "turn"));
        parts.push(plural(facts.calls, "call"));
        if facts.spent.requests > 0 {
            let spent = facts.spent;
            parts.extend(spent.output.map(|output| format!("{output} tokens written")));
            parts.push(format!("{} tokens read", spent.input));
        }
        parts.extend(facts.cost_in_words());
        let changes = facts.changes;
        if !changes.is_empty() {
            let Changes { added, removed, files } = changes;
            parts.push(format!("+{added} −{removed} in {}", plural(files, "file")));
        }
        self.put(&parts.join(" · "), "", DIM);
        if let Some(past) = self.story.session.past.filter(|past| !past.is_empty()) {
            self.put(&past.sentences().join(" "), "", Style::new());
        }
    }

    fn piece(&mut self, piece: &StoryItem<'_>) {
        let source = self.source();
        let read = |text: &Text| text.read(source).into_owned();
        match piece.what {
            StoryItemKind::Words(text) => match piece.entry.role {
                Role::User => self.message("User", USER, &read(text)),
                Role::Assistant | Role::Tool => self.answered("Assistant", &read(text)),
                Role::System => self.first_lines(&read(text), SYSTEM, "  ", DIM),
            },
            StoryItemKind::Summary(text) => self.answered("Summary", &read(text)),
            StoryItemKind::Thinking(thinking) => {
                if let Some(text) = &thinking.text {
                    let _ = writeln!(self.text, "  {DIM}Thinking{DIM:#}");
                    self.put(&read(text), "    ", THINKING);
                }
            }
            StoryItemKind::Call(call, output) => self.call(call, output),
            StoryItemKind::Result(output) => self.result(output, false),
            StoryItemKind::Image(image) => {
                let line = format!("(a picture, {})", one_line(&image.media));
                self.put(&line, "  ", DIM);
            }
            StoryItemKind::Opaque(span) => {
                // A block that epitome does not know.
                let text = one_line(&String::from_utf8_lossy(&source.at(span)));
                self.put(&short(&text, OPAQUE), "    ", DIM);
            }
        }
    }

    fn message(&mut self, who: &str, style: Style, text: &str) {
        let _ = writeln!(self.text, "\n{style}{who}{style:#}");
        self.put(text.trim(), "", Style::new());
    }

    /// A text of the model, or a summary, formatted as Markdown.
    fn answered(&mut self, who: &str, text: &str) {
        let _ = writeln!(self.text, "\n{AGENT}{who}{AGENT:#}");
        let shown = cut(text.trim(), WORDS);
        let parts = [Some(shown.head), shown.gap.map(|gap| format!("… {gap} …")), Some(shown.tail)];
        for part in parts.into_iter().flatten() {
            for line in markdown_lines(&part, self.columns, true) {
                let mut written = String::new();
                for Run { text, style } in &line {
                    let _ = write!(written, "{style}{text}{style:#}");
                }
                let _ = writeln!(self.text, "{}", written.trim_end());
            }
        }
    }

    /// A line with the tool, the target and the outcome of a call. From [`Detail::Steps`] on, the
    /// arguments and the result follow below it.
    fn call(&mut self, call: &Call, output: Option<&Output>) {
        let source = self.source();
        let name = visible(&short(&call.name, 40));
        let outcome = output.map(|output| call::outcome(output, source));
        // A stub of one line is displayed in the line of the call.
        let is_left =
            matches!(&outcome, Some(Outcome::Left(text)) if !text.trim_end().contains('\n'));
        let outcome = match outcome {
            Some(Outcome::Left(text)) => (DIM, one_line(&text)),
            Some(Outcome::Failed) => (RED, "failed".to_owned()),
            Some(Outcome::Pictures(_)) => (DIM, "pictures".to_owned()),
            Some(Outcome::Lines(lines)) => (DIM, lines.to_string()),
            None => (DIM, "no result".to_owned()),
        };
        let (added, removed) = call::counts(call, source);
        let changed = match added + removed {
            0 => String::new(),
            _ => format!("{GREEN}+{added}{GREEN:#} {RED}−{removed}{RED:#} "),
        };
        let plain = if changed.is_empty() { 0 } else { format!("+{added} −{removed} ").width() };
        let taken = 5 + name.width() + outcome.1.width() + plain;
        let room = self.columns.saturating_sub(taken).max(8);
        let target = call::target(call, self.story.session.cwd(), self.story.session.source)
            .unwrap_or_default();
        let target = cut_to_width(&target, room);
        let gap = " ".repeat(room.saturating_sub(target.width()));
        let (style, outcome) = outcome;
        let _ = writeln!(
            self.text,
            "  {BOLD}{name}{BOLD:#} {DIM}{target}{DIM:#}{gap} {changed}{style}{outcome}{style:#}"
        );
        if self.story.session.detail >= Detail::Steps {
            self.body(call, output, is_left);
        }
    }

    fn body(&mut self, call: &Call, output: Option<&Output>, is_left: bool) {
        let source = self.source();
        let arguments = call::arguments(call, source);
        if call.kind == ToolKind::Todo
            && let Some(list) = arguments.as_ref().and_then(todo::list)
        {
            for (state, text) in list {
                let mark = match state {
                    todo::State::Open => "☐",
                    todo::State::Active => "◐",
                    todo::State::Done => "☑",
                };
                self.put(&format!("{mark} {}", one_line(&text)), "    ", Style::new());
            }
        }
        if call.kind.changes_file() {
            for change in call::changes(&call.fields, source) {
                self.change(&change);
            }
        } else {
            for field in call.fields.iter().filter(|field| field.role != FieldRole::Command) {
                self.few(&field.text.read(source), Style::new());
            }
        }
        if let Some(output) = output {
            self.result(output, is_left);
        }
    }

    fn change(&mut self, change: &FileChange) {
        match change {
            FileChange::Lines(lines) => {
                for line in lines {
                    match line {
                        Line::Same(line) => self.put(&format!("  {line}"), "    ", DIM),
                        Line::Added(line) => self.put(&format!("+ {line}"), "    ", GREEN),
                        Line::Removed(line) => self.put(&format!("− {line}"), "    ", RED),
                        Line::Gap => self.put("⋯", "    ", DIM),
                    }
                }
            }
            FileChange::Patch(text) | FileChange::Content(text) | FileChange::Named(_, text) => {
                self.few(text, Style::new());
            }
            FileChange::Becomes(old, new) => {
                self.few(old, RED);
                self.few(new, GREEN);
            }
        }
    }

    /// A result. Its first text is left out if the line of the call contains it already.
    fn result(&mut self, output: &Output, is_said: bool) {
        let source = self.source();
        let style = if output.error { RED } else { DIM };
        for (place, part) in output.parts.iter().enumerate() {
            match part {
                Part::Text(_) if is_said && place == 0 => {}
                Part::Text(text) => {
                    let runs = crate::ansi::runs(&text.read(source));
                    let plain: String = runs.into_iter().map(|run| run.text).collect();
                    self.few(&plain, style);
                }
                Part::Image(image) => {
                    let line = format!("(a picture, {})", one_line(&image.media));
                    self.put(&line, "    ", DIM);
                }
                Part::Opaque(span) => self.few(&String::from_utf8_lossy(&source.at(*span)), style),
            }
        }
    }

    /// The first lines of a text, or all lines if the detail is full.
    fn few(&mut self, text: &str, style: Style) {
        let text = text.trim_end();
        if self.story.session.detail == Detail::Full {
            return self.put(text, "    ", style);
        }
        self.first_lines(text, RESULT, "    ", style);
    }

    /// The first lines of a text, and the number of lines that are left out: `most` lines, or all
    /// if there is only one more.
    fn first_lines(&mut self, text: &str, most: usize, indent: &str, style: Style) {
        let text = text.trim_end();
        let lines = text.lines().count();
        // Instead of "1 more line", show that line.
        let shown = if lines == most + 1 { lines } else { most };
        let first: Vec<&str> = text.lines().take(shown).collect();
        self.put(&first.join("\n"), indent, style);
        let left_out = lines - first.len();
        if left_out > 0 {
            self.put(&format!("… {}", plural(left_out as u64, "more line")), indent, DIM);
        }
    }

    fn put(&mut self, text: &str, indent: &str, style: Style) {
        let shown = cut(text, WORDS);
        let mut whole = shown.head;
        if let Some(gap) = shown.gap {
            let _ = write!(whole, "\n… {gap} …\n{}", shown.tail);
        }
        let room = self.columns.saturating_sub(indent.len()).max(NARROWEST / 2);
        let mut in_code = false;
        for line in visible(&whole).lines() {
            let is_fence = line.trim_start().starts_with("```");
            in_code ^= is_fence;
            let line = line.replace('\t', "    ");
            for part in wrapped(&line, room, in_code || is_fence) {
                let part = part.trim_end();
                if part.is_empty() {
                    self.text.push('\n')
                } else {
                    let _ = writeln!(self.text, "{indent}{style}{part}{style:#}");
                }
            }
        }
    }

    fn source(&self) -> &'a dyn Source {
        self.story.session.source
    }
}

/// Splits a line into lines of at most `room` columns: between words, or anywhere if it is code.
fn wrapped(line: &str, room: usize, is_code: bool) -> Vec<String> {
    let indent: String = line.chars().take_while(|c| *c == ' ').take(room / 2).collect();
    let breaks = if is_code { Breaks::Anywhere } else { Breaks::Words };
    let text = [Run { text: line.to_owned(), style: () }];
    let indent = [Run { text: indent, style: () }];
    let lines = wrap(&text, room, breaks, &[], &indent);
    lines.into_iter().map(|runs| runs.into_iter().map(|run| run.text).collect()).collect()
}

#[cfg(test)]
#[path = "terminal_tests.rs"]
mod of_samples;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_between_words_and_code_where_it_ends() {
        let check = |line: &str, room, is_code, expect: &[&str]| {
            let parts = wrapped(line, room, is_code);
            let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).collect();
            assert_eq!(parts, expect, "{line:?}");
        };
        check("one two three", 8, false, &["one two", "three"]);
        check("  one two three", 8, false, &["  one", "  two", "  three"]);
        check("abcdefghij", 4, false, &["abcd", "efgh", "ij"]);
        check("one two", 5, true, &["one t", "wo"]);
        check("日本語", 4, false, &["日本", "語"]);
    }
}
