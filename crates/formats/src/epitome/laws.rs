//! What every wire refuses that a log may be sent on.

use epitome_model::{Breach, Laws, Source, Transcript};

use crate::pairing;

/// A log is sent on any wire: here stands what all of them want. What one of them wants beside is
/// asked of the request that is made.
pub struct EpitomeLaws;

impl Laws for EpitomeLaws {
    fn check(&self, transcript: &Transcript, _source: &dyn Source) -> Vec<Breach> {
        pairing::breaches(transcript)
    }
}
