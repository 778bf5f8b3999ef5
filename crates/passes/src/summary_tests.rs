use epitome_model::ToolKind::Shell;
use samples::{Quarters, Sample};

use super::*;
use crate::testing::lines;

/// A request, a command with a result of 200 lines, and a reply.
fn session() -> Sample {
    Sample::new().user("Build it.").call(Shell, "make").output(&lines(200)).reply("Done.")
}

fn begin(sample: &Sample, window: u64) -> Result<SummaryInProgress, String> {
    begin_by(SummaryRule::default(), sample, window)
}

fn begin_by(rule: SummaryRule, sample: &Sample, window: u64) -> Result<SummaryInProgress, String> {
    let view = View::new(sample.transcript(), sample.source(), &Quarters);
    let items: Vec<usize> = (0..sample.transcript().items.len()).collect();
    let old =
        ReplacedHistory { items: &items, originals: &items, all_originals: &items, kept: &[] };
    let sections = Sections::Own(vec!["Goal".into(), "Next steps".into()]);
    let rule = SummaryRule { sections, ..rule };
    let writer = Writer { window: Tokens(window), counter: Arc::new(Quarters) };
    SummaryInProgress::begin(&view, &old, &rule, writer)
}

fn reply(text: &str, stopped: StopReason) -> Result<Reply, NoReply> {
    let used = Some(USED);
    Ok(Reply { text: text.to_owned(), stopped, used })
}

const NONE: TokenUsage =
    TokenUsage { input: Tokens(0), cached: Tokens(0), cache_written: Tokens(0), output: Tokens(0) };
const USED: TokenUsage = TokenUsage { input: Tokens(10), output: Tokens(2), ..NONE };
const ASKED: AskTotals = AskTotals { asks: 1, failed: 0, used: USED };

#[test]
fn an_answer_becomes_a_summary_without_what_was_never_said() {
    let open = begin(&session(), 20_000).expect("there is something to summarise");
    let text = "## Goal\nIt ran `make`, not `cargo bench`, in src/other.rs.\n## Next steps\nNone.";
    let SummaryProgress::Written(written) = open.answer(reply(text, StopReason::End)) else {
        panic!("it is written");
    };
    let narrative = "## Goal\nIt ran `make`, not [struck], in [struck].\n\n## Next steps\nNone.";
    assert_eq!(frame::narrative(&written.text), narrative);
    assert_eq!(written.struck, StruckCounts { quotes: 1, files: 1 });
    assert_eq!(written.tokens, Quarters.count(&written.text));
    // The tokens of the texts "Build it." and "Done.", of the call with its name, and of the
    // result.
    let sample = session();
    let of = epitome_model::weigh(sample.transcript(), sample.source(), &Quarters).total();
    assert_eq!((written.of, written.spent), (of, ASKED));
}

#[test]
fn an_answer_that_is_no_summary_says_why() {
    let good = "## Goal\nGo on.\n## Next steps\nNone.";
    let long = format!("## Goal\n{}\n## Next steps\nNone.", "word ".repeat(2_000));
    let cases = [
        (reply(" \n", StopReason::End), "the summary is empty"),
        (reply("## Goal\nNone.\n## Next steps\n", StopReason::End), "the summary is empty"),
        (reply("## Goal\nGo on.", StopReason::End), "the summary lacks sections: Next steps"),
        (reply("Sorry.", StopReason::End), "the summary lacks sections: Goal, Next steps"),
        (reply(&long, StopReason::End), "the summary is longer than what it replaces"),
        (reply(good, StopReason::Length), "the summary was cut off by its length"),
        (reply(good, StopReason::Call), "the model called a tool"),
        (reply(good, StopReason::Refused), "the model declined to answer"),
        (reply(good, StopReason::Other("x".into())), "the model stopped: x"),
    ];
    for (answer, expect) in cases {
        let open = begin(&session(), 20_000).expect("there is something to summarise");
        let SummaryProgress::Nothing { reason, spent } = open.answer(answer) else {
            panic!("{expect}");
        };
        assert_eq!((&*reason, spent), (expect, AskTotals { failed: 1, ..ASKED }));
    }
}

#[test]
fn without_a_model_nothing_is_spent_and_a_failure_is_counted() {
    let failed = NoReply::Failed("no route to host".into());
    let cases =
        [(NoReply::NoModel, "there is no model to ask", 0), (failed, "no route to host", 1)];
    for (answer, expect, asks) in cases {
        let open = begin(&session(), 20_000).expect("there is something to summarise");
        let SummaryProgress::Nothing { reason, spent } = open.answer(Err(answer)) else {
            panic!("{expect}");
        };
        let counted = AskTotals { asks, failed: asks, used: NONE };
        assert_eq!((&*reason, spent), (expect, counted));
    }
}

#[test]
fn a_window_that_is_too_small_is_halved_three_times() {
    let mut open = begin(&session(), 40_000).expect("there is something to summarise");
    let mut answers = vec![open.ask().max_tokens];
    let reason = loop {
        match open.answer(Err(NoReply::TooLong)) {
            SummaryProgress::Ask(next) => {
                open = *next;
                answers.push(open.ask().max_tokens);
            }
            SummaryProgress::Nothing { reason, spent } => break (reason, spent.asks, spent.failed),
            SummaryProgress::Written(written) => panic!("{written:?}"),
        }
    };
    // The maximum of an answer is a quarter of the window, and never more than the rule says.
    assert_eq!(answers, [8_000, 5_000, 2_500, 1_250]);
    assert_eq!(reason, ("the question is too long for the model".to_owned(), 4, 4));
}

