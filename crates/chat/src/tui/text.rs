//! Styled text cut into lines of a width, for ratatui.

use epitome_render::{Run, wrap as wrapped};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

pub(super) use epitome_render::{Breaks, clean, columns, width_of};

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

/// Cuts one line into lines of at most `width` columns. The first begins with `first`, each other
/// one with `rest`.
pub(super) fn wrap(
    spans: &[Span<'_>],
    width: usize,
    breaks: Breaks,
    first: &[Span<'static>],
    rest: &[Span<'static>],
) -> Vec<Line<'static>> {
    let lines = wrapped(&runs(spans), width, breaks, &runs(first), &runs(rest));
    lines.into_iter().map(|line| line.into_iter().map(span).collect()).collect()
}

fn runs(spans: &[Span<'_>]) -> Vec<Run<Style>> {
    spans.iter().map(|it| Run { text: it.content.to_string(), style: it.style }).collect()
}

fn span(run: Run<Style>) -> Span<'static> {
    Span::styled(run.text, run.style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("ab", 0), "");
    }
}
