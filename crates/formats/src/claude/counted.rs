//! Reasoning that must be kept so that other programs still count a response as they did.
//!
//! Every record of a response repeats the usage of the response. The program `claude-code-log`
//! counts the first record that has content. If a record holds only reasoning and the reasoning is
//! removed, that program counts the next record instead. This changes its result in two cases: some
//! versions of Claude Code wrote a different usage into the next record, because the response was
//! longer by then; and an interrupted response has no next record.

use std::collections::HashMap;

use epitome_model::{Block, Entry, Item, RecordedUsage, Transcript};

/// The usage that each record states, with the item of the record.
pub(super) type Usages = Vec<(usize, RecordedUsage)>;

/// Marks the reasoning that must be kept so that other programs count the same usage for each
/// response.
///
/// Reasoning that is valid only while everything before it is unchanged does not get this mark: the
/// provider refuses such reasoning after an edit before it.
pub(super) fn keep(transcript: &mut Transcript, usages: &Usages) {
    for item in items_to_keep(transcript, usages) {
        let Item::Entry(entry) = &mut transcript.items[item] else { continue };
        for block in &mut entry.blocks {
            if let Block::Thinking(thinking) = block {
                thinking.removable = false;
            }
        }
    }
}

/// The items whose reasoning must be kept, in order. [`Response::reasoning_to_keep`] selects them
/// for each response.
fn items_to_keep(transcript: &Transcript, usages: &Usages) -> Vec<usize> {
    let mut responses: HashMap<&str, Response> = HashMap::new();
    for &(item, usage) in usages {
        let Some(entry) = transcript.items[item].entry() else { continue };
        let Some(group) = entry.group.as_deref() else { continue };
        let is_bound =
            entry.model.as_deref().is_some_and(epitome_api::anthropic::thinking_is_bound);
        if !is_bound && !entry.blocks.is_empty() {
            responses.entry(group).or_default().add(item, entry, usage);
        }
    }
    let mut items: Vec<usize> =
        responses.into_values().flat_map(Response::reasoning_to_keep).collect();
    items.sort_unstable();
    items
}

/// The beginning of a response, up to its first record with more than reasoning.
#[derive(Default)]
struct Response {
    /// The records that hold only reasoning, each with its usage.
    reasoning: Vec<(usize, RecordedUsage)>,
    /// The usage of the first record that holds more than reasoning; `None` until that record is
    /// read.
    next_usage: Option<RecordedUsage>,
}

impl Response {
    fn add(&mut self, item: usize, entry: &Entry, usage: RecordedUsage) {
        if self.next_usage.is_some() {
            return;
        }
        if entry.blocks.iter().all(|block| matches!(block, Block::Thinking(_))) {
            self.reasoning.push((item, usage));
        } else {
            self.next_usage = Some(usage);
        }
    }

    /// The items whose reasoning must be kept. None, if the records with only reasoning all state
    /// the same usage as the record after them. Otherwise, and if there is no such record, all
    /// records with only reasoning, because a recipe may remove the reasoning of any of them.
    fn reasoning_to_keep(self) -> Vec<usize> {
        if self.reasoning.iter().all(|(_, usage)| Some(*usage) == self.next_usage) {
            return Vec::new();
        }
        self.reasoning.iter().map(|(item, _)| *item).collect()
    }
}
