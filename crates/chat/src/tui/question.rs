//! Questions to the user, as lines below the conversation.

use epitome_model::plural;
use ratatui::text::{Line, Span};

use super::state::{Ask, OpenQuestion, State};
use super::text::{Breaks, clean, cut, width_of, wrap};

impl State {
    /// The lines of a question. The card of the call, above, shows the call in full.
    pub(super) fn question(&self, ask: &Ask) -> Vec<Line<'static>> {
        let width = usize::from(self.size.0);
        let height = usize::from(self.size.1);
        // Ctrl-O shows as many lines as fit.
        let most = if self.folded { height / 3 } else { height.saturating_sub(8) }.max(1);
        let mut lines = Vec::new();
        if height >= 6 {
            lines.push(Line::styled("─".repeat(width), self.theme.warn()));
        }
        let mut rows = match &ask.what {
            OpenQuestion::Permission { about, .. } => self.marked("Allow? ", about, width),
            OpenQuestion::Question { question, choices } => {
                let mut rows = self.marked("? ", question, width);
                rows.extend(choices.iter().zip(1..).flat_map(|(choice, number)| {
                    let first = [Span::styled(format!("  {number} "), self.theme.accent())];
                    let rest = [Span::raw("    ")];
                    wrap(&[Span::raw(clean(choice))], width, Breaks::Words, &first, &rest)
                }));
                rows
            }
        };
        // Both ends of a long text are shown, because the last part of a command may matter most.
        let left = rows.len().saturating_sub(most);
        if left > 0 {
            let tail = rows.split_off(rows.len() - most / 2);
            rows.truncate(most - most / 2);
            lines.extend(rows);
            let lines_left = plural(left as u64, "line");
            let how = if self.folded { "Ctrl-O shows more" } else { "see above (PgUp)" };
            let text = cut(&format!("… {lines_left} hidden here: {how}"), width);
            lines.push(Line::styled(text, self.theme.warn()));
            lines.extend(tail);
        } else {
            lines.extend(rows);
        }
        lines.push(if ask.is_seen(self.now) {
            self.keys_of(ask, width)
        } else {
            Line::styled("…", self.theme.dim())
        });
        lines
    }

    /// A text of a model or server, with a mark before it, so that no line of the text looks like a
    /// line of the interface.
    fn marked(&self, mark: &'static str, text: &str, width: usize) -> Vec<Line<'static>> {
        let first = [Span::styled(mark, self.theme.warn().patch(self.theme.bold()))];
        let rest = [Span::raw(" ".repeat(if width < 40 { 1 } else { mark.len() }))];
        let mut rows = Vec::new();
        for row in text.lines() {
            let prefix = if rows.is_empty() { &first } else { &rest };
            let text = [Span::raw(clean(row))];
            rows.extend(wrap(&text, width, Breaks::Anywhere, prefix, &rest));
        }
        rows
    }

    /// The keys that answer the question.
    fn keys_of(&self, ask: &Ask, width: usize) -> Line<'static> {
        let key = |key: &'static str| Span::styled(key, self.theme.accent());
        let waiting = self.asks.len() - 1;
        let more = if waiting > 0 { format!(" · {waiting} more") } else { String::new() };
        let always = match &ask.what {
            OpenQuestion::Permission { always, .. } => always,
            OpenQuestion::Question { choices, .. } => {
                let number = if choices.is_empty() { "" } else { "a number or " };
                let line = format!("type {number}an answer, and Enter{more}");
                return Line::styled(cut(&line, width), self.theme.dim());
            }
        };
        let long = vec![
            key("y"),
            Span::raw(" once · "),
            key("a"),
            Span::raw(format!(" always ({always}) · ")),
            key("n"),
            Span::raw(" no · "),
            key("N"),
            Span::raw(format!(" never{more}")),
        ];
        if long.iter().map(|span| width_of(&span.content)).sum::<usize>() <= width {
            return Line::from(long);
        }
        let short = [" once ", " always ", " no ", " never"];
        let keys = ["y", "a", "n", "N"].into_iter().zip(short);
        Line::from(keys.flat_map(|(name, what)| [key(name), Span::raw(what)]).collect::<Vec<_>>())
    }
}
