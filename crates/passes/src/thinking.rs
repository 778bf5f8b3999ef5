//! Old reasoning is kept, or removed whole; it is never altered.

use epitome_model::{At, Block, Change, Edit};
use serde::{Deserialize, Serialize};

use crate::{Pass, View};

/// Settings of the pass. It removes the reasoning of entries that are not kept whole, wherever the
/// wire takes their responses without it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thinking {}

impl Pass for Thinking {
    fn name(&self) -> &'static str {
        "thinking"
    }

    fn plan(&self, view: &View<'_>) -> Vec<Edit> {
        view.old().flat_map(|(item, entry)| drops(item, &entry.blocks)).collect()
    }
}

/// The edits that remove what may be removed of an entry's reasoning.
pub fn drops(item: usize, blocks: &[Block]) -> Vec<Edit> {
    let drop =
        |block| Edit { at: At::Block { item, block }, change: Change::Drop, pass: "thinking" };
    let blocks = blocks.iter().enumerate();
    blocks
        .filter(|(_, said)| matches!(said, Block::Thinking(thinking) if thinking.removable))
        .map(|(block, _)| drop(block))
        .collect()
}
