//! A session with everything that belongs to it.

use std::path::Path;

use epitome_model::{Bytes, Source};
use serde::Serialize;

use crate::place;
use crate::session::format_of;
use epitome_agents as agents;

/// A session, its sub-agents' sessions, and what else its agent keeps of it, such as a log of all
/// versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Family {
    /// How many files or sets of rows, the session included.
    pub files: u64,
    /// Their length together.
    pub disk_bytes: Bytes,
}

impl Family {
    /// The family of the session at `path`, which itself has `own` bytes. A file among them that is
    /// no session, or cannot be read, is left out.
    pub fn of(path: &Path, own: Bytes) -> Family {
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
