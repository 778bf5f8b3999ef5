//! What happened to the context, in words for people.

use std::collections::BTreeMap;

use epitome_engine::Context;
use epitome_passes::{Event, Why};

/// One line on a change of the context; none for changes that are of no interest by themselves.
pub fn change(event: &Event) -> Option<String> {
    match event {
        Event::Warning { percent, .. } => Some(format!("the context is {percent}% full")),
        // Small steps before every request are part of some recipes.
        Event::Finished { why: Why::Request, .. } => None,
        Event::Finished { before, after, by_tier, .. } => {
            let what = tiers(by_tier);
            Some(format!("context compacted ({before} → {after} tokens): {what}"))
        }
        Event::Summarised { tokens, of, .. } => {
            Some(format!("summary of {tokens} tokens for {of} tokens"))
        }
        Event::Failed { reason, .. } => Some(format!("the context is as it was: {reason}")),
        Event::Breaker { reason, .. } => Some(format!("no compaction for now: {reason}")),
        Event::Started { .. } | Event::Skipped { .. } => None,
        _ => None,
    }
}

/// What is shortened in a context, in a few lines.
pub fn losses(context: &Context) -> Vec<String> {
    let report = context.report();
    let (said, sent) = (report.said, report.sent);
    let mut lines = vec![format!("of {said} tokens that were said, {sent} are sent")];
    let references = context.references();
    if !references.is_empty() {
        let names: Vec<String> = references.iter().map(|(_, name)| name.to_string()).collect();
        let shown = names.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
        let more = if names.len() > 4 { ", …" } else { "" };
        let results =
            if names.len() == 1 { "1 result".into() } else { format!("{} results", names.len()) };
        lines.push(format!("{results} shortened: recall gives them back ({shown}{more})"));
    }
    let digested = context.digested_calls().len();
    if digested > 0 {
        lines.push(format!("{digested} calls are in the digest: recall takes #1, #2, …"));
    }
    lines
}

/// What was shortened: `results 31, stale 12`.
pub fn tiers(by_tier: &BTreeMap<String, u64>) -> String {
    let parts: Vec<String> = by_tier.iter().map(|(tier, n)| format!("{tier} {n}")).collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}
