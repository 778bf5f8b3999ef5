//! Copies that no model ever sees go from disk.

use epitome_model::{At, Change, Edit, Left};
use serde::{Deserialize, Serialize};

use crate::{Pass, View};

/// Settings of the pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Copies {
    /// Copies of at most so many bytes stay.
    pub min_bytes: u64,
    /// Where they go.
    pub scope: Scope,
}

/// Where copies go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// From entries that are not kept whole.
    #[default]
    Old,
    /// From all: what is kept whole is kept for the model, which does not see them.
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
                record.copies().iter().enumerate().filter_map(move |(copy, part)| {
                    let least = match part.left {
                        Left::Nothing => self.min_bytes,
                        // What is left is two bytes.
                        Left::EmptyObject | Left::EmptyText => self.min_bytes.max(2),
                    };
                    (part.value.len() > least).then_some(Edit {
                        at: At::Copy { item, copy },
                        change: Change::Drop,
                        pass: "copies",
                    })
                })
            })
            .collect()
    }
}
