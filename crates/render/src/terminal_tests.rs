use epitome_model::Block;
use epitome_model::FieldRole::{New, Old};
use epitome_model::ToolKind::{Edit, Read, Shell, Todo};
use samples::Sample;

use crate::Detail;
use crate::terminal::terminal;
use crate::testing::{every_block, with_story};

/// The output without the escape sequences of its styles.
fn screen(sample: &Sample, detail: Detail, columns: usize) -> String {
    let text = with_story(sample, detail, |story| terminal(story, columns));
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
    insta::assert_snapshot!(screen(&every_block(), Detail::Calls, 40), @r"
    Why does *it* fail?
    agent · m-1 · 2026-11-22 10:00 · /p · 2
    turns · 4 calls · 50 tokens written ·
    1.0k tokens read · +3 −1 in 2 files

    ── 1 ── 2026-11-22 10:00 ───────────────

    User
    Why does *it* fail?
      Read src/a.rs                  1 line
      Edit src/a.rs            +2 −1 1 line
      Shell cargo test               failed

    Assistant
    It is a.
    <script>alert(1)</script>

    ── 2 ── 2026-11-22 10:04 ───────────────

    User
    Show it.
      (a picture, image/png)
      Write new.md   +1 −0 [epitome k1234567: 9 lines]

    Assistant
    There.
    ");
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
    let sample = Sample::new().user(text).call(Shell, text).output(text);
    let shown = with_story(&sample.reply(text), Detail::Full, |story| terminal(story, 80));
    assert!(!shown.contains(['\u{7}', '\u{9b}']), "{shown:?}");
    assert!(!shown.contains("\u{1b}]"), "{shown:?}");
}

/// The output below the heading and the rule of the first turn, in 40 columns.
fn below_rule(sample: &Sample, detail: Detail) -> String {
    let screen = screen(sample, detail, 40);
    let (_, below) = screen.split_once("── ").expect("a turn");
    below.split_once('\n').map_or("", |(_, below)| below).to_owned()
}

#[test]
fn of_a_long_result_the_first_lines_are_shown_and_in_full_all() {
    let lines = |n: usize| (1..=n).map(|n| format!("    line {n}\n")).collect::<String>();
    let text: String = (1..=14).map(|n| format!("line {n}\n")).collect();
    let sample = Sample::new().call(Shell, "ls").output(&text);
    let call = "  Shell ls                     14 lines\n";
    let expect = format!("{call}{}    … 2 more lines\n", lines(12));
    assert_eq!(below_rule(&sample, Detail::Steps), expect);
    assert_eq!(below_rule(&sample, Detail::Full), format!("{call}{}", lines(14)));
    assert_eq!(below_rule(&sample, Detail::Calls), call);
}

#[test]
fn a_change_is_shown_line_by_line() {
    let (old, new) = ("a\nb\n", "a\n\tc\n");
    let sample = Sample::new().call_with(Edit, "/p/x", &[(Old, old), (New, new)]).output("done");
    let expect = "  Edit x                   +1 −1 1 line\n\
        \x20     a\n    − b\n    +     c\n    done\n";
    assert_eq!(below_rule(&sample, Detail::Steps), expect);
    let left = Sample::new().call_with(Edit, "/p/x", &[(Old, "[old: 9 lines]"), (New, "c")]);
    let expect = "  Edit x                +1 −0 no result\n    [old: 9 lines]\n    c\n";
    assert_eq!(below_rule(&left, Detail::Steps), expect);
}

#[test]
fn a_list_of_things_to_do_has_a_mark_before_each() {
    let list = r#"[{"content":"a","status":"done"},{"content":"b","status":"doing"},
        {"content":"c","status":"todo"}]"#;
    let list = format!("{{\"todos\":{list}}}");
    let sample = Sample::new().call(Todo, &list).with(|entry| {
        let Some(Block::Call(call)) = entry.blocks.first_mut() else { panic!("it is a call") };
        call.arguments = call.target.take().and_then(|it| it.span()).expect("it is in the source");
    });
    let expect = "  Todo                        no result\n    ☑ a\n    ◐ b\n    ☐ c\n";
    assert_eq!(below_rule(&sample, Detail::Steps), expect);
}

#[test]
fn a_wide_target_is_cut_to_its_columns() {
    let sample = Sample::new().call(Read, &"日本".repeat(20)).error("no");
    let expect = "  Read 日本日本日本日本日本日本… failed\n";
    assert_eq!(below_rule(&sample, Detail::Calls), expect);
}

#[test]
fn pictures_summaries_and_reasoning_are_shown_in_words() {
    let sample = Sample::new().image(4).summary("In short.").thinking("Hm.").output("lost");
    let expect = "  (a picture, image/png)\n\nSummary\nIn short.\n  Thinking\n    Hm.\n    lost\n";
    assert_eq!(below_rule(&sample, Detail::Steps), expect);
}

#[test]
fn a_failed_result_is_red_and_others_are_dim() {
    let shown = |sample: &Sample| with_story(sample, Detail::Steps, |story| terminal(story, 40));
    let failed = shown(&Sample::new().call(Shell, "ls").error("bad"));
    assert!(failed.ends_with("    \u{1b}[31mbad\u{1b}[0m\n"), "{failed:?}");
    let ran = shown(&Sample::new().call(Shell, "ls").output("\u{1b}[31mgood"));
    assert!(ran.ends_with("    \u{1b}[2mgood\u{1b}[0m\n"), "{ran:?}");
}
