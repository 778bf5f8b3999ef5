//! Wraps styled text to a width.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr as _;

use crate::visible;

/// Columns between tab stops.
const TAB: usize = 4;

/// A part of a line in one style; `S` is the style type of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run<S> {
    /// The text.
    pub text: String,
    /// The style.
    pub style: S,
}

/// Where a line may be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaks {
    /// Between words. A word that is longer than a line is broken anywhere.
    Words,
    /// Anywhere; white space is kept.
    Anywhere,
}

/// A line of a text for display: control characters are made visible, and tabs become spaces. Text
/// of models, tools and files must pass through this or through [`visible`](fn@visible) before it
/// is printed.
pub fn clean(line: &str) -> String {
    let shown = visible(line);
    if !shown.contains(['\t', '\n']) {
        return shown;
    }
    let mut wide = String::with_capacity(shown.len() + 8);
    let mut column = 0;
    for c in shown.chars() {
        if c == '\t' {
            let blanks = TAB - column % TAB;
            wide.extend(std::iter::repeat_n(' ', blanks));
            column += blanks;
        } else {
            wide.push(if c == '\n' { '␊' } else { c });
            column += 1;
        }
    }
    wide
}

/// The width of a text in columns.
pub fn width_of(text: &str) -> usize {
    text.graphemes(true).map(columns).sum()
}

/// The width of a grapheme in columns; 0 if it contains a control character. A half-width Japanese
/// sound mark has its own column.
pub fn columns(grapheme: &str) -> usize {
    let marks = grapheme.chars().filter(|c| matches!(c, '\u{ff9e}' | '\u{ff9f}'));
    match grapheme.contains(char::is_control) {
        true => 0,
        false if grapheme.chars().nth(1).is_none() => grapheme.width().max(marks.count()),
        false => grapheme.width() + marks.count(),
    }
}

/// The beginning of a text in at most `width` columns; `…` replaces the rest.
///
/// ```
/// use epitome_render::cut_to_width;
///
/// assert_eq!(cut_to_width("one two", 5), "one…");
/// assert_eq!(cut_to_width("日本語", 5), "日本…");
/// ```
pub fn cut(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let mut used = 1;
    let begin: String = text
        .graphemes(true)
        .take_while(|grapheme| {
            used += columns(grapheme);
            used <= width
        })
        .collect();
    let mark = if width == 0 { "" } else { "…" };
    format!("{}{mark}", begin.trim_end())
}

/// A grapheme with its style and columns.
struct Cell<'a, S> {
    text: &'a str,
    style: S,
    columns: usize,
}

/// Wraps a line to at most `width` columns. The first line begins with `first`, the others with
/// `rest`.
///
/// ```
/// use epitome_render::{Breaks, Run, wrap};
///
/// let runs = [Run { text: "one two".to_owned(), style: () }];
/// let lines = wrap(&runs, 4, Breaks::Words, &[], &[]);
/// assert_eq!(lines.iter().map(|line| &*line[0].text).collect::<Vec<_>>(), ["one", "two"]);
/// ```
pub fn wrap<S: Copy + PartialEq>(
    runs: &[Run<S>],
    width: usize,
    breaks: Breaks,
    first: &[Run<S>],
    rest: &[Run<S>],
) -> Vec<Vec<Run<S>>> {
    let cells: Vec<Cell<'_, S>> = runs
        .iter()
        .flat_map(|run| {
            let style = run.style;
            let texts = run.text.graphemes(true);
            texts.map(move |text| Cell { text, style, columns: columns(text) })
        })
        .collect();
    let mut lines = Vec::new();
    let mut begin = 0;
    while begin < cells.len() || lines.is_empty() {
        let prefix = if lines.is_empty() { first } else { rest };
        let taken: usize = prefix.iter().map(|run| width_of(&run.text)).sum();
        let end = line_end(&cells[begin..], width.saturating_sub(taken).max(1), breaks) + begin;
        let mut shown = end;
        if breaks == Breaks::Words && end < cells.len() {
            while shown > begin && cells[shown - 1].text == " " {
                shown -= 1;
            }
        }
        let mut line = prefix.to_vec();
        push(&mut line, &cells[begin..shown]);
        lines.push(line);
        begin = end;
        while breaks == Breaks::Words && cells.get(begin).is_some_and(|cell| cell.text == " ") {
            begin += 1;
        }
    }
    lines
}

