//! Draws the state: the conversation, what is in progress, the input line, the status bar.

use std::time::Duration;

use epitome_model::Tokens;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::state::{Ask, Busy, State, Work};
use super::text::{clean, cut, width_of};
use crate::commands::completions;

/// The maximum number of waiting messages, and of matching commands, that are shown.
const WAITING: usize = 3;
const COMPLETIONS: usize = 8;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const SPIN: Duration = Duration::from_millis(100);

/// The text before the first input line.
const PROMPT: &str = "› ";

/// Draws a state.
pub fn draw(state: &State, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.is_empty() {
        return;
    }
    let below = state.below();
    let height = usize::from(area.height);
    let lines = below.lines.len().min(height);
    let above = height - lines;
    put(frame, area, 0, &state.visible(above));
    put(frame, area, above, &below.lines[below.lines.len() - lines..]);
    if let Some((row, column)) = below.cursor
        && row + lines >= below.lines.len()
    {
        let y = above + row + lines - below.lines.len();
        let x = column.min(usize::from(area.width) - 1);
        let x = u16::try_from(x).unwrap_or(u16::MAX);
        let y = u16::try_from(y).unwrap_or(u16::MAX);
        frame.set_cursor_position(Position::new(area.x + x, area.y + y));
    }
}

fn put(frame: &mut Frame<'_>, area: Rect, from: usize, lines: &[Line<'_>]) {
    for (y, line) in (area.y..area.bottom()).skip(from).zip(lines) {
        frame.buffer_mut().set_line(area.x, y, line, area.width);
    }
}

/// The lines below the conversation, from the top down.
struct Below {
    lines: Vec<Line<'static>>,
    cursor: Option<(usize, usize)>,
}

impl State {
    fn width(&self) -> usize {
        usize::from(self.size.0)
    }

    fn height(&self) -> usize {
        usize::from(self.size.1)
    }

    pub(super) fn editor_width(&self) -> usize {
        self.width().saturating_sub(width_of(PROMPT)).max(1)
    }

    /// The number of rows for the conversation.
    pub(super) fn transcript_height(&self) -> usize {
        self.height().saturating_sub(self.below().lines.len())
    }

    /// The lines below the conversation. The last is the status bar, if the screen has at least two
    /// rows.
    fn below(&self) -> Below {
        let height = self.height();
        let mut lines = Vec::new();
        if height >= if self.asks.is_empty() { 5 } else { 8 } {
            // Without an activity, an empty line takes its place, so that the other lines do not
            // move. A low screen has no room for it.
            let empty = (height >= 10).then(Line::default);
            lines.extend(self.activity().or(empty));
        }
        if height >= 12 {
            lines.extend(self.waiting());
        }
        let mut cursor = None;
        let asked = self.asks.front();
        lines.extend(asked.into_iter().flat_map(|ask| self.question(ask)));
        if asked.is_none_or(Ask::takes_text) {
            if height >= 10 {
                lines.extend(self.completions());
            }
            if height >= 6 {
                lines.push(Line::styled("─".repeat(self.width()), self.theme.dim()));
            }
            let (rows, (row, column)) = self.editor.view(self.editor_width(), (height / 3).max(1));
            cursor = Some((lines.len() + row, column + width_of(PROMPT)));
            for (at, text) in rows.into_iter().enumerate() {
                let prompt = if at == 0 { PROMPT } else { "  " };
                lines.push(Line::from(vec![
                    Span::styled(prompt, self.theme.accent()),
                    Span::raw(text),
                ]));
            }
        }
        if height >= 2 {
            lines.push(self.status());
        }
        Below { lines, cursor }
    }

