use super::*;
use crate::Detail;
use crate::testing::{every_block, with_story};

#[test]
fn every_text_has_its_turn_its_anchor_and_its_kind() {
    let found = with_story(&every_block(), Detail::Steps, |story| {
        session_texts(story)
            .map(|it| (it.turn, it.anchor, it.kind.name(), it.text))
            .collect::<Vec<_>>()
    });
    let expect = [
        (1, "m0", "words", "Why does *it* fail?"),
        (1, "m1", "thinking", "Look first."),
        (1, "m2", "call", "Read\n/p/src/a.rs\nfn a() {}\n"),
        (1, "m5", "call", "Edit\nfn b() {}\nfn c() {}\n\nfn a() {}\n\n/p/src/a.rs\ndone"),
        (1, "m7", "call", "Shell\ncargo test\nerror: <oops>\u{1b}[31m"),
        (1, "m9", "words", "It is `a`.\n\n<script>alert(1)</script>"),
        (2, "m10", "words", "Show it."),
        (2, "m12", "call", "Write\n# New\n\n/p/new.md\n[epitome k1234567: 9 lines]"),
        (2, "m14", "words", "There."),
    ];
    let expect = expect.map(|(turn, anchor, kind, text)| (turn, anchor.into(), kind, text.into()));
    assert_eq!(found, expect);
}

#[test]
fn of_a_giant_text_the_beginning_and_the_end_are_told() {
    let sample = samples::Sample::new().user(&format!("first{}last", "x".repeat(2 * LONGEST)));
    let text =
        with_story(&sample, Detail::Steps, |story| session_texts(story).next().map(|it| it.text));
    let text = text.expect("a text");
    assert!(text.starts_with("firstx") && text.ends_with("xlast") && text.len() < LONGEST + 100);
}
