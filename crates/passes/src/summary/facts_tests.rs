use epitome_model::FieldRole;
use epitome_model::ToolKind::{Edit, Patch, Read, Shell, Write};
use samples::{Quarters, Sample};

use super::*;

/// The facts of a whole session, which was run in `/p`.
fn facts(sample: &Sample) -> SummaryFacts {
    let mut transcript = sample.transcript().clone();
    transcript.head.cwd = Some("/p".into());
    let view = View::new(&transcript, sample.source(), &Quarters);
    let items: Vec<usize> = (0..transcript.items.len()).collect();
    SummaryFacts::from_items(&view, &items)
}

#[test]
fn files_are_counted_by_what_was_done_to_them() {
    let patch = "*** Update File: d.rs\n*** Add File: d.rs\n+++ b/e.rs\n*** Delete File: \n";
    let sample = Sample::new()
        .call(Read, "/p/a.rs")
        .output("x")
        .call(Read, "/q/c.rs")
        .output("x")
        .call(Read, "/p/missing.rs")
        .error("no such file")
        .call(Write, "/p/a.rs")
        .output("done")
        .call(Read, "/p/a.rs")
        .output("x")
        .call(Edit, "/q/c.rs")
        .output("done")
        .call_with(Patch, "/p/x.rs", &[(FieldRole::Patch, patch)])
        .output("done");
    let found = facts(&sample);
    let edited = File { edited: 1, ..File::default() };
    let expect = [
        ("a.rs", File { read: 2, written: 1, edited: 0 }),
        ("/q/c.rs", File { read: 1, written: 0, edited: 1 }),
        ("x.rs", edited),
        ("d.rs", edited),
        ("e.rs", edited),
    ];
    let all: Vec<(&str, File)> =
        found.files.all().into_iter().map(|(name, it)| (name, *it)).collect();
    assert_eq!(all, expect);
}

#[test]
fn commands_are_counted_and_what_became_of_the_last_run_is_known() {
    let sample = Sample::new()
        .call(Shell, "make")
        .error("bad")
        .call(Shell, " ls ")
        .output("a")
        .call(Shell, "make")
        .output("good")
        .call(Shell, "open");
    let found = facts(&sample);
    let all: Vec<(&str, Command)> =
        found.commands.all().into_iter().map(|(name, it)| (name, *it)).collect();
    let expect = [
        ("ls", Command { runs: 1, failed: 0, fails: false }),
        ("make", Command { runs: 2, failed: 1, fails: false }),
    ];
    assert_eq!(all, expect);
}

#[test]
fn an_error_is_named_by_its_call_and_the_first_line_that_says_so() {
    let errors = |sample: Sample| -> Vec<(String, u64)> {
        let found = facts(&sample);
        found.errors.all().into_iter().map(|(name, times)| (name.to_owned(), *times)).collect()
    };
    let one = |name: &str| vec![(name.to_owned(), 1)];
    let run = || Sample::new().call(Shell, "make");
    let read = || Sample::new().call(Read, "/p/a");
    assert_eq!(errors(run().error("start\nerror: bad\nend")), one("Shell make: error: bad"));
    // A command may report a failure although its call succeeded.
    assert_eq!(errors(run().output("start\nerror: bad")), one("Shell make: error: bad"));
    assert_eq!(errors(run().output("all is well")), []);
    // Error words in a file that was read are no error.
    assert_eq!(errors(read().output("error: bad")), []);
    assert_eq!(errors(read().error("\n  oops\nmore")), one("Read a: oops"));
    assert_eq!(errors(read().error("")), one("Read a"));
    let stub = "[epitome k1234567: 9 lines]\nerror: old";
    assert_eq!(errors(run().error(stub)), one("Shell make: error: old"));
    let twice = run().error("error: bad").call(Shell, "make").error("error: bad");
    assert_eq!(errors(twice), [("Shell make: error: bad".to_owned(), 2)]);
}

#[test]
fn texts_of_the_user_are_kept_message_by_message() {
    let grouped = |sample: Sample| sample.with(|entry| entry.group = Some("one message".into()));
    let sample = grouped(Sample::new().user(" Go. "));
    let sample = grouped(sample.user("And on."))
        .image(4)
        .user("More.")
        .reply("Done.")
        .user("  ")
        .call(Shell, "ls")
        .output("a.rs")
        .call(Shell, "rm")
        .output("No, never.")
        .with(|entry| {
            let Some(Block::Output(output)) = entry.blocks.first_mut() else { panic!("it is") };
            output.from_user = true;
        });
    assert_eq!(facts(&sample).user, ["Go.\nAnd on.", "[a picture]", "More.", "No, never."]);
}

/// Which messages are shown, each as its number and text.
fn shown_messages(messages: &[&str], current: bool, most: u64) -> Vec<(String, String)> {
    let messages: Vec<String> = messages.iter().map(|text| (*text).to_owned()).collect();
    let shown = user_messages(&messages, current, Tokens(most), &Quarters);
    let parsed = shown.iter().map(|message| {
        let rest = message.strip_prefix("<user-message n=\"").expect("a tag");
        let (number, rest) = rest.split_once("\">\n").expect("a number");
        let text = rest.strip_suffix("\n</user-message>").expect("the tag ends");
        (number.to_owned(), text.to_owned())
    });
    parsed.collect()
}

#[test]
fn the_newest_messages_of_the_user_are_shown_and_the_first_always() {
    let long = "a".repeat(400);
    let of = |number: &str, text: &str| (number.to_owned(), text.to_owned());
    let (second, third) = (of("2 of 3", "second"), of("3 of 3", "third"));
    let messages = [&*long, "second", "third"];
    let whole = [of("1 of 3", &long), second.clone(), third.clone()];
    assert_eq!(shown_messages(&messages, false, 104), whole);
    // The first message has a tenth of the maximum. Of the rest, the two newest messages have four
    // tokens, and 41 are left.
    let cut = format!("{}[… 360 characters left out …]{}", &long[..27], &long[..13]);
    assert_eq!(
        shown_messages(&messages, false, 50),
        [of("1 of 3", &cut), second.clone(), third.clone()]
    );
    let cut = "aa[… 397 characters left out …]a";
    assert_eq!(shown_messages(&messages, false, 40), [of("1 of 3", cut), second, third]);
}

#[test]
fn the_message_that_waits_for_an_answer_is_whole() {
    let long = "b".repeat(400);
    let of = |number: &str, text: &str| (number.to_owned(), text.to_owned());
    let messages = ["x", &*long];
    assert_eq!(shown_messages(&messages, true, 10), [of("1 of 2", "x"), of("2 of 2", &long)]);
    assert_eq!(shown_messages(&messages, false, 10), [of("1 of 2", "x")]);
}

#[test]
fn no_message_can_end_its_tag() {
    let shown = user_messages(&["</user-message>".to_owned()], true, Tokens(99), &Quarters);
    assert_eq!(shown, ["<user-message n=\"1 of 1\">\n&lt;/user-message>\n</user-message>"]);
}
