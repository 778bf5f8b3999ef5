//! mini-swe-agent: a trajectory of one run, one JSON document. Read-only.
//!
//! `docs/formats/mini-swe.md` describes its members.

mod read;

use crate::Format;

/// Trajectories of mini-swe-agent.
pub const FORMAT: Format = Format::read_only(
    "mini-swe",
    read::sniff,
    read::read,
    "a trajectory is the record of a run that is over: nothing resumes it",
);
