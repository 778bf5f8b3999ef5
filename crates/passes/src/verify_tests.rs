use std::ops::Range;

use epitome_model::ToolKind::Shell;
use samples::{Quarters, Sample};

use super::*;
use crate::plan_edits;
use crate::testing::lines;

/// A format without invariants, in which other programs read one value of each record.
struct NoInvariants(Vec<Range<usize>>);

impl Invariants for NoInvariants {
    fn check(&self, _: &Transcript, _: &dyn Source) -> Vec<Violation> {
        Vec::new()
    }

    fn accounting(&self, _: &[u8]) -> Vec<Range<usize>> {
        self.0.clone()
    }
}

fn before() -> Sample {
    Sample::new().user("Go.").call(Shell, "run").output(&lines(20)).reply("Done.")
}

/// The session of [`before`], but with this user message, this result and this reply.
fn after(user: &str, output: &str, reply: &str) -> Sample {
    Sample::new().user(user).call(Shell, "run").output(output).reply(reply)
}

const STUB: &str = "[output: 20 lines]";

fn plan() -> Plan {
    let at = At::Block { item: 2, block: 0 };
    let edit = Edit { at, verb: Verb::Replace(STUB.into()), pass: "test" };
    Plan::from_edit(Some(edit))
}

fn side(sample: &Sample) -> Side<'_> {
    Side { transcript: sample.transcript(), source: sample.source() }
}

/// The violations of the planned edit when it is written into the record ([`WriteMode::Splice`]).
fn spliced(before: &Sample, after: &Sample, invariants: &dyn Invariants) -> Vec<Violation> {
    verify(side(before), side(after), &plan(), WriteMode::Splice, invariants, &Quarters)
}

/// Checks the violations: invariant, line, text.
#[track_caller]
fn check(after: &Sample, expect: &[(Invariant, u64, &str)]) {
    let before = before();
    let invariants = NoInvariants(Vec::new());
    let found = spliced(&before, after, &invariants);
    let found: Vec<_> = found.iter().map(|it| (it.invariant, it.line, &*it.what)).collect();
    assert_eq!(found, expect);
}

#[test]
fn a_session_with_only_the_planned_edit_is_accepted() {
    check(&after("Go.", STUB, "Done."), &[]);
}

#[test]
fn words_of_the_user_that_changed_are_found() {
    let expect = [(Invariant::Tree, 1, "the record changed without an edit")];
    check(&after("Went", STUB, "Done."), &expect);
}

#[test]
fn a_result_that_grew_is_found() {
    let expect = [
        (Invariant::Growth, 3, "a block has more tokens than it had"),
        (Invariant::Growth, 3, "the record is not smaller than it was"),
    ];
    check(&after("Go.", &lines(21), "Done."), &expect);
}

#[test]
fn another_result_or_another_kind_of_block_in_its_place_is_found() {
    let other = after("Go.", STUB, "Done.");
    let failed = Sample::new().user("Go.").call(Shell, "run").error(STUB).reply("Done.");
    check(&failed, &[(Invariant::Pairing, 3, "a result is not the one that was there")]);
    let text = Sample::new().user("Go.").call(Shell, "run").system("x").reply("Done.");
    let expect = [
        (Invariant::Shape, 3, "a block is gone that cannot go"),
        (Invariant::Tree, 3, "the entry is not the one that was there"),
    ];
    check(&text, &expect);
    let shorter = Sample::new().user("Go.").call(Shell, "run").output(STUB);
    assert_eq!(shorter.transcript().items.len() + 1, other.transcript().items.len());
    let before = before();
    let invariants = NoInvariants(Vec::new());
    let found = spliced(&before, &shorter, &invariants);
    assert_eq!(found.first().map(|it| it.invariant), Some(Invariant::Tree));
}

#[test]
fn a_shorter_result_without_an_edit_beside_an_edited_one_is_found() {
    let doubled = |sample: Sample| sample.with(|entry| entry.blocks.extend_from_within(..));
    let run = || Sample::new().user("Go.").call(Shell, "run");
    let before = doubled(run().output(&lines(20)));
    let after = doubled(run().output(STUB));
    let found = spliced(&before, &after, &NoInvariants(Vec::new()));
    let what = "a block changed without an edit".into();
    assert_eq!(found, [Violation { invariant: Invariant::Shape, line: 3, what }]);
}

/// A sample whose last entry is read from the record of the result.
fn in_one_record(sample: Sample) -> Sample {
    let record = sample.transcript().items[2].record();
    sample.with(|entry| entry.record = record)
}

#[test]
fn an_entry_without_an_edit_that_shares_an_edited_record_may_not_change() {
    let before = in_one_record(before());
    let value = 0..9;
    let invariants = NoInvariants(vec![value]);
    let found = |after: Sample| {
        let found = spliced(&before, &in_one_record(after), &invariants);
        found.into_iter().map(|it| (it.invariant, it.line, it.what)).collect::<Vec<_>>()
    };
    // What is wrong with a record is reported once.
    let accounting = "a value that other programs read is not what it was".to_owned();
    let accounting = (Invariant::Accounting, 3, accounting);
    assert_eq!(found(after("Go.", STUB, "Done.")), std::slice::from_ref(&accounting));
    let changed = (Invariant::Shape, 3, "a block changed without an edit".to_owned());
    let words = (Invariant::Shape, 3, "words changed".to_owned());
    assert_eq!(found(after("Go.", STUB, "Gone.")), [changed, words, accounting]);
    let role = after("Go.", STUB, "Done.").with(|entry| entry.role = Role::User);
    let tree = (Invariant::Tree, 3, "the entry is not the one that was there".to_owned());
    assert!(found(role).contains(&tree));
}

