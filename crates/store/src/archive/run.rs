//! Runs: which invocation of the program made a compaction.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Hash;

/// One invocation of a command that compacts sessions. All its compactions refer to the same run,
/// so that they can be listed and undone together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Run {
    /// The id of the run: 8 hexadecimal digits.
    pub id: String,
    /// The name of the command, for example `compact` or `watch`.
    pub command: String,
}

impl Run {
    /// A run of `command` that starts at `now`. Its id is derived from the time and the process id.
    /// A caller with a fixed time passes 0 as `process`, so that the same input gives the same
    /// archive.
    pub fn begin(now: Timestamp, process: u32, command: &str) -> Run {
        let now = now.as_nanosecond();
        let id = Hash::compute(format!("{now} {process}").as_bytes()).to_string();
        Run { id: id[..8].to_owned(), command: command.to_owned() }
    }
}
