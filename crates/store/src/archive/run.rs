//! The run of the program that made a compaction.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Hash;

/// One invocation of a command that compacts sessions. All its compactions have the same run, so
/// that they can be listed and undone together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Run {
    /// Its id: 8 hexadecimal digits.
    pub id: String,
    /// The command: `compact`, `watch`, `hook` or `serve`.
    pub command: String,
}

impl Run {
    /// A run of `command` that starts at `now`. Its id is derived from the time and the process id;
    /// the process id is 0 if the time is fixed, so that the same input gives the same archive.
    pub fn begin(now: Timestamp, process: u32, command: &str) -> Run {
        let now = now.as_nanosecond();
        let id = Hash::compute(format!("{now} {process}").as_bytes()).to_string();
        Run { id: id[..8].to_owned(), command: command.to_owned() }
    }
}
