//! SWE-agent: a trajectory of one run, one JSON document. Read-only.
//!
//! `docs/formats/swe-agent.md` describes its members.

mod read;

use crate::Format;

/// Trajectories of SWE-agent.
pub const FORMAT: Format = Format::read_only(
    "swe-agent",
    read::sniff,
    read::read,
    "a trajectory is the record of a run that is over: nothing resumes it",
);
