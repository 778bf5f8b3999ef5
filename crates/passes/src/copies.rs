//! Copies that no model ever sees go from disk.

use epitome_model::{At, Change, Edit, Left};
use serde::{Deserialize, Serialize};

use crate::{Pass, View};

/// Settings of the pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Copies {
    /// Copies of at most so many bytes stay.
    pub min_bytes: u64,
}

impl Default for Copies {
    fn default() -> Copies {
        Copies { min_bytes: 64 }
    }
}

impl Pass for Copies {
    fn name(&self) -> &'static str {
        "copies"
    }

    fn plan(&self, view: &View<'_>) -> Vec<Edit> {
        let items = view.transcript.items.iter().enumerate();
        items
            .filter(|(item, _)| !view.is_kept(*item))
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
