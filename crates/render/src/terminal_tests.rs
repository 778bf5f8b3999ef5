use samples::Sample;

use crate::Detail;
use crate::terminal::terminal;
use crate::testing::{every_block, told};

/// The screen without the escapes of its styles.
fn screen(sample: &Sample, detail: Detail, columns: usize) -> String {
    let text = told(sample, detail, |story| terminal(story, columns));
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    plain + rest
}

#[test]
fn a_session_is_shown_with_all_its_steps() {
    insta::assert_snapshot!(screen(&every_block(), Detail::Steps, 72));
}

#[test]
fn calls_are_shown_on_a_line_each() {
    insta::assert_snapshot!(screen(&every_block(), Detail::Calls, 40));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let sample = Sample::new().user(&"word ".repeat(60)).reply(&"日本".repeat(60));
    for columns in [30, 57, 120] {
        let screen = screen(&sample, Detail::Steps, columns);
        let width = |line: &str| unicode_width::UnicodeWidthStr::width(line.trim_end());
        assert!(screen.lines().all(|line| width(line) <= columns), "{columns}\n{screen}");
    }
}

#[test]
fn no_escape_of_a_session_reaches_the_terminal() {
    let text = "a\u{1b}]0;title\u{7}b\u{9b}2J";
    let sample = Sample::new().user(text).call(epitome_model::ToolKind::Shell, text).output(text);
    let shown = told(&sample.reply(text), Detail::Full, |story| terminal(story, 80));
    assert!(!shown.contains(['\u{7}', '\u{9b}']), "{shown:?}");
    assert!(!shown.contains("\u{1b}]"), "{shown:?}");
}
