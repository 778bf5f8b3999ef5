use epitome_model::ToolKind::{Read, Shell, Todo};
use epitome_model::{Block, FieldRole};
use samples::Sample;

use crate::Detail;
use crate::markdown::markdown;
use crate::testing::{every_block, with_story};

#[test]
fn a_session_is_written_with_all_its_steps() {
    insta::assert_snapshot!(with_story(&every_block(), Detail::Steps, markdown));
}

#[test]
fn a_conversation_is_written_without_steps() {
    insta::assert_snapshot!(with_story(&every_block(), Detail::Conversation, markdown), @r#"
    # Why does \*it\* fail?

    agent · m-1 · 2026-11-22 10:00 · 2 turns · 4 tool calls · 50 tokens written · 1.0k tokens read · +3 −1 lines in 2 files

    ## 1 · 2026-11-22 10:00

    **User**

    > Why does *it* fail?

    **Assistant**

    It is `a`.

    &lt;script>alert(1)&lt;/script>

    ## 2 · 2026-11-22 10:04

    **User**

    > Show it.

    *a picture (image/png, 31 B)*

    **Assistant**

    There.
    "#);
}

#[test]
fn no_html_and_no_control_character_of_a_session_is_written() {
    let text = "<b onclick=x>\u{1b}[31m\u{202e}";
    let sample = Sample::new().user(text).thinking(text).call(Shell, text).output(text).reply(text);
    let page = with_story(&sample, Detail::Full, markdown);
    assert!(!page.contains(['\u{1b}', '\u{202e}']), "{page}");
    for line in page.lines().filter(|line| line.contains("<b ")) {
        assert!(line.starts_with('`') || page.contains("```"), "{line}");
    }
}

/// The Markdown below the heading of a session with one turn.
fn below_head(sample: &Sample, detail: Detail) -> String {
    let page = with_story(sample, detail, markdown);
    let headed = page.split_once("\n## ").and_then(|(_, below)| below.split_once('\n'));
    headed.map_or("", |(_, below)| below).to_owned()
}

#[test]
fn a_fence_is_longer_than_any_within_and_colours_are_taken_out() {
    let text = "```\n````\n\u{1b}[31mred\u{1b}[0m\u{7}";
    let sample = Sample::new().call(Shell, "ls").output(text);
    let expect = "\n<details><summary>1 step</summary>\n\n\
         <details><summary><b>Shell</b> <code>ls</code> · 3 lines</summary>\n\n\
         `````\n```\n````\nred␇\n`````\n\n\
         </details>\n\n</details>\n";
    assert_eq!(below_head(&sample, Detail::Steps), expect);
}

#[test]
fn a_list_of_things_to_do_is_a_list_of_tasks() {
    let list = r#"{"todos":[{"content":"*a*","status":"done"},
        {"content":"b","status":"in_progress"},{"content":"c","status":"pending"}]}"#;
    let sample = Sample::new().call(Todo, list).with(|entry| {
        let Some(Block::Call(call)) = entry.blocks.first_mut() else { panic!("it is a call") };
        call.arguments = call.target.take().and_then(|it| it.span()).expect("it is in the source");
    });
    let expect = "\n<details><summary>1 step</summary>\n\n\
         <details><summary><b>Todo</b> · no result</summary>\n\n\
         - [x] \\*a\\*\n- [ ] → b\n- [ ] c\n\n\
         </details>\n\n</details>\n";
    assert_eq!(below_head(&sample, Detail::Steps), expect);
}

#[test]
fn a_file_that_was_read_is_code_without_its_numbers() {
    let sample = Sample::new().call(Read, "/p/a.rs").output("  1→fn a() {}\n").with(|entry| {
        let Some(Block::Output(output)) = entry.blocks.first_mut() else { panic!("it is") };
        output.numbered = true;
    });
    let page = below_head(&sample, Detail::Steps);
    assert!(page.contains("</summary>\n\n```rs\nfn a() {}\n```\n\n</details>"), "{page}");
}

#[test]
fn every_argument_is_written_in_its_own_form() {
    let long = "word ".repeat(30);
    let fields =
        [(FieldRole::Command, "ls -l"), (FieldRole::Prompt, "Do it."), (FieldRole::Other, &*long)];
    let sample = Sample::new().call_with(Shell, "ls", &fields).reply("Done.");
    let expect = format!(
        "\n<details><summary>1 step</summary>\n\n\
         <details><summary><b>Shell</b> <code>ls</code> · no result</summary>\n\n\
         ```sh\nls -l\n```\n\n> Do it.\n\nother:\n\n```\n{long}\n```\n\n\
         </details>\n\n</details>\n\n**Assistant**\n\nDone.\n"
    );
    assert_eq!(below_head(&sample, Detail::Steps), expect);
}

#[test]
fn summaries_reasoning_and_texts_of_the_agent_are_folded() {
    let sample = Sample::new().system("A *note*.").summary("In short.").thinking("Hm.");
    let folded = |title: &str, text: &str| {
        format!("\n<details><summary>{title}</summary>\n\n> {text}\n\n</details>\n")
    };
    let steps = [
        folded("<i>System message</i>", "A *note*."),
        folded("<b>The conversation before was summarised</b>", "In short."),
        folded("<i>Thinking</i>", "Hm."),
    ];
    let expect = format!("\n<details><summary>3 steps</summary>\n{}\n</details>\n", steps.concat());
    assert_eq!(below_head(&sample, Detail::Steps), expect);
}

#[test]
fn a_stub_without_a_call_is_shown() {
    let stub = epitome_model::CLEARED;
    let expect = format!(
        "\n<details><summary>1 step</summary>\n\n\
         <details><summary>A result without a call</summary>\n\n```\n{stub}\n```\n\n\
         </details>\n\n</details>\n"
    );
    assert_eq!(below_head(&Sample::new().output(stub), Detail::Steps), expect);
}

#[test]
fn a_result_without_a_call_and_pictures_are_named() {
    let sample = Sample::new().output_with_image("lost", 4);
    let expect = "\n<details><summary>1 step</summary>\n\n\
         <details><summary>A result without a call</summary>\n\n```\nlost\n```\n\n\
         *a picture (image/png, 4 B)*\n\n</details>\n\n</details>\n";
    assert_eq!(below_head(&sample, Detail::Steps), expect);
}
