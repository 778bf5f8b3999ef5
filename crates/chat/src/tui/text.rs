//! Wraps styled text into lines, for ratatui.

use epitome_render::{Run, wrap as wrapped};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

pub(super) use epitome_render::{Breaks, clean, columns, cut_to_width as cut, width_of};

/// Wraps one line into lines of at most `width` columns. The first begins with `first`, the others
/// with `rest`.
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
