//! The input text: several lines, a cursor, and a history.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::text::{clean, columns, width_of};

/// The maximum number of messages in the history.
const REMEMBERED: usize = 500;

/// A text with a cursor.
#[derive(Clone, Debug, Default)]
pub(super) struct Editor {
    text: String,
    /// The position of the cursor in bytes, between two graphemes.
    cursor: usize,
    history: Vec<String>,
    /// The index of the entry of the history that is shown, and the text that the user had typed
    /// before. `None` if no entry of the history is shown.
    recalled: Option<(usize, String)>,
}

/// A movement of the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
}

impl Editor {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Inserts a text at the cursor. Its line ends become line feeds.
    pub(super) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
        self.recalled = None;
    }

    /// Replaces the text, and puts the cursor at its end.
    pub(super) fn set(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.cursor = self.text.len();
    }

    /// Clears the input, adds its text to the history, and returns the text.
    pub(super) fn take(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        self.cursor = 0;
        self.recalled = None;
        self.remember(&text);
        text
    }

    /// Adds a message to the history, unless it is blank or the same as the last one.
    pub(super) fn remember(&mut self, text: &str) {
        if !text.trim().is_empty() && self.history.last().is_none_or(|last| last != text) {
            self.history.push(text.to_owned());
            if self.history.len() > REMEMBERED {
                self.history.remove(0);
            }
        }
    }

    pub(super) fn go(&mut self, to: Move) {
        self.cursor = self.target(to);
    }

    /// Deletes from the cursor to the target of a movement.
    pub(super) fn delete(&mut self, to: Move) {
        let target = self.target(to);
        let range = target.min(self.cursor)..target.max(self.cursor);
        self.cursor = range.start;
        self.text.replace_range(range, "");
        self.recalled = None;
    }

    fn target(&self, to: Move) -> usize {
        let (before, after) = self.text.split_at(self.cursor);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        match to {
            Move::Left => self.cursor - before.graphemes(true).next_back().map_or(0, str::len),
            Move::Right => self.cursor + after.graphemes(true).next().map_or(0, str::len),
            Move::WordLeft => {
                let words = before.trim_end();
                words
                    .rfind(char::is_whitespace)
                    .map_or(0, |at| at + words[at..].chars().next().map_or(0, char::len_utf8))
            }
            Move::WordRight => {
                let gap = after.len() - after.trim_start().len();
                let word = after[gap..].find(char::is_whitespace);
                word.map_or(self.text.len(), |at| self.cursor + gap + at)
            }
            Move::LineStart => line_start,
            Move::LineEnd => after.find('\n').map_or(self.text.len(), |at| self.cursor + at),
        }
    }

    /// Moves the cursor up a row. From the first row, shows the previous message of the history.
    pub(super) fn up(&mut self, width: usize) {
        if !self.vertical(width, -1) {
            let at = match &self.recalled {
                Some((at, _)) => at.checked_sub(1),
                None => self.history.len().checked_sub(1),
            };
            if let Some(at) = at {
                self.recall(at);
            }
        }
    }

    /// Moves the cursor down a row. From the last row, shows the next message of the history, or
    /// after the last message the text that was typed before.
    pub(super) fn down(&mut self, width: usize) {
        if self.vertical(width, 1) {
            return;
        }
        if let Some((at, typed)) = self.recalled.clone() {
            if at + 1 < self.history.len() {
                self.recall(at + 1);
            } else {
                self.set(&typed);
                self.recalled = None;
            }
        }
    }

    fn recall(&mut self, at: usize) {
        let typed = self.recalled.take().map_or_else(|| self.text.clone(), |(_, typed)| typed);
        let text = self.history[at].clone();
        self.set(&text);
        self.recalled = Some((at, typed));
    }

    fn vertical(&mut self, width: usize, by: isize) -> bool {
        let rows = self.rows(width);
        let (row, column) = self.place(&rows);
        let Some(target) = row.checked_add_signed(by).filter(|row| *row < rows.len()) else {
            return false;
        };
        let mut at = rows[target].start;
        let mut used = 0;
        for grapheme in self.text[rows[target].clone()].graphemes(true) {
            used += display(grapheme).1;
            if used > column {
                break;
            }
            at += grapheme.len();
        }
        self.cursor = at;
        true
    }

    /// The ranges of the text that are shown as one row each.
    fn rows(&self, width: usize) -> Vec<Range<usize>> {
        let width = width.max(1);
        let mut rows = Vec::new();
        let mut begin = 0;
        let mut used = 0;
        for (at, grapheme) in self.text.grapheme_indices(true) {
            if grapheme == "\n" {
                rows.push(begin..at);
                begin = at + 1;
                used = 0;
                continue;
            }
            let columns = display(grapheme).1;
            if used + columns > width && at > begin {
                rows.push(begin..at);
                begin = at;
                used = 0;
            }
            used += columns;
        }
        rows.push(begin..self.text.len());
        // After a full row the cursor is on the next row.
        if used >= width {
            rows.push(self.text.len()..self.text.len());
        }
        rows
    }

    fn place(&self, rows: &[Range<usize>]) -> (usize, usize) {
        let row = rows.iter().rposition(|row| row.start <= self.cursor).unwrap_or(0);
        let before = &self.text[rows[row].start..self.cursor];
        (row, before.graphemes(true).map(|it| display(it).1).sum())
    }

    /// The rows of the text that are shown, and the row and column of the cursor in them. They are
    /// at most `height` rows, but at least one, and the cursor is in one of them.
    pub(super) fn view(&self, width: usize, height: usize) -> (Vec<String>, (usize, usize)) {
        let rows = self.rows(width);
        let (row, column) = self.place(&rows);
        let first = (row + 1).saturating_sub(height.max(1));
        let texts = rows.iter().skip(first).take(height.max(1)).map(|row| {
            self.text[row.clone()].graphemes(true).map(|it| display(it).0).collect::<String>()
        });
        (texts.collect(), (row - first, column))
    }
}

