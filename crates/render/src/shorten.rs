//! Shortens long texts for display.

use epitome_model::{Bytes, Lines, line_count};

/// The maximum length of a displayed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Bytes of the whole text.
    pub(crate) text: usize,
    /// Bytes of one line.
    pub(crate) line: usize,
}

/// A text, with its middle left out if it is long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShortenedText {
    /// The beginning, or the whole text.
    pub(crate) head: String,
    /// A description of what is left out after `head`; `None` if nothing is.
    pub(crate) gap: Option<String>,
    /// The end; empty without a gap.
    pub(crate) tail: String,
}

/// Returns the beginning and the end of a text if it is longer than the limit, or else the whole
/// text. Lines that are too long are cut, and end with the size of what is left out.
pub(crate) fn cut(text: &str, limit: Limit) -> ShortenedText {
    if text.len() <= limit.text {
        return ShortenedText {
            head: short_lines(text, limit.line),
            gap: None,
            tail: String::new(),
        };
    }
    let head = line_end_before(text, limit.text * 3 / 4);
    let tail = line_begin_behind(text, text.len() - limit.text / 4).max(head);
    let left_out = &text[head..tail];
    let size = Bytes(left_out.len() as u64);
    let gap = match line_count(left_out) {
        Lines(0 | 1) => format!("{size} not shown"),
        lines => format!("{lines} not shown, {size}"),
    };
    let head = short_lines(&text[..head], limit.line);
    ShortenedText { head, gap: Some(gap), tail: short_lines(&text[tail..], limit.line) }
}

fn short_lines(text: &str, most: usize) -> String {
    if text.len() <= most || text.split('\n').all(|line| line.len() <= most) {
        return text.to_owned();
    }
    let lines = text.split('\n').map(|line| {
        if line.len() <= most {
            return line.to_owned();
        }
        let at = floor(line, most);
        let rest = Bytes((line.len() - at) as u64);
        format!("{}… ({rest} more on this line)", &line[..at])
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A position at or before `at` to cut the text: after the last line feed if that is in the second
/// half of the text before `at`, or else between two characters.
fn line_end_before(text: &str, at: usize) -> usize {
    let at = floor(text, at);
    match text[..at].rfind('\n') {
        Some(feed) if feed + 1 >= at / 2 => feed + 1,
        Some(_) | None => at,
    }
}

fn line_begin_behind(text: &str, at: usize) -> usize {
    let at = floor(text, at);
    match text[at..].find('\n') {
        Some(feed) if feed < (text.len() - at) / 2 => at + feed + 1,
        Some(_) | None => at,
    }
}

fn floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, limit: (usize, usize), expect: (&str, Option<&str>, &str)) {
        let (limit, line) = limit;
        let shown = cut(text, Limit { text: limit, line });
        let gap = shown.gap.as_deref();
        assert_eq!((&*shown.head, gap, &*shown.tail), expect, "{text:?}");
    }

    #[test]
    fn long_texts_keep_both_ends_and_say_what_is_missing() {
        check("short\n", (80, 80), ("short\n", None, ""));
        check(
            "1\n2\n3\n4\n5\n6\n7\n8\n",
            (8, 80),
            ("1\n2\n3\n", Some("4 lines not shown, 8 B"), "8\n"),
        );
        check("ääääääää", (8, 80), ("äää", Some("8 B not shown"), "ä"));
        check("abcdefgh\nx", (80, 4), ("abcd… (4 B more on this line)\nx", None, ""));
    }
}
