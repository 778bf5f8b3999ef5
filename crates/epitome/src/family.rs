//! The size of a session together with all files that belong to it.

use std::path::Path;

use epitome_model::{Bytes, Source};
use serde::Serialize;

use crate::place;
use crate::session::format_of;
use epitome_agents as agents;

/// The size of a session with the other files that the agent keeps for it, such as the sessions of
/// its sub-agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Family {
    /// The number of files, including the session's own. In a database, the rows of one session
    /// count as one file.
    pub files: u64,
    /// The total length of the files and rows.
    pub disk_bytes: Bytes,
}

impl Family {
    /// Measures the session at `path`, whose own file has the length `own`. Other files that cannot
    /// be read, or have no format that epitome knows, are not counted.
    pub fn measure(path: &Path, own: Bytes) -> Family {
        let mut family = Family { files: 1, disk_bytes: own };
        for source in agents::companions(path).iter().filter_map(|path| place::open(path).ok()) {
            if format_of(&source).is_some() {
                family.files += 1;
                family.disk_bytes += Bytes(Source::len(&source));
            }
        }
        family
    }
}
