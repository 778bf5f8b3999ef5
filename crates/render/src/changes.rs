//! What a session did to files, by what it asked its tools to do.

use std::collections::BTreeSet;

use epitome_model::{Block, Source, Transcript};
use serde::{Deserialize, Serialize};

use crate::call;

/// Lines that a session's calls added to files and took away, and how many files they name.
///
/// It is counted from the calls, by the difference of their old and new texts: what a command
/// changed is not in it, and what failed is. A file that is written whole counts as added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Lines put in.
    pub added: u64,
    /// Lines taken away.
    pub removed: u64,
    /// Files.
    pub files: u64,
}

impl Changes {
    /// Counts the changes of a session. Of a session that is compacted before it is shown, they are
    /// counted before.
    pub fn from_transcript(transcript: &Transcript, source: &dyn Source) -> Changes {
        let mut changes = Changes::default();
        let mut files = BTreeSet::new();
        for (_, entry) in transcript.entries().filter(|(_, entry)| !entry.repeated) {
            for block in &entry.blocks {
                let Block::Call(call) = block else { continue };
                if call.kind.changes_file() {
                    let (added, removed) = call::counts(call, source);
                    changes.added += added;
                    changes.removed += removed;
                    files.extend(call.target.as_ref().map(|it| it.read(source).into_owned()));
                }
            }
        }
        changes.files = files.len() as u64;
        changes
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == Changes::default()
    }
}
