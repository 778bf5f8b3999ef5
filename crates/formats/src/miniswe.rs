//! mini-swe-agent: a trajectory of one run, one JSON document. Only read.
//!
//! What it holds is in `docs/formats/mini-swe.md`.

mod read;

use epitome_model::{Breach, Laws, Source, Transcript};

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
    laws: &Trajectory,
    thinking_is_bound: |_| false,
};

/// What holds of any trajectory: calls have their results.
struct Trajectory;

impl Laws for Trajectory {
    fn check(&self, transcript: &Transcript, _source: &dyn Source) -> Vec<Breach> {
        let mut breaches = pairing::breaches(transcript);
        breaches.sort();
        breaches
    }
}
