//! Scrolling. Entries that are neither on the screen nor scrolled past are not laid out, so a long
//! conversation is drawn as fast as a short one.

use std::rc::Rc;

use ratatui::text::Line;

use super::state::{Scroll, State};

impl State {
    fn lines(&self, entry: usize) -> Rc<[Line<'static>]> {
        self.entries[entry].lines(usize::from(self.size.0), self.folded, self.theme)
    }

    /// The visible lines, at most `height`.
    pub(super) fn visible(&self, height: usize) -> Vec<Line<'static>> {
        let (mut entry, mut line) = match self.scroll {
            Scroll::End => self.last_screen(height),
            Scroll::At(entry, line) => (entry, line),
        };
        let mut seen = Vec::with_capacity(height);
        while entry < self.entries.len() && seen.len() < height {
            let lines = self.lines(entry);
            let rest = lines.get(line..).unwrap_or_default();
            seen.extend(rest.iter().take(height - seen.len()).cloned());
            entry += 1;
            line = 0;
        }
        seen
    }

    /// Where the last screenful begins: the index of the entry, and of the line in it.
    fn last_screen(&self, height: usize) -> (usize, usize) {
        let mut left = height;
        for entry in (0..self.entries.len()).rev() {
            let lines = self.lines(entry).len();
            if lines >= left {
                return (entry, lines - left);
            }
            left -= lines;
        }
        (0, 0)
    }

    /// Scrolls by `by` lines; negative numbers scroll up.
    pub(super) fn scroll_by(&mut self, by: isize) {
        let height = self.transcript_height();
        let (mut entry, mut line) = match self.scroll {
            Scroll::End if by >= 0 => return,
            Scroll::End => self.last_screen(height),
            Scroll::At(entry, line) => (entry.min(self.entries.len().saturating_sub(1)), line),
        };
        if self.entries.is_empty() {
            return;
        }
        let mut left = by.unsigned_abs();
        while left > 0 && by < 0 {
            if line > 0 {
                let step = line.min(left);
                line -= step;
                left -= step;
            } else if entry > 0 {
                entry -= 1;
                line = self.lines(entry).len();
            } else {
                break;
            }
        }
        while left > 0 && by > 0 {
            let rest = self.lines(entry).len().saturating_sub(line + 1);
            if left <= rest {
                line += left;
                left = 0;
            } else if entry + 1 < self.entries.len() {
                left -= rest + 1;
                entry += 1;
                line = 0;
            } else {
                break;
            }
        }
        let end = self.last_screen(height);
        let is_end = left > 0 && by > 0 || (entry, line) >= end;
        self.scroll = if is_end { Scroll::End } else { Scroll::At(entry, line) };
    }

    /// Whether the conversation is scrolled up from its end.
    pub(super) fn is_above_end(&self) -> bool {
        self.scroll != Scroll::End
    }
}
