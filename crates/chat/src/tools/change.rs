//! The changes that a call would make to files, to be shown before it runs.

use std::path::PathBuf;

use super::{Workplace, find_tool};

/// The maximum number of bytes that a file may have, before and after a change, for the change to
/// be shown.
const LONGEST: usize = 1 << 20;

/// A change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file.
    pub path: PathBuf,
    /// The current text of the file; `None` if it does not exist.
    pub before: Option<String>,
    /// The text of the file after the change; `None` if it is deleted.
    pub after: Option<String>,
}

impl FileChange {
    /// Whether the change is short enough to be shown.
    fn is_short(&self) -> bool {
        [&self.before, &self.after].into_iter().flatten().all(|text| text.len() <= LONGEST)
    }
}

impl Workplace {
    /// The changes that a call would make if it ran now. `None` if the tool is not one whose
    /// changes can be planned, if the call would fail, or if a file has more than 1 MiB before or
    /// after the change.
    pub fn planned_changes(&self, tool: &str, arguments: &str) -> Option<Vec<FileChange>> {
        let planned = find_tool(tool)?.planned?;
        let changes = planned(self, arguments).ok()?;
        changes.iter().all(FileChange::is_short).then_some(changes)
    }
}
