//! Removes hidden fields of records, which no model sees (most are copies of the content of an
//! entry), and results that repeat earlier ones.

use epitome_model::{At, Block, Edit, Entry, FieldRemainder, HiddenField, Verb};
use serde::{Deserialize, Serialize};

use crate::{Pass, View};

/// Settings of the pass that removes hidden fields and repeated results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Copies {
    /// Hidden fields of at most this many bytes are not removed. Results that repeat earlier ones
    /// are removed at any size.
    pub min_bytes: u64,
    /// The items from which copies and repeated results are removed.
    pub scope: Scope,
}

/// The items from which copies and repeated results are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Items that are not kept whole.
    #[default]
    Old,
    /// All items, even those that are kept whole. The model loses nothing by this.
    All,
}

impl Pass for Copies {
    fn name(&self) -> &'static str {
        "copies"
    }

    fn plan(&self, view: &View<'_>) -> Vec<Edit> {
        let items = view.transcript.items.iter().enumerate();
        items
            .filter(|(item, _)| self.scope == Scope::All || !view.is_kept(*item))
            .flat_map(|(item, record)| {
                let said_again =
                    record.entry().into_iter().flat_map(move |it| repeated_content_edits(item, it));
                self.unseen(item, record.hidden_fields()).chain(said_again)
            })
            .collect()
    }
}

impl Copies {
    fn unseen<'a>(
        &'a self,
        item: usize,
        fields: &'a [HiddenField],
    ) -> impl Iterator<Item = Edit> + 'a {
        fields.iter().enumerate().filter_map(move |(field, hidden)| {
            let least = match hidden.left {
                FieldRemainder::Nothing => self.min_bytes,
                // The empty object, text or array that remains of the field has two bytes.
                FieldRemainder::EmptyObject
                | FieldRemainder::EmptyText
                | FieldRemainder::EmptyArray => self.min_bytes.max(2),
            };
            (hidden.value.len() > least).then_some(drop(At::HiddenField { item, field }))
        })
    }
}

/// The edits that remove from an entry the results that repeat earlier ones.
pub fn repeated_content_edits(item: usize, entry: &Entry) -> impl Iterator<Item = Edit> {
    let blocks = entry.blocks.iter().enumerate();
    blocks
        .filter(|(_, said)| matches!(said, Block::Repeated(_)))
        .map(move |(block, _)| drop(At::Block { item, block }))
}

fn drop(at: At) -> Edit {
    Edit { at, verb: Verb::Drop, pass: "copies" }
}

#[cfg(test)]
#[path = "copies_tests.rs"]
mod tests;
