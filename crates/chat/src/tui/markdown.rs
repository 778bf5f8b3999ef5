//! Renders Markdown as lines, and finds the part of a growing text that cannot change any more.

use epitome_render::markdown_lines;
use ratatui::text::{Line, Span};

use super::theme::Theme;

/// Renders a text. Code is coloured if `highlighted`, which takes most of the time.
pub(super) fn markdown(
    text: &str,
    width: usize,
    theme: Theme,
    highlighted: bool,
) -> Vec<Line<'static>> {
    let lines = markdown_lines(text, width, highlighted).into_iter();
    let lines = lines.map(|line| {
        let spans = line.into_iter();
        spans.map(|run| Span::styled(run.text, theme.ratatui_style(run.style))).collect()
    });
    lines.collect()
}

/// The length of the beginning of a growing text that cannot change any more. It ends with the last
/// empty line outside of code before a line that begins with a letter, a backtick or `#`. Any other
/// line may continue what is before an empty line, such as a list.
pub(super) fn settled_len(text: &str) -> usize {
    let mut end = 0;
    let mut at = 0;
    let mut fence: Option<&str> = None;
    let mut after_blank = false;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
        let begins = line.starts_with(|c: char| c.is_alphabetic() || matches!(c, '`' | '#'));
        if fence.is_none() && after_blank && begins {
            end = at;
        }
        match (fence, mark) {
            (None, Some(_)) => fence = mark,
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        after_blank = fence.is_none() && bare.trim_end().is_empty() && line.ends_with('\n');
        at += line.len();
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_settled_does_not_change_any_more() {
        for (text, expect) in [
            ("one", ""),
            ("one\n\n", ""),
            ("one\n\ntwo", "one\n\n"),
            ("one\n\n  two", ""),
            ("- one\n\n- two", ""),
            ("```\na\n\nb", ""),
            ("```\na\n```\n\nb", "```\na\n```\n\n"),
        ] {
            assert_eq!(&text[..settled_len(text)], expect, "{text:?}");
        }
    }
}
