//! What every wire refuses that a log may be sent on.

use std::ops::Range;

use epitome_model::{Breach, Laws, Source, Transcript};

use crate::accounting::{self, Path};
use crate::pairing;

/// What other programs read from lines of a log.
const ACCOUNTING: &[Path] =
    &[&["id"], &["time"], &["role"], &["model"], &["group"], &["usage"], &["cwd"]];

/// A log is sent on any wire: here stands what all of them want. What one of them wants beside is
/// asked of the request that is made.
pub struct EpitomeLaws;

impl Laws for EpitomeLaws {
    fn check(&self, transcript: &Transcript, _source: &dyn Source) -> Vec<Breach> {
        pairing::breaches(transcript)
    }

    fn accounting(&self, record: &[u8]) -> Vec<Range<usize>> {
        accounting::values(record, ACCOUNTING)
    }
}