#[test]
fn a_history_without_records_and_a_window_without_room_are_refused() {
    let refused = |sample: &Sample, window| begin(sample, window).expect_err("it is refused");
    let summary = Sample::new().summary("In short.");
    assert_eq!(refused(&summary, 20_000), "there is nothing to summarise");
    let small = refused(&session(), 100);
    assert_eq!(small, "the history is too long for a window of 100 tokens");
}

#[test]
fn a_long_history_is_read_in_parts_and_each_record_in_one_of_them() {
    let run = |sample: Sample, n: usize| {
        sample.call(Shell, &format!("command-{n:03}.")).output(&format!("{n} {}", lines(20)))
    };
    let sample = (0..100).fold(Sample::new().user("Go."), run);
    let mut open = begin(&sample, 4_000).expect("there is something to summarise");
    let mut asked = Vec::new();
    let spent = loop {
        let ask = open.ask();
        let size = Quarters.count(&ask.system) + Quarters.count(&ask.prompt);
        assert!(size + Tokens(ask.max_tokens) <= Tokens(4_000), "{size}");
        asked.push(ask.prompt.clone());
        let note = "## Goal\nGo on.\n## Next steps\nNone.";
        match open.answer(reply(note, StopReason::End)) {
            SummaryProgress::Ask(next) => open = *next,
            SummaryProgress::Written(written) => break written.spent,
            SummaryProgress::Nothing { reason, .. } => panic!("{reason}"),
        }
    };
    let parts: Vec<&String> = asked.iter().filter(|it| it.contains("<history>")).collect();
    assert!(parts.len() > 1 && parts.len() + 1 == asked.len(), "{} parts", parts.len());
    assert!(asked[parts.len()].contains("<notes part=\"1 of "), "the notes are joined");
    for n in 0..100 {
        let call = format!("<call tool=\"Shell\" of=\"command-{n:03}.\">");
        let found = parts.iter().filter(|part| part.contains(&call)).count();
        assert_eq!(found, 1, "{call}");
    }
    assert_eq!((spent.asks, spent.failed), (asked.len() as u64, 0));
}

#[test]
fn an_earlier_summary_is_brought_up_to_date() {
    let begun = session();
    let again = Sample::new().summary("In short.").user("Build it.").reply("Done.");
    for (sample, expect) in [(begun, false), (again, true)] {
        let open = begin(&sample, 20_000).expect("there is something to summarise");
        let prompt = &open.ask().prompt;
        let has_it = prompt.contains("<earlier>\nIn short.\n</earlier>\n");
        let says_so = prompt.contains(", and bring the summary in <earlier> up to date with it:");
        assert_eq!((has_it, says_so), (expect, expect), "{prompt}");
    }
}

#[test]
fn the_focus_and_what_is_protected_have_an_eighth_of_the_window_and_at_most_4_000_bytes() {
    let focus: String = (0..2_000).map(|n| format!("focus-{n} ")).collect();
    let protected: String = (0..2_000).map(|n| format!("protected-{n} ")).collect();
    for (window, most) in [(8_000, 1_000), (80_000, 4_000)] {
        let rule = SummaryRule {
            focus: Some(focus.clone()),
            protected: vec![protected.clone()],
            ..SummaryRule::default()
        };
        let open = begin_by(rule, &session(), window).expect("there is something to summarise");
        for (tag, text) in [("focus", &focus), ("protected", &protected)] {
            let expect = format!("<{tag}>\n{}\n</{tag}>", history::cut(text.trim(), most));
            assert!(open.ask().prompt.contains(&expect), "{window}: {}", open.ask().prompt);
        }
    }
}

/// A part has as many records as fit into a question. If a record were counted with fewer tokens
/// than it has, a part would not fit into its question, and all records would be truncated further.
#[test]
fn records_that_were_cut_fill_a_part_and_no_more() {
    let long: String = (0..2_390).map(|n| format!("{n:04} ")).collect();
    let question = |padding: usize| {
        let sample = Sample::new().user(&"x".repeat(padding));
        let sample = (0..12).fold(sample, |sample, _| sample.user(&long));
        begin(&sample, 4_000).expect("there is something to summarise").ask().prompt.clone()
    };
    let records = |padding: usize| question(padding).matches("characters left out").count();
    let paddings: Vec<usize> = (1..2_400).collect();
    let most = records(1);
    let fitting = paddings.partition_point(|padding| records(*padding) == most);
    assert!(fitting < paddings.len(), "a long padding takes the place of a record");
    for padding in [fitting, fitting + 1] {
        assert!(question(padding).contains(&*history::cut(long.trim(), 2_048)), "{padding}");
    }
}

#[test]
fn notes_that_are_too_long_for_one_question_are_merged_in_groups() {
    let run = |sample: Sample, n: usize| {
        sample.call(Shell, &format!("command-{n:03}.")).output(&format!("{n} {}", lines(20)))
    };
    let sample = (0..100).fold(Sample::new().user("Go."), run);
    let mut open = begin(&sample, 4_000).expect("there is something to summarise");
    let mut notes_asked = Vec::new();
    loop {
        let prompt = &open.ask().prompt;
        let is_part = prompt.contains("<history>");
        if !is_part {
            notes_asked.push(prompt.matches("<notes ").count());
        }
        let goal = if is_part { "Go on. ".repeat(500) } else { "Go on.".to_owned() };
        let note = format!("## Goal\n{goal}\n## Next steps\nNone.");
        match open.answer(reply(&note, StopReason::End)) {
            SummaryProgress::Ask(next) => open = *next,
            SummaryProgress::Written(_) => break,
            SummaryProgress::Nothing { reason, .. } => panic!("{reason}"),
        }
    }
    assert_eq!(notes_asked, [3, 3, 2]);
}
