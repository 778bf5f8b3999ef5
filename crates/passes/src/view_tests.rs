use epitome_model::FieldRole::Content;
use epitome_model::ToolKind::{Edit as EditTool, Read, Shell, Write};
use samples::{Quarters, Sample};

use super::*;
use crate::testing::lines;

fn block(item: usize) -> At {
    At::Block { item, block: 0 }
}

fn field(item: usize) -> At {
    At::Field { item, block: 0, field: 0 }
}

/// Calls `of` with a view of the sample as a session that was run in `/p`, and returns the result.
fn seen<T>(sample: &Sample, of: impl FnOnce(&View<'_>) -> T) -> T {
    let mut transcript = sample.transcript().clone();
    transcript.head.cwd = Some("/p".into());
    of(&View::new(&transcript, sample.source(), &Quarters))
}

#[test]
fn every_place_has_a_description_of_a_few_words() {
    let sample = Sample::new()
        .user("Go.")
        .thinking("Hm.")
        .call(Read, "/p/src/a.rs")
        .output("x")
        .hidden("toolUseResult", "{}")
        .call_with(Write, "/q/b.rs", &[(Content, "y")])
        .image(4)
        .output("lost")
        .with(|entry| {
            let Some(Block::Output(output)) = entry.blocks.first_mut() else { panic!("it is") };
            output.call = "of no call".into();
        });
    let cases = [
        (block(0), "block"),
        (block(1), "thinking"),
        (block(2), "block"),
        (block(3), "Read src/a.rs"),
        (At::HiddenField { item: 4, field: 0 }, "toolUseResult"),
        (At::HiddenField { item: 4, field: 9 }, "copy"),
        (field(5), "content of Write /q/b.rs"),
        (At::Field { item: 5, block: 0, field: 9 }, "argument of Write /q/b.rs"),
        (block(6), "image/png"),
        (At::Part { item: 3, block: 0, part: 1 }, "image"),
        (block(7), "result"),
    ];
    for (at, expect) in cases {
        assert_eq!(seen(&sample, |view| view.describe(at)), expect, "{at:?}");
    }
}

#[test]
fn the_text_of_a_file_is_known_where_it_was_read_and_written() {
    let sample = Sample::new()
        .call(Read, "/p/a")
        .output("  1→one\n  2→two\nno number\n  3→three")
        .with(|entry| {
            let Some(Block::Output(output)) = entry.blocks.first_mut() else { panic!("it is") };
            output.numbered = true;
        })
        .call(Read, "/p/b")
        .output("1→one")
        .call_with(Write, "/p/c", &[(Content, "text")])
        .output("done")
        .call(Shell, "cat d")
        .output("text")
        .call_with(EditTool, "/p/e", &[(Content, "text")]);
    let of = |at| seen(&sample, |view| view.file_text(at));
    let found = |path: &str, text: &str| Some((path.to_owned(), text.to_owned()));
    assert_eq!(of(block(1)), found("/p/a", "one\ntwo\n"));
    assert_eq!(of(block(3)), found("/p/b", "1→one"));
    assert_eq!(of(field(4)), found("/p/c", "text"));
    for at in [block(4), block(5), block(7), field(8), At::HiddenField { item: 1, field: 0 }] {
        assert_eq!(of(at), None, "{at:?}");
    }
}

#[test]
fn numbered_lines_end_before_one_that_begins_with_a_separator() {
    assert_eq!(without_numbers("1→one\n→two\n3→three\n"), "one\n");
    assert_eq!(without_numbers("1\tone\n\ttwo\n3\tthree\n"), "one\n");
}

#[test]
fn the_newest_results_are_counted_from_the_end() {
    let run = |sample: Sample, n: &str| sample.call(Shell, n).output(n);
    let sample = ["a", "b", "c"].into_iter().fold(Sample::new(), run);
    let newest = |n| {
        let mut found: Vec<At> = seen(&sample, |view| view.newest_outputs(n)).into_iter().collect();
        found.sort();
        found
    };
    assert_eq!(newest(0), []);
    assert_eq!(newest(2), [block(3), block(5)]);
    assert_eq!(newest(9), [block(1), block(3), block(5)]);
    let odd = seen(&sample, |view| view.newest_outputs_of(1, |item| item < 4));
    assert_eq!(odd.into_iter().collect::<Vec<_>>(), [block(3)]);
}

#[test]
fn a_call_is_answered_and_succeeds_as_its_result_says() {
    let sample =
        Sample::new().call(Shell, "a").output("x").call(Shell, "b").error("x").call(Shell, "c");
    let of = |item: usize| {
        seen(&sample, |view| {
            let entry = view.transcript.items[item].entry().expect("an entry");
            let Block::Call(call) = &entry.blocks[0] else { panic!("it is a call") };
            (view.is_answered(call), view.succeeded(call))
        })
    };
    assert_eq!([of(0), of(2), of(4)], [(true, true), (true, false), (false, false)]);
}

#[test]
fn a_text_is_only_replaced_by_one_of_fewer_bytes_and_no_more_tokens() {
    let sample = Sample::new().call(Shell, "a").output("12345678");
    let replaced = |new: &str| {
        seen(&sample, |view| view.replace(block(1), "12345678", new.to_owned(), "test").is_some())
    };
    assert!(replaced("1234567"));
    assert!(replaced(""));
    assert!(!replaced("12345678"));
    // This text has seven bytes, but nine as JSON.
    assert!(!replaced("12345\n\n"));
    assert!(replaced("12345\n"));
}

#[test]
fn a_place_in_an_edited_block_is_taken_as_well() {
    let sample = Sample::new().call_with(Write, "/p/a", &[(Content, "x")]).output("done");
    let mut view = View::new(sample.transcript(), sample.source(), &Quarters);
    let edit = |at| Edit { at, verb: Verb::Drop, pass: "test" };
    let part = At::Part { item: 1, block: 0, part: 0 };
    assert!(!view.is_edited(part) && !view.is_edited(field(0)));
    view.mark_edited(&[edit(block(1)), edit(field(0))]);
    assert!(view.is_edited(part) && view.is_edited(field(0)) && view.is_edited(block(1)));
    assert!(!view.is_edited(block(0)));
}

#[test]
fn the_original_of_a_stub_is_the_first_result_of_its_call_if_the_reference_says_so() {
    let run = || Sample::new().call(Shell, "a").output(&lines(20));
    let whole_of = |sample: &Sample, item: usize| {
        let entry = sample.transcript().items[item].entry().expect("an entry");
        let Block::Output(output) = &entry.blocks[0] else { panic!("it is a result") };
        output.whole
    };
    let original = whole_of(&run(), 1);
    let reference = Ref::from_bytes(&run().source().at(original));
    for (reference, expect) in
        [(reference, Some(original)), (Ref::from_bytes(b"another result"), None)]
    {
        let stub = Stub::new(reference).with_what(SHORTENED).with_lines(Lines(20));
        let sample = run().output(&stub.to_string());
        let found = seen(&sample, |view| {
            let outputs: Vec<&Output> = view.outputs().map(|(_, output, _)| output).collect();
            let stub = outputs.iter().find(|output| output.whole == whole_of(&sample, 2));
            stub.and_then(|stub| view.ingest_original(stub)).map(|first| first.whole)
        });
        assert_eq!(found, expect, "{stub}");
    }
}

#[test]
fn a_text_that_begins_with_what_a_recipe_leaves_is_known() {
    for (text, expect) in [("[output: 20 lines]", true), ("see [output: 20 lines]", false)] {
        let is_recipe_text =
            seen(&Sample::new(), |view| view.is_recipe_text(&Text::Owned(text.into())));
        assert_eq!(is_recipe_text, expect, "{text}");
    }
}
