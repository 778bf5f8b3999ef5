use epitome_model::ToolKind::{Edit, Read};
use samples::Sample;

use super::*;
use crate::testing::{check, lines};

const PASS: Stale = Stale { min_bytes: 0 };

fn read() -> Sample {
    Sample::new().user("Look.").call(Read, "/p/a").output(&lines(9))
}

fn part(text: &str) -> impl FnOnce(&mut epitome_model::Entry) {
    move |entry| {
        let Some(Block::Call(call)) = entry.blocks.first_mut() else { panic!("it is a call") };
        call.part = Some(text.into());
    }
}

#[test]
fn a_read_points_to_a_later_read_of_the_same_file() {
    let sample = read().call(Read, "/p/a").output(&lines(9));
    check(&PASS, &sample, &[], &["2 = [epitome k#: 9 lines; read again below]"]);
}

#[test]
fn a_read_points_to_a_later_change_of_the_file() {
    let sample = read().call(Edit, "/p/a").output("done");
    check(&PASS, &sample, &[], &["2 = [epitome k#: 9 lines; changed below]"]);
}

#[test]
fn what_came_later_counts_only_for_the_same_file_and_if_it_succeeded() {
    check(&PASS, &read(), &[], &[]);
    check(&PASS, &read().call(Read, "/p/b").output(&lines(9)), &[], &[]);
    check(&PASS, &read().call(Read, "/p/a").error("no such file"), &[], &[]);
    check(&PASS, &read().call(Edit, "/p/a"), &[], &[]);
}

#[test]
fn a_whole_read_repeats_a_part_and_a_part_does_not_repeat_the_whole() {
    let first = || Sample::new().user("Look.").call(Read, "/p/a");
    let whole_later =
        first().with(part("1-9")).output(&lines(9)).call(Read, "/p/a").output(&lines(20));
    check(&PASS, &whole_later, &[], &["2 = [epitome k#: 9 lines; read again below]"]);
    let part_later =
        first().output(&lines(20)).call(Read, "/p/a").with(part("1-9")).output(&lines(9));
    check(&PASS, &part_later, &[], &[]);
}

#[test]
fn short_failed_kept_and_taken_results_stay() {
    let again = |first: Sample| first.call(Read, "/p/a").output(&lines(9));
    check(&Stale { min_bytes: 10_000 }, &again(read()), &[], &[]);
    check(&PASS, &again(read()), &[2], &[]);
    check(&PASS, &again(Sample::new().call(Read, "/p/a").output("short")), &[], &[]);
    check(&PASS, &again(Sample::new().call(Read, "/p/a").error(&lines(9))), &[], &[]);
    let sample = again(read());
    let mut view = View::new(sample.transcript(), sample.source(), &samples::Quarters);
    let edits = PASS.plan(&view);
    view.mark_edited(&edits);
    assert_eq!(PASS.plan(&view), []);
}
