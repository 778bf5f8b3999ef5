use samples::Sample;

use crate::Detail;
use crate::markdown::markdown;
use crate::testing::{every_block, told};

#[test]
fn a_session_is_written_with_all_its_steps() {
    insta::assert_snapshot!(told(&every_block(), Detail::Steps, markdown));
}

#[test]
fn a_conversation_is_written_without_steps() {
    insta::assert_snapshot!(told(&every_block(), Detail::Conversation, markdown));
}

#[test]
fn no_html_and_no_control_character_of_a_session_is_written() {
    let text = "<b onclick=x>\u{1b}[31m\u{202e}";
    let sample = Sample::new()
        .user(text)
        .thinking(text)
        .call(epitome_model::ToolKind::Shell, text)
        .output(text)
        .reply(text);
    let page = told(&sample, Detail::Full, markdown);
    assert!(!page.contains(['\u{1b}', '\u{202e}']), "{page}");
    for line in page.lines().filter(|line| line.contains("<b ")) {
        assert!(line.starts_with('`') || page.contains("```"), "{line}");
    }
}