    /// A line that says what the agent is doing, and for how long. A notice about a pending Ctrl-C
    /// or about hidden lines below takes precedence. `None` if there is no such notice and the
    /// agent is idle.
    fn activity(&self) -> Option<Line<'static>> {
        if self.armed.is_some() {
            let text = cut("press Ctrl-C again to leave", self.width());
            return Some(Line::styled(text, self.theme.warn()));
        }
        if self.is_above_end() {
            let text = cut("↓ more below: PgDn, or Ctrl-End", self.width());
            return Some(Line::styled(text, self.theme.warn()));
        }
        let busy = self.busy?;
        let text = format!("{} {} · Esc interrupts", self.spinner(busy), self.work(busy));
        Some(Line::styled(cut(&text, self.width()), self.theme.warn()))
    }

    fn spinner(&self, busy: Busy) -> &'static str {
        let turns = (self.now.saturating_sub(busy.since)).as_millis() / SPIN.as_millis();
        SPINNER[usize::try_from(turns).unwrap_or(0) % SPINNER.len()]
    }

    fn work(&self, busy: Busy) -> String {
        let seconds = self.now.saturating_sub(busy.since).as_secs();
        let time = match seconds {
            0..60 => format!("{seconds}s"),
            60.. => format!("{}m {:02}s", seconds / 60, seconds % 60),
        };
        let what = match (busy.what, self.asks.len()) {
            (_, 1..) => "waiting for you",
            (Work::Turn, 0) => "working",
            (Work::Compaction, 0) => "compacting",
        };
        format!("{what} {time}")
    }

    /// A line for each of the first messages that are not in the context yet, and a line with the
    /// number of the others.
    fn waiting(&self) -> Vec<Line<'static>> {
        let style = self.theme.dim();
        let shown = self.queued.iter().take(WAITING).map(|text| {
            let first = clean(text.lines().next().unwrap_or_default());
            Line::styled(cut(&format!("  waits: {first}"), self.width()), style)
        });
        let mut lines: Vec<Line<'static>> = shown.collect();
        if self.queued.len() > WAITING {
            let more = format!("  and {} more", self.queued.len() - WAITING);
            lines.push(Line::styled(more, style));
        }
        lines
    }

    fn completions(&self) -> Vec<Line<'static>> {
        let found = completions(self.editor.text());
        let rows = found.iter().take(COMPLETIONS.min(self.height() / 3)).map(|it| {
            let name = format!("{} {}", it.name, it.arguments);
            let about = cut(it.about, self.width().saturating_sub(22));
            Line::from(vec![
                Span::styled(cut(&format!("  {name:<20}"), self.width()), self.theme.code()),
                Span::styled(about, self.theme.dim()),
            ])
        });
        rows.collect()
    }

    /// The status bar. The share of the window comes first and is always shown. Other parts follow,
    /// up to the first one for which there is no room.
    fn status(&self) -> Line<'static> {
        let percent = self.usage.map(|usage| usage.percent);
        let (text, style) = match percent {
            Some(Some(percent)) => (format!("[ctx: {percent}%]"), self.theme.fill(percent)),
            Some(None) => ("[ctx: ?]".to_owned(), self.theme.plain()),
            None => ("[ctx: 0%]".to_owned(), self.theme.fill(0)),
        };
        let mut left = self.width().saturating_sub(text.len());
        let mut spans = vec![Span::styled(cut(&text, self.width()), style)];
        let tokens = self.usage.map(|usage| match usage.usable {
            Some(usable) => format!("{} of {usable}", usage.tokens),
            None => usage.tokens.to_string(),
        });
        let used = self.cost.used;
        let billed = Tokens(used.all_input().0 + used.output.0);
        let cost = match (self.cost.cost.0, self.cost.unpriced) {
            (0, 1..) => format!("{billed} tokens used"),
            (_, 1..) => format!("{}+", self.cost.cost),
            (_, 0) => self.cost.cost.to_string(),
        };
        let scrolled = self.height() < 5 && self.is_above_end();
        let small = self.busy.filter(|_| self.height() < 5).map(|busy| self.work(busy));
        let parts = [
            scrolled.then(|| "more below".to_owned()),
            small,
            tokens,
            (self.cost.requests > 0).then_some(cost),
            Some(clean(&self.session.model)).filter(|model| !model.is_empty()),
            Some(clean(&self.session.recipe)).filter(|recipe| !recipe.is_empty()),
            Some(clean(&self.session.id)).filter(|id| !id.is_empty()),
        ];
        for part in parts.into_iter().flatten() {
            let part = format!(" · {part}");
            // After a part that does not fit, none is shown, so that the order of the parts never
            // changes.
            let Some(rest) = left.checked_sub(width_of(&part)) else { break };
            left = rest;
            spans.push(Span::styled(part, self.theme.dim()));
        }
        Line::from(spans)
    }
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
