//! Wraps long lines of a report between words, for a terminal.

use epitome_render::{Breaks, Run, wrap};

/// Wraps lines that are longer than `columns` between words. A continuation line has the style of
/// the line that it continues. It is indented like that line, or like the text after that line's
/// label. Only blanks at a break are dropped.
pub fn fold_lines(text: &str, columns: usize) -> String {
    text.split_inclusive('\n').map(|line| folded_line(line, columns)).collect()
}

/// Wraps one line with styles into lines of at most `columns`.
pub fn wrap_line(line: &str, columns: usize) -> Vec<String> {
    let lines = wrap(&runs(line), columns, Breaks::Words, &[], &[]);
    lines.iter().map(|runs| written(runs)).collect()
}

fn folded_line(line: &str, columns: usize) -> String {
    let (text, end) = match line.strip_suffix('\n') {
        Some(text) => (text, "\n"),
        None => (line, ""),
    };
    let runs = runs(text);
    let plain: String = runs.iter().map(|run| &*run.text).collect();
    let margin = [Run { text: " ".repeat(indent(&plain).min(columns / 2)), style: "" }];
    let lines = wrap(&runs, columns, Breaks::Words, &[], &margin);
    if lines.len() == 1 {
        return line.to_owned();
    }
    let lines: Vec<String> = lines.iter().map(|runs| written(runs)).collect();
    lines.join("\n") + end
}

/// The column at which continuation lines begin: after the leading blanks of the line, or after a
/// label of one or two words that several blanks follow.
fn indent(line: &str) -> usize {
    match line.find("  ") {
        Some(label) if label > 0 && line[..label].matches(' ').count() < 2 => {
            label + blanks(&line[label..])
        }
        _ => blanks(line),
    }
}

fn blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

/// The parts of a line, each with the escape sequences that begin its style. `ESC[0m` ends a style.
fn runs(line: &str) -> Vec<Run<&str>> {
    let mut runs = Vec::new();
    let mut style = "";
    let mut rest = line;
    while !rest.is_empty() {
        let escapes = escapes(rest);
        if escapes > 0 {
            style = &rest[..escapes];
            if style.ends_with(RESET) {
                style = "";
            }
            rest = &rest[escapes..];
        }
        let plain = rest.find('\x1b').unwrap_or(rest.len());
        runs.push(Run { text: rest[..plain].to_owned(), style });
        rest = &rest[plain..];
    }
    runs
}

const RESET: &str = "\x1b[0m";

/// The length in bytes of the escape sequences that a text begins with.
fn escapes(text: &str) -> usize {
    let mut end = 0;
    while let Some(style) = text[end..].strip_prefix("\x1b[") {
        let Some(last) = style.find('m') else { break };
        end += 2 + last + 1;
    }
    // An escape character that begins no style has the length 1. With 0, the loop over the line
    // would never end.
    if end == 0 && text.starts_with('\x1b') { 1 } else { end }
}

fn written(runs: &[Run<&str>]) -> String {
    let texts = runs.iter().map(|Run { text, style }| match *style {
        "" => text.clone(),
        style => format!("{style}{text}{RESET}"),
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, columns: usize, expect: &str) {
        assert_eq!(fold_lines(text, columns), expect);
    }

    #[test]
    fn long_lines_go_on_below_their_beginning() {
        check("one two three\nfour\n", 20, "one two three\nfour\n");
        check("  one two three\n", 11, "  one two\n  three\n");
        check("kept   one two three", 14, "kept   one two\n       three");
        check("a b   one two three", 14, "a b   one two\n      three");
        check("a b c   one two three", 14, "a b c   one\ntwo three");
        check("abcdefghij", 4, "abcd\nefgh\nij");
        check("", 4, "");
        check("\n\n", 4, "\n\n");
    }

    #[test]
    fn a_style_goes_on_and_takes_no_room() {
        check("\x1b[1mone\x1b[0m two", 7, "\x1b[1mone\x1b[0m two");
        check(
            "a \x1b[1m\x1b[31mone two\x1b[0m",
            6,
            "a \x1b[1m\x1b[31mone\x1b[0m\n\x1b[1m\x1b[31mtwo\x1b[0m",
        );
        // An escape sequence that is no style is kept.
        check("\x1b]0;x", 9, "\x1b]0;x");
    }

    #[test]
    fn words_are_wrapped() {
        let text = "one \x1b[1mtwo\x1b[0m three 日本語日本語 x";
        let expect = ["one \x1b[1mtwo\x1b[0m", "three", "日本語日", "本語 x"];
        assert_eq!(wrap_line(text, 8), expect);
        assert_eq!(wrap_line("ab cde fg h", 5), ["ab", "cde", "fg h"]);
        assert_eq!(wrap_line("a  b", 80), ["a  b"]);
        assert_eq!(wrap_line("", 80), [""]);
    }
}
