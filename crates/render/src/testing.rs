//! Helpers for unit tests: a [`Sample`] as a displayed session.

use std::collections::BTreeMap;

use epitome_model::FieldRole::{Content, New, Old};
use epitome_model::RecordedUsage;
use epitome_model::ToolKind::{Edit, Read, Shell, Write};
use samples::Sample;

use crate::{Changes, Detail, Story, StorySession};

/// Two turns with most kinds of blocks, in whole minutes of one day.
pub(crate) fn every_block() -> Sample {
    let time = |sample: Sample, minute: u32| {
        sample.with(|entry| entry.time = Some(format!("2026-11-22T10:{minute:02}:00Z").into()))
    };
    let usage = RecordedUsage { input: 1_000, output: 50, ..RecordedUsage::default() };
    let sample = time(Sample::new().user("Why does *it* fail?"), 0);
    let sample = time(sample.thinking("Look first."), 1)
        .with(|entry| (entry.model, entry.usage) = (Some("m-1".into()), Some(usage)))
        .call(Read, "/p/src/a.rs")
        .output("fn a() {}\n")
        .hidden("toolUseResult", "{}")
        .call_with(Edit, "/p/src/a.rs", &[(Old, "fn a() {}\n"), (New, "fn b() {}\nfn c() {}\n")])
        .output("done");
    let sample = time(sample.call(Shell, "cargo test"), 2).error("error: <oops>\u{1b}[31m");
    let sample = time(sample.reply("It is `a`.\n\n<script>alert(1)</script>"), 3);
    let sample = time(sample.user("Show it."), 4).image(40);
    let sample = sample.call_with(Write, "/p/new.md", &[(Content, "# New\n")]);
    time(sample.output_with_image("[epitome k1234567: 9 lines]", 40).reply("There."), 5)
}

/// Calls `show` with the story of a sample in the folder `/p`, and returns its result.
pub(crate) fn with_story<T>(
    sample: &Sample,
    detail: Detail,
    show: impl FnOnce(&Story<'_>) -> T,
) -> T {
    let mut transcript = sample.transcript().clone();
    transcript.head.cwd = Some("/p".into());
    let changes = Changes::from_transcript(&transcript, sample.source());
    let source = sample.source();
    let sub_agents = BTreeMap::new();
    let session = StorySession {
        agent: "agent",
        transcript: &transcript,
        source,
        changes,
        sub_agents: &sub_agents,
        detail,
        prices: None,
        past: None,
    };
    show(&Story::new(session))
}
