//! Converts terminal output to plain text. Escape sequences are removed. If a line is overwritten
//! again and again, as a progress bar is, only its last state is kept.
//!
//! Rows that were scrolled out of the terminal are final. Long rows are not wrapped.

use std::collections::VecDeque;
use std::mem;

use anstyle_parse::{Params, Parser, Perform};

/// The size of the terminal that commands see.
pub(super) const WIDTH: usize = 200;
pub(super) const HEIGHT: usize = 50;

/// The maximum number of characters of a row that may still change. In the last row, a further
/// character makes all rows final; in any other row, it is dropped.
const LONGEST: usize = 16 << 10;

/// The maximum length of an escape sequence in bytes. After a longer one, the next bytes are
/// treated as text, because the sequence probably comes from a binary file.
const SEQUENCE: usize = 4 << 10;

/// Converts terminal output to plain text.
pub(super) struct Plain {
    parser: Parser,
    screen: Screen,
}

impl Plain {
    pub(super) fn new() -> Plain {
        Plain { parser: <Parser>::new(), screen: Screen::new() }
    }

    /// Processes output. Returns the text that cannot change any more.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        for &byte in bytes {
            self.screen.unseen += 1;
            if self.screen.unseen > SEQUENCE {
                self.parser = <Parser>::new();
                self.screen.unseen = 0;
            }
            self.parser.advance(&mut self.screen, byte);
        }
        mem::take(&mut self.screen.done)
    }

    /// The rows that may still change.
    pub(super) fn rows(&self) -> String {
        let mut text = String::new();
        for (n, row) in self.screen.rows.iter().enumerate() {
            if n > 0 {
                text.push('\n');
            }
            row.add_to(&mut text);
        }
        text
    }

    /// Makes all rows final, and returns the text that [`Plain::push`] has not returned yet.
    pub(super) fn end(mut self) -> String {
        self.screen.clear();
        self.screen.done
    }
}

/// The rows of a terminal that may still change, and the cursor.
struct Screen {
    rows: VecDeque<Row>,
    row: usize,
    column: usize,
    done: String,
    /// The number of bytes since the last character, control character or complete escape sequence.
    unseen: usize,
}

#[derive(Default)]
struct Row {
    text: Vec<char>,
    /// Whether the cursor was moved back in the row, or a part of the row was erased. Trailing
    /// spaces are then left out, because programs write them over earlier text.
    is_rewritten: bool,
}

impl Row {
    fn add_to(&self, text: &mut String) {
        let mut row = &self.text[..];
        while let (true, Some((' ', rest))) = (self.is_rewritten, row.split_last()) {
            row = rest;
        }
        text.extend(row);
    }
}

impl Screen {
    fn new() -> Screen {
        let rows = VecDeque::from([Row::default()]);
        Screen { rows, row: 0, column: 0, done: String::new(), unseen: 0 }
    }

    fn put(&mut self, c: char) {
        let is_last = self.row + 1 == self.rows.len();
        let row = &mut self.rows[self.row];
        if row.text.len() >= LONGEST && self.column >= row.text.len() {
            if !is_last {
                return;
            }
            // A row of this length is final, and so are the rows above it.
            self.clear();
        }
        let row = &mut self.rows[self.row];
        if self.column > row.text.len() {
            row.text.resize(self.column, ' ');
        }
        match row.text.get_mut(self.column) {
            Some(there) => *there = c,
            None => row.text.push(c),
        }
        self.column += 1;
    }

    fn feed(&mut self) {
        self.row += 1;
        self.column = 0;
        if self.row == self.rows.len() {
            self.rows.push_back(Row::default());
        }
        if self.rows.len() > HEIGHT
            && let Some(row) = self.rows.pop_front()
        {
            self.row -= 1;
            row.add_to(&mut self.done);
            self.done.push('\n');
        }
    }

    /// Makes all rows final. The next output begins where the last row ended.
    fn clear(&mut self) {
        let rows = mem::replace(&mut self.rows, VecDeque::from([Row::default()]));
        for (n, row) in rows.iter().enumerate() {
            if n > 0 {
                self.done.push('\n');
            }
            row.add_to(&mut self.done);
        }
        self.row = 0;
        self.column = 0;
    }

    fn go(&mut self, row: usize, column: usize) {
        self.row = row.min(self.rows.len() - 1);
        let row = &mut self.rows[self.row];
        row.is_rewritten |= column < row.text.len();
        self.column = column.min(row.text.len().max(WIDTH));
    }

    /// Erases a part of the row, as the escape sequence `K` does: with 0 from the cursor to the
    /// end, with 1 from the beginning to the cursor, otherwise all of it.
    fn erase(&mut self, what: usize) {
        let row = &mut self.rows[self.row];
        row.is_rewritten = true;
        match what {
            0 => row.text.truncate(self.column),
            1 => row.text.iter_mut().take(self.column + 1).for_each(|there| *there = ' '),
            _ => row.text.clear(),
        }
    }
}

impl Perform for Screen {
    fn print(&mut self, c: char) {
        self.unseen = 0;
        self.put(c);
    }

