//! Counts the file changes of a session, from the calls of its tools.

use std::collections::BTreeSet;

use epitome_model::{Block, Source, Transcript};
use serde::{Deserialize, Serialize};

use crate::call;

/// The number of lines that a session's calls added and removed, and the number of files.
///
/// The lines are counted in the arguments of the calls. Failed calls are counted; changes by shell
/// commands are not. The lines of a file that is written as a whole count as added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
    /// The number of files that the calls name as their targets.
    pub files: u64,
}

impl Changes {
    /// Counts the changes of a session. If the session is compacted before it is displayed, they
    /// must be counted before that, because a compaction shortens the texts.
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
