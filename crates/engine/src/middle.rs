//! Removes messages from the middle of a log; shared by stored sessions and live contexts.

use std::collections::HashSet;

use epitome_api::anthropic::messages_of;
use epitome_formats::epitome::Log;
use epitome_formats::lines;
use epitome_model::{
    Counter, Cut, Entry, Ref, Source, Stub, TOKENS_AROUND, Tokens, block_tokens, units,
};
use epitome_passes::{RuleFiles, TrimRule, View, is_cut, messages, pins};

/// The items that a rule removes from a log, and the text that is sent in their place. `None` if
/// that saves nothing. A response stays if a part of it is kept or pinned. `tokens` counts an item.
pub(crate) fn middle_cut(
    log: &Log,
    source: &dyn Source,
    (rule, files): (&TrimRule, &RuleFiles),
    is_kept: impl Fn(usize) -> bool,
    tokens: impl Fn(usize) -> Tokens,
    counter: &dyn Counter,
) -> Option<Cut> {
    let transcript = log.transcript();
    let mut items = rule.middle(transcript, source);
    if items.is_empty() {
        return None;
    }
    let units = units(transcript).into_iter();
    let view = View::new(transcript, source, counter).with_rule_files(files);
    let pinned: HashSet<usize> = pins(&view, &items).into_iter().map(|pin| pin.item).collect();
    let stays = |item: usize| is_kept(item) || pinned.contains(&item);
    let stays = units.filter(|unit| unit.items.iter().any(|&item| stays(item)));
    let stays: HashSet<usize> = stays.flat_map(|unit| unit.items).collect();
    items.retain(|item| !stays.contains(item));
    let entries = |items: &[usize]| -> Vec<&Entry> {
        items.iter().filter_map(|&item| transcript.items[item].entry()).collect()
    };
    let count = |entries: &[&Entry]| messages(entries.iter().copied()).len() as u64;
    let is_new = |entry: &&Entry| !is_cut(entry, source);
    let new: Vec<&Entry> = entries(&items).into_iter().filter(is_new).collect();
    if new.is_empty() {
        return None;
    }
    // The items that earlier cuts removed are included.
    let mut all = Vec::new();
    for &item in &items {
        let before = log.cut_out(item);
        if before.is_empty() { all.push(item) } else { all.extend(before) }
    }
    let removed = messages_of(entries(&items).into_iter(), source);
    let text = Stub::new(Ref::from_bytes(removed.as_bytes()))
        .with_what(&format!("{} messages left out", count(&entries(&all))))
        .to_string();
    let saved: Tokens = items.iter().map(|&item| tokens(item)).sum();
    let messages = count(&new);
    (saved > counter.count(&text) + TOKENS_AROUND).then_some(Cut { items, text, messages })
}

/// Like `middle_cut`, for the log of a stored session. `rule` are the rule and the patterns of rule
/// files, `is_kept` says which items are kept whole.
pub fn stored_middle_cut(
    source: &dyn Source,
    rule: (&TrimRule, &RuleFiles),
    is_kept: impl Fn(usize) -> bool,
    counter: &dyn Counter,
) -> Option<Cut> {
    let mut log = Log::default();
    lines(source, |line| log.line(&line, &mut ()));
    let tokens = |item: usize| -> Tokens {
        let blocks = log.transcript().items[item].entry().map_or(&[][..], |entry| &entry.blocks);
        blocks.iter().map(|block| block_tokens(block, source, counter) + TOKENS_AROUND).sum()
    };
    middle_cut(&log, source, rule, is_kept, tokens, counter)
}