    fn execute(&mut self, byte: u8) {
        self.unseen = 0;
        match byte {
            b'\n' => self.feed(),
            b'\r' => self.go(self.row, 0),
            b'\t' => self.put('\t'),
            0x08 => self.go(self.row, self.column.saturating_sub(1)),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, _: &[u8], _: bool, action: u8) {
        self.unseen = 0;
        let given = |n: usize| params.iter().nth(n).and_then(|it| it.first()).copied();
        let param = |n: usize| usize::from(given(n).unwrap_or_default());
        let by = param(0).max(1);
        let row = self.row;
        let column = self.column;
        match action {
            b'A' => self.go(row.saturating_sub(by), column),
            b'B' => self.go(row + by, column),
            b'C' => self.go(row, column + by),
            b'D' => self.go(row, column.saturating_sub(by)),
            b'E' => self.go(row + by, 0),
            b'F' => self.go(row.saturating_sub(by), 0),
            b'G' => self.go(row, by - 1),
            b'H' | b'f' => self.go(by - 1, param(1).max(1) - 1),
            b'J' if param(0) == 0 => {
                self.erase(0);
                self.rows.truncate(row + 1);
            }
            // The erased rows become final, so that their text is not lost.
            b'J' if param(0) > 1 => {
                self.clear();
                self.feed_if_begun();
            }
            b'K' => self.erase(param(0)),
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, _: &[u8], _: bool, _: u8) {
        self.unseen = 0;
    }

    fn osc_dispatch(&mut self, _: &[&[u8]], _: bool) {
        self.unseen = 0;
    }
}

impl Screen {
    /// Ends the text with a line feed, unless it is empty or ends with one already.
    fn feed_if_begun(&mut self) {
        if !self.done.is_empty() && !self.done.ends_with('\n') {
            self.done.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(written: &str) -> String {
        let mut plain = Plain::new();
        // The output arrives in chunks.
        let mut text: String = written.as_bytes().chunks(7).map(|it| plain.push(it)).collect();
        text.push_str(&plain.end());
        text
    }

    #[test]
    fn of_what_a_terminal_shows_the_text_stays() {
        for (written, expect) in [
            ("", ""),
            ("a\r\n\tb\r\n", "a\n\tb\n"),
            ("a  \nb", "a  \nb"),
            // A line feed begins a new line even without a carriage return.
            ("a\n\n\nb\n", "a\n\n\nb\n"),
            (
                "\x1b[31;1mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x07 Größe 漢字",
                "red link Größe 漢字",
            ),
            // The last state of a line that is overwritten.
            ("10%\r50%\r100%\ndone\n", "100%\ndone\n"),
            ("fetching 10 of 10\rok\x1b[K\n", "ok\n"),
            ("fetching\r        \rok\n", "ok\n"),
            ("long line\r\x1b[2Kshort", "short"),
            ("abc\x08\x08X\n", "aXc\n"),
            ("a\x1b[5Gb\x1b[2Dx\n", "a  xb\n"),
            ("abcd\x1b[2D\x1b[1Kx", "  xd"),
            // Several lines of progress.
            ("one 1%\ntwo 1%\n\x1b[2Aone 9%\x1b[B\rtwo 99%\n", "one 9%\ntwo 99%\n"),
            ("a\nb\nc\x1b[2F\x1b[Jz", "z"),
            // The text of a cleared screen is kept.
            ("before\x1b[2J\x1b[Hafter\n", "before\nafter\n"),
            ("\x1b[2J\x1b[Htop\x1b[3;5Hx", "top x"),
            // Cursor positions out of bounds, and incomplete sequences.
            ("a\x1b[99A\x1b[99Dx\x1b[", "x"),
            ("a\x07\x00\x1b(Bb", "ab"),
        ] {
            assert_eq!(plain(written), expect, "{written:?}");
        }
    }

    #[test]
    fn rows_that_left_the_terminal_are_done() {
        let lines: String = (0..100).map(|n| format!("{n}\n")).collect();
        let mut screen = Plain::new();
        let done = screen.push(lines.as_bytes());
        assert_eq!(done.lines().count(), 100 + 1 - HEIGHT);
        // The cursor cannot reach the row any more.
        let rest = screen.push(b"\x1b[99Ax") + &screen.end();
        assert_eq!((done + &rest).replacen("x1\n", "51\n", 1), lines);
    }

    #[test]
    fn nothing_that_is_written_takes_more_than_its_size() {
        let long = "x".repeat(3 * LONGEST);
        assert_eq!(plain(&format!("{long}\n{long}\ry")).len(), 6 * LONGEST + 1);
        assert_eq!(plain(&"\x1b[9999C".repeat(1_000)), "");
        let row = plain(&"\x1b[9999Cx".repeat(100));
        assert!(row.len() <= 100 * WIDTH, "{}", row.len());
        // A sequence that never ends.
        let endless = plain(&format!("\x1b]0;{}", "title\n".repeat(10_000)));
        assert!(endless.len() > 60_000 - 2 * SEQUENCE, "{}", endless.len());
    }
}
