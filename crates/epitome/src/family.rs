//! A session together with all files that belong to it.

use std::path::Path;

use epitome_model::{Bytes, Source};
use serde::Serialize;

use crate::place;
use crate::session::format_of;
use epitome_agents as agents;

/// The size of a session, its sub-agents' sessions, and other files that its agent keeps of it,
/// such as a log of all versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Family {
    /// The number of files or sets of rows, the session included.
    pub files: u64,
    /// Their total length.
    pub disk_bytes: Bytes,
}

impl Family {
    /// The family of the session at `path`, whose own length is `own`. Files that are no session or
    /// cannot be read are not counted.
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
