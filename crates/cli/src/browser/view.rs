//! A text that fills the screen and can be scrolled and searched.

use ansi_to_tui::IntoText;
use anstream::adapter::strip_str;
use ratatui::crossterm::event::KeyCode;
use ratatui::text::Line;

use super::worker::Kind;
use crate::fold::fold_lines;

/// A text with its scroll position.
#[derive(Clone, Debug)]
pub struct View {
    pub title: String,
    pub lines: Vec<Line<'static>>,
    /// The index of the first line that is shown.
    pub top: usize,
    /// The search text. `is_typing` says whether the user is typing it.
    pub search: String,
    pub is_typing: bool,
    /// The text that `y` copies.
    pub copy: Option<String>,
    /// The kind of the command that printed the text.
    pub kind: Kind,
    /// Whether the help with the keys of the view is shown.
    pub shows_keys: bool,
}

impl View {
    /// A view of the output of a command, in lines of at most `width` columns. Control sequences in
    /// `printed` must be styles; `App::run_captured` makes all others visible.
    pub fn new((title, kind): (String, Kind), printed: &str, colours: bool, width: usize) -> View {
        let printed = fold_lines(printed, width);
        let lines: Vec<Line<'static>> = match printed.into_text() {
            Ok(text) if colours => text.lines,
            Ok(_) | Err(_) => {
                printed.lines().map(|line| Line::raw(strip_str(line).to_string())).collect()
            }
        };
        let search = String::new();
        let copy = None;
        let is_typing = false;
        let shows_keys = false;
        View { title, lines, top: 0, search, is_typing, copy, kind, shows_keys }
    }

    /// Scrolls by `by` lines, on a screen of `height` lines.
    pub fn scroll(&mut self, by: isize, height: usize) {
        let last = self.lines.len().saturating_sub(height);
        self.top = self.top.saturating_add_signed(by).min(last);
    }

    /// Handles a key while the search text is typed. Returns whether a search was made and found
    /// nothing.
    pub fn search_key(&mut self, code: KeyCode, height: usize) -> bool {
        match code {
            KeyCode::Esc => self.is_typing = false,
            KeyCode::Enter => {
                self.is_typing = false;
                return !self.find(true, height);
            }
            KeyCode::Backspace => {
                self.search.pop();
            }
            KeyCode::Char(c) => self.search.push(c),
            _ => {}
        }
        false
    }

    /// Goes to the next line that contains the search text, or to the previous one; the search
    /// continues at the other end of the text. Returns whether a line was found.
    pub fn find(&mut self, forward: bool, height: usize) -> bool {
        let wanted = self.search.to_lowercase();
        let has = |at: &usize| text_of(&self.lines[*at]).to_lowercase().contains(&wanted);
        let found = if wanted.is_empty() {
            None
        } else if forward {
            (self.top + 1..self.lines.len()).chain(0..=self.top).find(has)
        } else {
            (0..self.top).rev().chain((self.top..self.lines.len()).rev()).find(has)
        };
        let Some(at) = found.filter(|_| !self.lines.is_empty()) else { return false };
        self.top = at.min(self.lines.len().saturating_sub(height));
        true
    }
}

fn text_of(line: &Line<'_>) -> String {
    line.spans.iter().map(|span| &*span.content).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_and_keep_their_styles() {
        let printed = "\u{1b}[31mone two\u{1b}[0m three\n日本語\n\nend\n";
        let texts = |view: &View| view.lines.iter().map(text_of).collect::<Vec<_>>();
        let coloured = View::new((String::new(), Kind::Shows), printed, true, 5);
        assert_eq!(texts(&coloured), ["one", "two", "three", "日本", "語", "", "end"]);
        assert_eq!(coloured.lines[1].spans[0].style.fg, Some(ratatui::style::Color::Red));
        let plain = View::new((String::new(), Kind::Shows), printed, false, 5);
        assert_eq!(texts(&plain), texts(&coloured));
        assert!(plain.lines.iter().all(|line| line.style == ratatui::style::Style::new()));
        assert_eq!(plain.lines[1].spans[0].style.fg, None);
    }
}