#[test]
fn a_value_that_other_programs_read_may_not_change() {
    let (before, after) = (before(), after("Go.", STUB, "Done."));
    let found = |place| {
        let invariants = NoInvariants(vec![place]);
        spliced(&before, &after, &invariants)
    };
    assert_eq!(found(0..2), []);
    let what = "a value that other programs read is not what it was".into();
    assert_eq!(found(0..9), [Violation { invariant: Invariant::Accounting, line: 3, what }]);
}

#[test]
fn a_mark_has_to_send_what_the_edit_says() {
    let before = before();
    let found = |after: &Sample| {
        let invariants = NoInvariants(Vec::new());
        verify(side(&before), side(after), &plan(), WriteMode::Mark, &invariants, &Quarters)
    };
    assert_eq!(found(&after("Go.", STUB, "Done.")), []);
    let what = "something else is sent than was meant".into();
    let expect = [Violation { invariant: Invariant::Shape, line: 3, what }];
    assert_eq!(found(&after("Go.", "[output: 21 lines]", "Done.")), expect);
}

#[test]
fn a_recount_is_of_the_session_as_it_is_now() {
    let recipe = "name = 'x'\nabout = ''\n[[passes]]\npass = 'results'\nstyle = 'counted'\n";
    let recipe = crate::Recipe::parse(recipe).expect("a recipe");
    let options = crate::Options {
        kind: crate::ContextKind::Stored,
        counter: &Quarters,
        thinking_is_bound: |_| false,
        counted: &[],
    };
    let (before, after) = (before(), after("Go.", STUB, "Done."));
    let plan = plan_edits(before.transcript(), before.source(), &recipe, &options);
    let now = epitome_model::weigh(after.transcript(), after.source(), &Quarters).total();
    assert_eq!(recount(&plan, side(&after), &Quarters), now);
}

#[test]
fn a_summary_is_sent_with_what_is_kept_behind_it() {
    let before = before();
    let found = |after: &Sample, kept: &[usize]| {
        let invariants = NoInvariants(Vec::new());
        let summary = Summary { text: "In short.".into(), kept: kept.into(), tokens: Tokens(100) };
        let edit = Edit::summary(summary, &before.transcript().context, "summary");
        let (plan, mode) = (Plan::from_edit(edit), WriteMode::Append);
        let found = verify(side(&before), side(after), &plan, mode, &invariants, &Quarters);
        found.iter().map(|it| (it.invariant, it.line, it.what.clone())).collect::<Vec<_>>()
    };
    let summary = || Sample::new().summary("In short.");
    let one = |invariant, line, what: &str| vec![(invariant, line, what.to_owned())];
    assert_eq!(found(&summary().reply("Done."), &[3]), []);
    assert_eq!(found(&summary().user("Go.").reply("Done."), &[3]), []);
    let expect = one(Invariant::Tree, 4, "another entry is in its place");
    assert_eq!(found(&summary().reply("Other."), &[3]), expect);
    let expect = one(Invariant::Tree, 2, "something is sent that was summarised");
    assert_eq!(found(&summary().reply("Hm.").reply("Done."), &[3]), expect);
    let expect = one(Invariant::Shape, 0, "the summary is not sent");
    assert_eq!(found(&Sample::new().system("x").reply("Done."), &[3]), expect);
    let expect = one(Invariant::Tree, 0, "something that is kept is not sent");
    assert!(found(&Sample::new(), &[3]).starts_with(&one(
        Invariant::Shape,
        0,
        "the summary is not sent"
    )));
    assert!(found(&Sample::new(), &[3]).ends_with(&expect));
}

#[test]
fn a_violation_is_new_when_there_are_more_of_it_than_before() {
    let violation =
        |line, what: &str| Violation { invariant: Invariant::Pairing, line, what: what.to_owned() };
    let before = vec![violation(1, "a"), violation(2, "a"), violation(3, "b")];
    // Line numbers are ignored, and a fixed violation does not offset a new one.
    let after = vec![violation(7, "a"), violation(8, "a"), violation(9, "a"), violation(4, "c")];
    assert_eq!(added(&before, after), [violation(9, "a"), violation(4, "c")]);
    // Positions in a list are ignored, too, but the ids in a sentence are not.
    let before = vec![violation(1, "input.6: alone"), violation(1, "no call c1")];
    let after = vec![violation(1, "input.2: alone"), violation(1, "no call c2")];
    assert_eq!(added(&before, after), [violation(1, "no call c2")]);
}

#[test]
fn a_text_is_the_same_if_its_literal_or_what_it_says_is() {
    let block = |text: &str| Block::Text(Text::Owned(text.into()));
    let stored = Sample::new().user("a");
    let entry = stored.transcript().items[0].entry().expect("an entry");
    let stored_block = &entry.blocks[0];
    let is_same = |old: &Block, new: &Block| same_block((side(&stored), old), (side(&stored), new));
    for (new, expect) in [(stored_block, true), (&block("a"), true), (&block("b"), false)] {
        assert_eq!(is_same(stored_block, new), expect, "{new:?}");
    }
}
