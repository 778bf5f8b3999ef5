//! mini-swe-agent: a trajectory of one run, one JSON document. Read-only.
//!
//! `docs/formats/mini-swe.md` describes its members.

mod read;

use epitome_model::{Invariants, Source, Transcript, Violation};

use crate::{Format, Writing, pairing};

/// Trajectories of mini-swe-agent.
pub const FORMAT: Format = Format {
    name: "mini-swe",
    sniff: read::sniff,
    read: read::read,
    writing: Writing::ReadOnly(
        "a trajectory is the record of a run that is over: nothing resumes it",
    ),
    native: None,
    summarise: None,
    invariants: &Trajectory,
    make: None,
    thinking_is_bound: |_| false,
    databases: &[],
    files: None,
};

/// The invariants of a trajectory: calls have results.
struct Trajectory;

impl Invariants for Trajectory {
    fn check(&self, transcript: &Transcript, _source: &dyn Source) -> Vec<Violation> {
        let mut violations = pairing::violations(transcript);
        violations.sort();
        violations
    }
}