/// The displayed form of a grapheme, and its width in columns.
fn display(grapheme: &str) -> (String, usize) {
    if grapheme == "\t" {
        return ("    ".to_owned(), 4);
    }
    let shown = clean(grapheme);
    let columns = if shown == grapheme { columns(grapheme) } else { width_of(&shown) };
    (shown, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.insert(text);
        editor
    }

    #[test]
    fn the_cursor_moves_by_what_is_seen() {
        for (text, to, expect) in [
            ("ab", Move::Left, 1),
            ("a👩\u{200d}👧", Move::Left, 1),
            ("e\u{301}", Move::Left, 0),
            ("one two  ", Move::WordLeft, 4),
            ("one", Move::WordLeft, 0),
            ("a\nbc", Move::LineStart, 2),
            ("a\nbc", Move::Right, 4),
        ] {
            let mut editor = typed(text);
            editor.go(to);
            assert_eq!(editor.cursor, expect, "{text:?} {to:?}");
        }
        let mut editor = typed("one two\nthree");
        editor.cursor = 0;
        editor.go(Move::WordRight);
        assert_eq!(editor.cursor, 3);
        editor.go(Move::LineEnd);
        assert_eq!(editor.cursor, 7);
        editor.delete(Move::WordLeft);
        assert_eq!(editor.text(), "one \nthree");
    }

    #[test]
    fn rows_are_as_wide_as_the_terminal() {
        let view = |text: &str, width, height| typed(text).view(width, height);
        assert_eq!(view("abc", 2, 9), (vec!["ab".into(), "c".into()], (1, 1)));
        assert_eq!(view("ab", 2, 9), (vec!["ab".into(), String::new()], (1, 0)));
        assert_eq!(view("a\n", 9, 9), (vec!["a".into(), String::new()], (1, 0)));
        assert_eq!(view("日本語", 4, 9), (vec!["日本".into(), "語".into()], (1, 2)));
        assert_eq!(view("1\n2\n3", 9, 2), (vec!["2".into(), "3".into()], (1, 1)));
        assert_eq!(view("日", 1, 1), (vec![String::new()], (0, 0)));
        assert_eq!(view("\u{1b}[31m\t", 20, 1), (vec!["␛[31m    ".into()], (0, 9)));
    }

    #[test]
    fn arrows_move_through_rows_and_then_through_what_was_typed() {
        let mut editor = typed("first");
        assert_eq!(editor.take(), "first");
        editor.insert("second\nline");
        editor.take();
        editor.insert("draft");
        let mut step = |up: bool| {
            if up {
                editor.up(20)
            } else {
                editor.down(20)
            }
            editor.text().to_owned()
        };
        assert_eq!(step(true), "second\nline");
        // The cursor is in the second row, so the first move is to the row above it.
        assert_eq!(step(true), "second\nline");
        assert_eq!(step(true), "first");
        assert_eq!(step(true), "first");
        assert_eq!(step(false), "second\nline");
        assert_eq!(step(false), "draft");
        assert_eq!(step(false), "draft");
    }

    #[test]
    fn pasted_line_ends_are_line_feeds() {
        assert_eq!(typed("a\r\nb\rc").text(), "a\nb\nc");
    }
}
