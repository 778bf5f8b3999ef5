use epitome_model::FieldRole::{Content, Prompt};
use epitome_model::ToolKind::{Shell, Task, Write};
use samples::Sample;

use super::*;
use crate::testing::{check, lines};

fn pass() -> Repeats {
    Repeats::default()
}

#[test]
fn a_result_that_the_reply_repeats_is_kept_in_the_reply() {
    let text = lines(20);
    let sample = Sample::new().user("Run it.").call(Shell, "run").output(&text);
    let reply = format!("It says:\n{text}\nThat is all.");
    check(
        &pass(),
        &sample.reply(&reply),
        &[],
        &["2 = [epitome k#: 20 lines; repeated in the reply below]"],
    );
}

#[test]
fn an_argument_that_the_reply_repeats_is_kept_in_the_reply() {
    let text = lines(20);
    let sample = Sample::new()
        .user("Write it.")
        .call_with(Write, "/p/a", &[(Content, &text), (Prompt, "short")])
        .output("done")
        .reply(&text);
    check(&pass(), &sample, &[], &["1.f0 = [epitome k#: 20 lines; repeated in the reply below]"]);
}

#[test]
fn nothing_goes_that_a_reply_of_the_same_turn_does_not_repeat() {
    let text = lines(20);
    let run = || Sample::new().user("Run it.").call(Shell, "run").output(&text);
    for sample in [
        run().reply("It worked."),
        // The reply belongs to the next turn.
        run().reply("It worked.").user("Show it.").reply(&text),
        // The reply comes before the call.
        Sample::new().user("Run it.").reply(&text).call(Shell, "run").output(&text),
        // The repetition is not in a reply.
        run().call(Task, "again").output(&text).reply("Done."),
        // The call has no result yet.
        Sample::new().user("Go.").call_with(Write, "/p/a", &[(Content, &text)]).reply(&text),
    ] {
        check(&pass(), &sample, &[], &[]);
    }
}

#[test]
fn short_and_kept_texts_stay() {
    let sample = |text: &str| {
        Sample::new().user("Run it.").call(Shell, "run").output(text).reply(&lines(40))
    };
    check(&pass(), &sample(&lines(20)), &[2], &[]);
    check(&Repeats { min_bytes: 10_000 }, &sample(&lines(20)), &[], &[]);
    check(&pass(), &sample(&lines(3)), &[], &[]);
}