/// The number of cells on the next line; at least one if there are any.
fn line_end<S>(cells: &[Cell<'_, S>], width: usize, breaks: Breaks) -> usize {
    let mut used = 0;
    let mut word = 0;
    for (idx, cell) in cells.iter().enumerate() {
        used += cell.columns;
        if used > width {
            if breaks == Breaks::Anywhere || cell.text == " " || word == 0 {
                return idx.max(1);
            }
            return word;
        }
        if cell.text == " " && cells[..idx].iter().any(|before| before.text != " ") {
            word = idx + 1;
        }
    }
    cells.len()
}

/// Adds cells as runs, joining adjacent ones of the same style.
fn push<S: Copy + PartialEq>(line: &mut Vec<Run<S>>, cells: &[Cell<'_, S>]) {
    let begun = line.len();
    for cell in cells {
        match line.get_mut(begun..).and_then(<[_]>::last_mut) {
            Some(run) if run.style == cell.style => run.text.push_str(cell.text),
            _ => line.push(Run { text: cell.text.to_owned(), style: cell.style }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str, style: u8) -> Run<u8> {
        Run { text: text.to_owned(), style }
    }

    fn check(text: &str, width: usize, breaks: Breaks, expect: &[&str]) {
        let lines = wrap(&[run(text, 0)], width, breaks, &[], &[]);
        let line_text = |line: &Vec<Run<u8>>| line.iter().map(|run| &*run.text).collect();
        let lines: Vec<String> = lines.iter().map(line_text).collect();
        assert_eq!(lines, expect, "{text:?} in {width}");
    }

    #[test]
    fn lines_are_cut_between_words_or_anywhere() {
        check("", 5, Breaks::Words, &[""]);
        check("one two three", 7, Breaks::Words, &["one two", "three"]);
        check("one two three", 8, Breaks::Words, &["one two", "three"]);
        check("one two three", 6, Breaks::Words, &["one", "two", "three"]);
        check("abcdefgh ij", 3, Breaks::Words, &["abc", "def", "gh", "ij"]);
        check("  ab cd", 4, Breaks::Words, &["  ab", "cd"]);
        check("a  b c", 3, Breaks::Anywhere, &["a  ", "b c"]);
    }

    #[test]
    fn wide_characters_are_never_cut_in_half() {
        check("日本語", 4, Breaks::Words, &["日本", "語"]);
        check("日本語", 3, Breaks::Anywhere, &["日", "本", "語"]);
        check("日本", 1, Breaks::Words, &["日", "本"]);
        check("e\u{301}e\u{301}", 1, Breaks::Words, &["e\u{301}", "e\u{301}"]);
    }

    #[test]
    fn prefixes_hang_and_styles_stay() {
        let runs = [run("a ", 0), run("bb cc", 1)];
        let lines = wrap(&runs, 6, Breaks::Words, &[run("- ", 0)], &[run("  ", 0)]);
        let expect = [[run("- ", 0), run("a ", 0), run("bb", 1)].to_vec()];
        let expect = expect.into_iter().chain([[run("  ", 0), run("cc", 1)].to_vec()]);
        let expect: Vec<Vec<Run<u8>>> = expect.collect();
        assert_eq!(lines, expect);
    }

    #[test]
    fn nothing_that_a_terminal_would_obey_is_left() {
        assert_eq!(clean("a\u{1b}[31mb\tc\rd\u{202e}\n"), "a␛[31mb c␍d\\u{202e}␊");
        assert_eq!(clean("\tx"), "    x");
    }
}
