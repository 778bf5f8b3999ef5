//! The context that is sent, as a list of measured blocks.

use std::collections::HashMap;
use std::sync::Arc;

use epitome_measure::MeasuredBlock;
use epitome_model::Counter;

use super::Pieces;
use crate::live::Outgoing;

/// A cache of measured blocks, by the id of the block and by the item that contains it.
#[derive(Clone)]
pub struct Pool {
    known: HashMap<u64, Arc<MeasuredBlock>>,
    /// The measured blocks of each item in one context's log; `None` for an item that was not sent
    /// so far.
    items: Vec<Option<Pieces>>,
}

impl Pool {
    /// A pool that begins with the blocks of a history, because most blocks that are sent are
    /// unchanged.
    pub fn from_blocks(pieces: &[Arc<MeasuredBlock>]) -> Pool {
        let known = pieces.iter().map(|piece| (piece.id, piece.clone())).collect();
        Pool { known, items: Vec::new() }
    }

    /// Prepares the pool for another context: the measured blocks are kept, the items are not.
    pub fn for_another(&mut self) -> &mut Pool {
        self.items.clear();
        self
    }

    /// The measured blocks of what a context sends.
    pub fn pieces(&mut self, view: Outgoing<'_>, counter: &dyn Counter) -> Pieces {
        let transcript = view.transcript();
        let source = view.source();
        self.items.resize(transcript.items.len(), None);
        let mut pieces = Vec::new();
        for (item, entry) in transcript.context() {
            let measured = self.items[item].get_or_insert_with(|| {
                let blocks = entry.blocks.iter().map(|block| {
                    let id = MeasuredBlock::id_of(block, entry.role, source);
                    let new =
                        || Arc::new(MeasuredBlock::from_block(block, entry.role, source, counter));
                    self.known.entry(id).or_insert_with(new).clone()
                });
                blocks.collect()
            });
            pieces.extend_from_slice(measured);
        }
        pieces
    }
}
