//! Which run of the program made a compaction.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Hash;

/// One invocation of a command that compacts sessions. All that it compacts has the same run, so
/// that it can be listed and undone as one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Run {
    /// Its name: 8 hexadecimal digits.
    pub id: String,
    /// The command: `compact`, `watch`, `hook` or `serve`.
    pub command: String,
}

impl Run {
    /// A run of `command` that begins at `now`. Its id comes from the time and from the number of
    /// the process, which is 0 at a given time: then the same input gives the same archive.
    pub fn begin(now: Timestamp, process: u32, command: &str) -> Run {
        let now = now.as_nanosecond();
        let id = Hash::of(format!("{now} {process}").as_bytes()).to_string();
        Run { id: id[..8].to_owned(), command: command.to_owned() }
    }
}
