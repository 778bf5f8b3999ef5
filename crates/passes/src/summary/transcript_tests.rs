use epitome_model::FieldRole::Content;
use epitome_model::ToolKind::{Shell, Write};
use samples::{Quarters, Sample};

use super::*;

#[test]
fn the_last_summary_is_the_one_that_counts() {
    let sample = Sample::new().summary("First.").user("Go.").summary("Second.").reply("Done.");
    let view = View::new(sample.transcript(), sample.source(), &Quarters);
    let of = |items: &[usize]| summary_of(&view, items);
    assert_eq!(of(&[0, 1, 2, 3]).as_deref(), Some("Second."));
    assert_eq!(of(&[0, 1]).as_deref(), Some("First."));
    assert_eq!(of(&[1, 3]), None);
}

#[test]
fn only_a_text_of_the_user_is_a_request() {
    let sample =
        Sample::new().user("Go.").image(4).reply("Done.").system("A note.").hidden("x", "1");
    let view = View::new(sample.transcript(), sample.source(), &Quarters);
    let requests: Vec<bool> = (0..5).map(|item| is_request(&view, item)).collect();
    assert_eq!(requests, [true, false, false, false, false]);
}

#[test]
fn every_text_of_a_history_may_be_quoted() {
    let sample = Sample::new()
        .user("user text")
        .thinking("thinking text")
        .call_with(Write, "/p/target.rs", &[(Content, "field text")])
        .output("output text")
        .call(Shell, "ls")
        .summary("summary text")
        .reply("reply text");
    let view = View::new(sample.transcript(), sample.source(), &Quarters);
    let mut history = Haystack::default();
    (0..7).for_each(|item| listen(&view, item, &mut history));
    for text in [
        "user text",
        "thinking text",
        "Write",
        "/p/target.rs",
        "field text",
        "\"content\":\"field text\"",
        "output text",
        "Shell",
        "summary text",
        "reply text",
    ] {
        assert!(history.has(text), "{text}");
    }
    assert!(!history.has("other text"));
}
