//! Styled text cut into lines of a width.

use epitome_render::visible;
use ratatui::buffer::CellWidth;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

/// Columns between the stops of a tab.
const TAB: usize = 4;

/// Where a line may be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breaks {
    /// Between words, if they fit.
    Words,
    /// Anywhere: white space counts.
    Anywhere,
}

/// One line of a text as it is shown: control characters are visible, tabs are blanks. Everything
/// that a model, a tool or a file says goes through it.
pub(super) fn clean(line: &str) -> String {
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

/// The columns of a text.
pub(super) fn width_of(text: &str) -> usize {
    text.graphemes(true).map(columns).sum()
}

/// The columns of a grapheme.
pub(super) fn columns(grapheme: &str) -> usize {
    if grapheme.contains(char::is_control) { 0 } else { usize::from(grapheme.cell_width()) }
}

/// The beginning of a text that has at most so many columns; `…` replaces the rest.
pub(super) fn cut(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        used += columns(grapheme);
        if used + 1 > width {
            break;
        }
        shown.push_str(grapheme);
    }
    if width > 0 {
        shown.push('…');
    }
    shown
}

/// A grapheme with its style and columns.
struct Cell<'a> {
    text: &'a str,
    style: Style,
    columns: usize,
}

/// Cuts one line into lines of at most `width` columns. The first begins with `first`, each other
/// one with `rest`.
pub(super) fn wrap(
    runs: &[Span<'_>],
    width: usize,
    breaks: Breaks,
    first: &[Span<'static>],
    rest: &[Span<'static>],
) -> Vec<Line<'static>> {
    let cells: Vec<Cell<'_>> = runs
        .iter()
        .flat_map(|run| {
            let style = run.style;
            let cell = move |text| Cell { text, style, columns: columns(text) };
            run.content.graphemes(true).map(cell)
        })
        .collect();
    let mut lines = Vec::new();
    let mut begin = 0;
    while begin < cells.len() || lines.is_empty() {
        let prefix = if lines.is_empty() { first } else { rest };
        let taken: usize = prefix.iter().map(|span| width_of(&span.content)).sum();
        let end = line_end(&cells[begin..], width.saturating_sub(taken).max(1), breaks) + begin;
        let mut shown = end;
        if breaks == Breaks::Words && end < cells.len() {
            while shown > begin && cells[shown - 1].text == " " {
                shown -= 1;
            }
        }
        let mut spans = prefix.to_vec();
        push(&mut spans, &cells[begin..shown]);
        lines.push(Line::from(spans));
        begin = end;
        while breaks == Breaks::Words && cells.get(begin).is_some_and(|cell| cell.text == " ") {
            begin += 1;
        }
    }
    lines
}

/// How many cells the next line takes: at least one, if there is one.
fn line_end(cells: &[Cell<'_>], width: usize, breaks: Breaks) -> usize {
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

/// Adds cells as spans: neighbours of one style are one.
fn push(spans: &mut Vec<Span<'static>>, cells: &[Cell<'_>]) {
    let mut open: Option<(String, Style)> = None;
    for cell in cells {
        match &mut open {
            Some((text, style)) if *style == cell.style => text.push_str(cell.text),
            _ => {
                spans.extend(open.take().map(|(text, style)| Span::styled(text, style)));
                open = Some((cell.text.to_owned(), cell.style));
            }
        }
    }
    spans.extend(open.map(|(text, style)| Span::styled(text, style)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, width: usize, breaks: Breaks, expect: &[&str]) {
        let lines = wrap(&[Span::raw(text.to_owned())], width, breaks, &[], &[]);
        let lines: Vec<String> = lines.iter().map(Line::to_string).collect();
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
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("ab", 0), "");
    }

    #[test]
    fn prefixes_hang_and_styles_stay() {
        let bold = Style::new().add_modifier(ratatui::style::Modifier::BOLD);
        let runs = [Span::raw("a "), Span::styled("bb cc", bold)];
        let prefix = |text: &'static str| [Span::raw(text)];
        let lines = wrap(&runs, 6, Breaks::Words, &prefix("- "), &prefix("  "));
        let expect = [
            Line::from(vec![Span::raw("- "), Span::raw("a "), Span::styled("bb", bold)]),
            Line::from(vec![Span::raw("  "), Span::styled("cc", bold)]),
        ];
        assert_eq!(lines, expect);
    }

    #[test]
    fn nothing_that_a_terminal_would_obey_is_left() {
        assert_eq!(clean("a\u{1b}[31mb\tc\rd\u{202e}\n"), "a␛[31mb c␍d\\u{202e}␊");
        assert_eq!(clean("\tx"), "    x");
    }
}
