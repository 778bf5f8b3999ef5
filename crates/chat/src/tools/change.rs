//! What a call would change in files, for those who show it before it runs.

use std::path::PathBuf;

use super::{Workplace, named};

/// Bytes of a text that is shown.
const LONGEST: usize = 1 << 20;

/// What becomes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file.
    pub path: PathBuf,
    /// Its text, if it is there.
    pub before: Option<String>,
    /// What becomes of it, if it stays.
    pub after: Option<String>,
}

impl FileChange {
    /// Whether it is short enough to be shown.
    fn is_short(&self) -> bool {
        [&self.before, &self.after].into_iter().flatten().all(|text| text.len() <= LONGEST)
    }
}

impl Workplace {
    /// What a call would change in files if it ran now; none if it changes no files, would fail, or
    /// is too long to be shown.
    pub fn planned_changes(&self, tool: &str, arguments: &str) -> Option<Vec<FileChange>> {
        let planned = named(tool)?.planned?;
        let changes = planned(self, arguments).ok()?;
        changes.iter().all(FileChange::is_short).then_some(changes)
    }
}
