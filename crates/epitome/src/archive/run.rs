//! Which run of the program made a compaction.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Hash, Part, SessionKey};
use crate::config::Config;

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
    /// Begins a run of `command` now. Its id comes from the time and the number of the process; at
    /// a given time from that alone, so that the same input gives the same archive.
    pub fn begin(config: &Config, command: &str) -> Run {
        let now = config.now().as_nanosecond();
        let process = if config.is_time_given() { 0 } else { std::process::id() };
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
