use samples::Quarters;

use super::*;

/// The text of a frame after its introduction.
fn frame_text(facts: &SummaryFacts, rule: &SummaryRule, current: bool) -> String {
    let pinned = (!facts.user.is_empty()).then(|| "PINNED".to_owned());
    let frame = Frame::new(facts, rule, pinned, (current, Tokens(1_000)), &Quarters);
    let text = frame.text();
    let (before, taken) = text.split_once(TAKEN).expect("it has a heading");
    assert_eq!(before, format!("{OPENS}\n\n{ABOUT}\n"));
    taken.to_owned()
}

#[test]
fn a_summary_begins_with_what_a_program_took_from_the_session() {
    let mut facts = SummaryFacts { user: vec!["Go.".into()], ..SummaryFacts::default() };
    *facts.files.touch("a.rs") = File { read: 2, ..File::default() };
    *facts.files.touch("b.rs") = File { written: 1, edited: 3, ..File::default() };
    *facts.commands.touch("ls") = Command { runs: 1, ..Command::default() };
    *facts.errors.touch("make: bad") = 1;
    *facts.errors.touch("make: worse") = 2;
    let rule = SummaryRule {
        focus: Some(" the parser ".into()),
        protected: vec!["Rule one.".into(), "Rule two.".into()],
        ..SummaryRule::default()
    };
    let expect = "\n\nPINNED\n\n## Asked to look at\nthe parser\n\n\
         ## Kept as it is\nRule one.\n\nRule two.\n\n\
         ## What the user said, word for word\n\
         The last of these messages is the one to be answered.\n\
         <user-message n=\"1 of 1\">\nGo.\n</user-message>\n\n\
         ## Files: read 2, written 1, edited 3\n- a.rs: read 2\n- b.rs: written 1, edited 3\n\n\
         ## Commands: run 1, failed 0\n- `ls`: ran\n\n\
         ## Errors\n- make: bad\n- make: worse (2 times)";
    assert_eq!(frame_text(&facts, &rule, true), expect);
    assert_eq!(frame_text(&SummaryFacts::default(), &SummaryRule::default(), true), "");
}

#[test]
fn messages_that_are_left_out_are_counted() {
    let user = vec!["a".into(), "b".repeat(9_000), "c".into()];
    let facts = SummaryFacts { user, ..SummaryFacts::default() };
    let expect = "\n\n## What the user said, word for word (1 of 3 left out)\n\
         <user-message n=\"1 of 3\">\na\n</user-message>\n\
         <user-message n=\"3 of 3\">\nc\n</user-message>";
    let frame = Frame::new(&facts, &SummaryRule::default(), None, (false, Tokens(30)), &Quarters);
    assert!(frame.text().ends_with(expect), "{}", frame.text());
}

#[test]
fn a_command_says_how_often_it_ran_and_failed() {
    let cases = [
        ((1, 0, false), "ran"),
        ((1, 1, true), "failed"),
        ((3, 0, false), "ran 3 times"),
        ((3, 1, true), "failed 1 of 3 times, the last one too"),
        ((3, 2, false), "failed 2 of 3 times, the last one ran"),
    ];
    for ((runs, failed, fails), expect) in cases {
        let mut tally = Tally::default();
        *tally.touch("make") = Command { runs, failed, fails };
        let heading = format!("## Commands: run {runs}, failed {failed}");
        assert_eq!(commands(&tally), Some(format!("{heading}\n- `make`: {expect}")));
    }
}

#[test]
fn of_a_long_list_the_newest_names_are_shown() {
    let mut tally: Tally<u64> = Tally::default();
    for name in ["a", "b", "c", "a"] {
        *tally.touch(name) += 1;
    }
    let shown = |most| list("Names", &tally, most, |name, times| format!("{name} {times}"));
    assert_eq!(shown(3).as_deref(), Some("## Names\n- b 1\n- c 1\n- a 2"));
    let two = "## Names\n- 1 older ones are not named here\n- c 1\n- a 2";
    assert_eq!(shown(2).as_deref(), Some(two));
    assert_eq!(list("Names", &Tally::<u64>::default(), 2, |name, _| name.to_owned()), None);
}

#[test]
fn the_narrative_of_a_summary_of_ours_is_what_the_model_told() {
    let (facts, rule) = (SummaryFacts::default(), SummaryRule::default());
    let frame = Frame::new(&facts, &rule, None, (false, Tokens(9)), &Quarters);
    let text = frame.with(&[("Goal".into(), "Go.".into()), ("Next".into(), "None.".into())]);
    assert_eq!(narrative(&text), "## Goal\nGo.\n\n## Next\nNone.");
    assert_eq!(narrative("# Told by a model\n\nNot ours."), "# Told by a model\n\nNot ours.");
}
