use epitome_model::{RecordedUsage, Tokens, ToolKind};
use samples::Sample;

use super::*;
use crate::Detail;
use crate::testing::{every_block, with_story};

fn facts(sample: &Sample) -> Facts {
    with_story(sample, Detail::Steps, Facts::from_story)
}

#[test]
fn facts_count_what_a_session_holds() {
    let expect = Facts {
        agent: "agent".into(),
        title: "Why does *it* fail?".into(),
        cwd: Some("/p".into()),
        started: Some("2026-11-22T10:00:00Z".into()),
        ended: Some("2026-11-22T10:05:00Z".into()),
        models: vec!["m-1".into()],
        turns: 2,
        calls: 4,
        failed: 1,
        spent: RequestTotals {
            requests: 1,
            input: Tokens(1_000),
            largest: Tokens(1_000),
            output: Some(Tokens(50)),
        },
        changes: Changes { added: 3, removed: 1, files: 2 },
        ..Facts::default()
    };
    assert_eq!(facts(&every_block()), expect);
}

#[test]
fn records_of_one_response_are_one_request() {
    let usage = |output| Some(RecordedUsage { input: 10, output, ..RecordedUsage::default() });
    let sample = Sample::new()
        .thinking("Hm.")
        .with(|entry| entry.usage = usage(1))
        .call(ToolKind::Read, "/p/a")
        .with(|entry| entry.usage = usage(7))
        .output("x")
        .reply("Done.")
        .with(|entry| entry.usage = usage(2));
    let spent = facts(&sample).spent;
    assert_eq!((spent.requests, spent.input, spent.output), (2, Tokens(20), Some(Tokens(9))));
}

#[test]
fn requests_without_tokens_are_not_counted_and_a_missing_output_is_unknown() {
    let sample = Sample::new()
        .reply("a")
        .with(|entry| entry.usage = Some(RecordedUsage::default()))
        .reply("b")
        .with(|entry| entry.usage = Some(RecordedUsage { input: 5, ..RecordedUsage::default() }));
    let spent = facts(&sample).spent;
    assert_eq!((spent.requests, spent.input, spent.output), (1, Tokens(5), None));
}
