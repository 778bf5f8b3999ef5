//! Chooses messages to remove from the middle of a log; shared by stored sessions and live
//! contexts.

use std::collections::HashSet;

use epitome_api::anthropic::messages_of;
use epitome_formats::epitome::Log;
use epitome_formats::lines;
use epitome_model::{
    Counter, Cut, Entry, Ref, Source, Stub, TOKENS_AROUND, Tokens, Transcript, block_tokens, units,
};
use epitome_passes::{RuleFiles, TrimRule, View, is_cut, messages, pins};

/// The items that a rule removes from the middle of a log, and the text that is sent in their
/// place. A unit (such as a response with its results) stays whole if `is_kept` returns true for an
/// item of it, or if it contains a pin: a text that should stay in the context after every
/// compaction. `None` if no items are left except the texts of earlier cuts, or if removing them
/// saves nothing. `tokens` counts an item.
pub(crate) fn middle_cut(
    log: &Log,
    source: &dyn Source,
    (rule, files): (&TrimRule, &RuleFiles),
    is_kept: impl Fn(usize) -> bool,
    tokens: impl Fn(usize) -> Tokens,
    counter: &dyn Counter,
) -> Option<Cut> {
    let transcript = log.transcript();
    let mut items = rule.items_to_remove(transcript, source);
    if items.is_empty() {
        return None;
    }
    let units = units(transcript).into_iter();
    let view = View::new(transcript, source, counter).with_rule_files(files);
    let pinned: HashSet<usize> = pins(&view, &items).into_iter().map(|pin| pin.item).collect();
    let stays =
        units.filter(|unit| unit.items.iter().any(|&item| is_kept(item) || pinned.contains(&item)));
    let stays: HashSet<usize> = stays.flat_map(|unit| unit.items).collect();
    items.retain(|item| !stays.contains(item));
    let new: Vec<&Entry> =
        entries(transcript, &items).filter(|entry| !is_cut(entry, source)).collect();
    if new.is_empty() {
        return None;
    }
    // The text states how many messages are removed, including those that earlier cuts removed.
    let mut all = Vec::new();
    for &item in &items {
        let before = log.cut_out(item);
        if before.is_empty() { all.push(item) } else { all.extend(before) }
    }
    let removed = messages_of(entries(transcript, &items), source);
    let text = Stub::new(Ref::from_bytes(removed.as_bytes()))
        .with_what(&format!("{} messages left out", messages(entries(transcript, &all)).len()))
        .to_string();
    let saved: Tokens = items.iter().map(|&item| tokens(item)).sum();
    let messages = messages(new.into_iter()).len() as u64;
    (saved > counter.count(&text) + TOKENS_AROUND).then_some(Cut { items, text, messages })
}

fn entries<'t>(transcript: &'t Transcript, items: &'t [usize]) -> impl Iterator<Item = &'t Entry> {
    items.iter().filter_map(|&item| transcript.items[item].entry())
}

/// Like `middle_cut`, for a stored session, whose bytes must be a log in epitome's own format: only
/// this format can express a cut. `rule` is the rule with the patterns of rule files, and `is_kept`
/// says which items are kept whole.
pub fn stored_middle_cut(
    source: &dyn Source,
    rule: (&TrimRule, &RuleFiles),
    is_kept: impl Fn(usize) -> bool,
    counter: &dyn Counter,
) -> Option<Cut> {
    let mut log = Log::default();
    lines(source, |line| log.line(&line, &mut ()));
    middle_cut(
        &log,
        source,
        rule,
        is_kept,
        |item| {
            let entry = log.transcript().items[item].entry();
            let blocks = entry.map_or(&[][..], |entry| &entry.blocks).iter();
            blocks.map(|block| block_tokens(block, source, counter) + TOKENS_AROUND).sum()
        },
        counter,
    )
}
