//! Keeps old reasoning, or removes it whole; reasoning is never altered.
//!
//! If the context ends with a result, the reasoning in the first response of the last turn stays:
//! "a final `assistant` message must start with a thinking block" (Anthropic's extended thinking).

use std::collections::HashSet;

use epitome_model::{At, Block, Edit, Entry, Role, Verb};
use serde::{Deserialize, Serialize};

use crate::{Pass, View};

/// Settings of the pass that removes reasoning. It removes the reasoning of entries that are not
/// kept whole, if the API accepts a response without it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Thinking {}

impl Pass for Thinking {
    fn name(&self) -> &'static str {
        "thinking"
    }

    fn plan(&self, view: &View<'_>) -> Vec<Edit> {
        let begins = open_turn(view);
        let old = view.entries_not_kept().filter(|(item, _)| !begins.contains(item));
        old.flat_map(|(item, entry)| drops(item, &entry.blocks)).collect()
    }
}

/// The items of the first response of the last turn; none unless the context ends with a result.
fn open_turn(view: &View<'_>) -> HashSet<usize> {
    let sent: Vec<(usize, &Entry)> = view.transcript.context().collect();
    if !sent.last().is_some_and(|(_, entry)| has_results(entry)) {
        return HashSet::new();
    }
    let asked =
        sent.iter().rposition(|(_, entry)| entry.role != Role::Assistant && !has_results(entry));
    let turn = &sent[asked.map_or(0, |asked| asked + 1)..];
    let response = turn.iter().take_while(|(_, entry)| entry.role == Role::Assistant);
    response.map(|(item, _)| *item).collect()
}

fn has_results(entry: &Entry) -> bool {
    entry.blocks.iter().any(|block| matches!(block, Block::Output(_)))
}

/// The edits that remove the reasoning of an entry, as far as it is removable.
pub fn drops(item: usize, blocks: &[Block]) -> Vec<Edit> {
    let removable = blocks
        .iter()
        .enumerate()
        .filter(|(_, said)| matches!(said, Block::Thinking(thinking) if thinking.removable));
    let drops = removable.map(|(block, _)| Edit {
        at: At::Block { item, block },
        verb: Verb::Drop,
        pass: "thinking",
    });
    drops.collect()
}

#[cfg(test)]
#[path = "thinking_tests.rs"]
mod tests;
