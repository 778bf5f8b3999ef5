//! What every API refuses: a log may be sent to any of them.

use std::ops::Range;

use epitome_model::{Invariants, Source, Transcript, Violation};

use crate::accounting::{self, Path};
use crate::pairing;

/// Values that other programs read from lines of a log.
const ACCOUNTING: &[Path] =
    &[&["id"], &["time"], &["role"], &["model"], &["group"], &["usage"], &["cwd"]];

/// A log may be sent to any API: these are the invariants common to all. Those of one API are
/// checked on the request that is made.
pub struct EpitomeInvariants;

impl Invariants for EpitomeInvariants {
    fn check(&self, transcript: &Transcript, _source: &dyn Source) -> Vec<Violation> {
        pairing::violations(transcript)
    }

    fn accounting(&self, record: &[u8]) -> Vec<Range<usize>> {
        accounting::values(record, ACCOUNTING)
    }
}
