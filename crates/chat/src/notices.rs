//! Describes events of the context for people.

use std::collections::BTreeMap;

use epitome_engine::{Content, Context};
use epitome_model::{Tokens, plural, short};
use epitome_passes::{Event, EventReason, ResponseText, response_name};

use crate::machine::{Event as Shown, LoadedFile, LoadedKind, TurnEnd};

/// The maximum number of names of one kind on a line.
const NAMES: usize = 6;

/// A line about a change of the context; `None` for changes that the user need not know of.
pub fn change(event: &Event) -> Option<String> {
    match event {
        Event::Warning { percent, .. } => Some(format!("the context is {percent}% full")),
        // Some recipes make small changes before every request.
        Event::Finished { why: EventReason::Request, .. } => None,
        Event::Finished { before, after, by_stage, no_summary, .. } => {
            let what = tiers(by_stage);
            let instead = no_summary.as_ref().map(|why| format!(", as there is no summary: {why}"));
            let instead = instead.unwrap_or_default();
            Some(format!("context compacted ({before} → {after} tokens): {what}{instead}"))
        }
        Event::Summarised { tokens, of, .. } => {
            Some(format!("summary of {tokens} tokens for {of} tokens"))
        }
        Event::Failed { reason, .. } => Some(format!("the context is as it was: {reason}")),
        Event::Breaker { reason, .. } => Some(format!("no compaction for now: {reason}")),
        Event::Started { tokens, target: Some(target), usable, .. } if target < tokens => {
            let of = usable.map(|usable| format!(" of {usable}")).unwrap_or_default();
            Some(format!("compacting {tokens}{of} tokens to {target} at most"))
        }
        Event::Started { .. } | Event::Skipped { .. } => None,
        _ => None,
    }
}

/// A text for the user about an event that is not part of the conversation, such as a compaction, a
/// notice, a retry, or a turn that failed. `None` for other events, and for changes of the context
/// that the user need not know of.
pub fn aside(event: &Shown) -> Option<String> {
    match event {
        Shown::Context { event } => change(event),
        Shown::Undone { before, after } => Some(undone(*before, *after)),
        Shown::Losses { lines } => Some(lines.join("\n")),
        Shown::Loaded { files } => Some(loaded(files)),
        Shown::Retry(retrying) => Some(retrying.to_string()),
        Shown::Notice { text } => Some(text.clone()),
        Shown::Done { ended: TurnEnd::Failed | TurnEnd::Budget, reason, .. } => reason.clone(),
        _ => None,
    }
}

/// The loaded files of a session, in one line.
pub fn loaded(files: &[LoadedFile]) -> String {
    let kinds = [
        (LoadedKind::Rules, "rules"),
        (LoadedKind::Skill, "skills"),
        (LoadedKind::Settings, "project settings"),
    ];
    let parts = kinds.into_iter().filter_map(|(kind, title)| {
        let of_kind = files.iter().filter(|file| file.kind == kind);
        let names: Vec<&str> = of_kind.map(|file| &*file.name).collect();
        if names.is_empty() {
            return None;
        }
        let shown = names.iter().take(NAMES).copied().collect::<Vec<_>>().join(", ");
        let more = names.len().saturating_sub(NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Some(format!("{title} {shown}{more}"))
    });
    parts.collect::<Vec<_>>().join(" · ")
}

/// Describes the part of a window that is reserved for the answer; `None` if its size is unknown or
/// zero.
pub fn reserve(window: Option<Tokens>, usable: Option<Tokens>) -> Option<String> {
    let window = window?;
    let usable = usable?;
    let kept = window - usable;
    (kept > Tokens(0)).then(|| format!("{kept} of a window of {window} are kept for the answer"))
}

/// A notice that a compaction was undone.
pub fn undone(before: Tokens, after: Tokens) -> String {
    format!("compaction taken back ({before} → {after} tokens)")
}

/// Describes what is shortened in a context, in a few lines.
pub fn losses(context: &Context) -> Vec<String> {
    let report = context.report();
    let originals = report.originals;
    let sent = report.sent;
    let mut lines = vec![format!("of {originals} tokens that were said, {sent} are sent")];
    let references = context.references();
    if !references.is_empty() {
        let names: Vec<String> = references.iter().map(|(_, name)| name.to_string()).collect();
        let shown = names.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
        let more = if names.len() > 4 { ", …" } else { "" };
        let results = plural(names.len() as u64, "result");
        lines.push(format!("{results} shortened: recall gives them back ({shown}{more})"));
    }
    let digested = context.digested_calls().len();
    if digested > 0 {
        lines.push(format!("{digested} calls are in the digest: recall takes #1, #2, …"));
    }
    lines.extend(unsent(&context.unsent_texts()));
    lines
}

/// Describes the texts of the model that are not sent in full: a headline, and then the newest
/// ones, the newest first, each with its number for `recall` and its beginning.
fn unsent(texts: &[ResponseText]) -> Vec<String> {
    const SHOWN: usize = 8;
    const WIDTH: usize = 70;
    let head = match texts.len() {
        0 => return Vec::new(),
        1 => "1 text of the model is not sent in full: recall returns it".to_owned(),
        n => format!("{n} texts of the model are not sent in full: recall returns them"),
    };
    let mut lines = vec![head];
    let newest = texts.iter().rev().take(SHOWN);
    lines
        .extend(newest.map(|it| {
            format!("  {} {}", response_name(it.response), short(it.text.trim(), WIDTH))
        }));
    if texts.len() > SHOWN {
        lines.push(format!("  and {} before these", texts.len() - SHOWN));
    }
    lines
}

/// The number of edits of each stage of a recipe: `results 31, stale 12`. `nothing` if no stage
/// made an edit.
pub fn tiers(by_stage: &BTreeMap<String, u64>) -> String {
    let parts: Vec<String> = by_stage.iter().map(|(tier, n)| format!("{tier} {n}")).collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

/// The name of a kind of content.
pub fn kind(content: Content) -> &'static str {
    match content {
        Content::Overhead => "tools",
        Content::Prompt => "prompt",
        Content::User => "your messages",
        Content::Answers => "answers",
        Content::Thinking => "reasoning",
        Content::Calls => "calls",
        Content::Results => "results",
        Content::Images => "pictures",
        Content::Summaries => "summary, digest",
        Content::Other => "other",
    }
}
