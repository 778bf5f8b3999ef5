//! What a session did to files, by what it asked its tools to do.

use std::collections::BTreeSet;

use epitome_model::{Block, Call, FieldRole, Source, ToolKind, Transcript, line_count};
use serde::{Deserialize, Serialize};

/// Lines that a session's calls added to files and took away, and how many files they name.
///
/// It is counted from the calls: what a command changed is not in it, and what failed is.
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
    pub fn of(transcript: &Transcript, source: &dyn Source) -> Changes {
        let mut changes = Changes::default();
        let mut files = BTreeSet::new();
        for (_, entry) in transcript.entries() {
            for block in &entry.blocks {
                let Block::Call(call) = block else { continue };
                if call.kind.changes_file() {
                    changes.count(call, source);
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

    fn count(&mut self, call: &Call, source: &dyn Source) {
        for field in &call.fields {
            let text = || field.text.read(source);
            match field.role {
                FieldRole::Content | FieldRole::New => self.added += line_count(&text()).0,
                FieldRole::Old => self.removed += line_count(&text()).0,
                FieldRole::Patch if call.kind == ToolKind::Patch => self.patch(&text()),
                _ => {}
            }
        }
    }

    fn patch(&mut self, patch: &str) {
        for line in patch.lines() {
            match line.as_bytes() {
                [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => {}
                [b'+', ..] => self.added += 1,
                [b'-', ..] => self.removed += 1,
                _ => {}
            }
        }
    }
}
