//! Which run of the program made a compaction.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Hash, Part, SessionKey};

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

/// When and by what a compaction is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// When.
    pub at: Timestamp,
    /// By which run. None: by a program that does not group its compactions.
    pub run: Option<Run>,
    /// The session that this one belongs to, for a sub-agent's or a log.
    pub part_of: Option<SessionKey>,
    /// What belongs to it and was archived before it.
    pub parts: Vec<Part>,
}

impl From<Timestamp> for Made {
    fn from(at: Timestamp) -> Made {
        Made { at, run: None, part_of: None, parts: Vec::new() }
    }
}
