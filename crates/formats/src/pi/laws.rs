//! What pi and the wires behind it refuse.

use epitome_model::{Breach, Laws, Source, Transcript};

use crate::pairing;

/// pi answers a call without a result by itself, but passes a result without a call on to the
/// provider, which refuses the session.
pub struct PiLaws;

impl Laws for PiLaws {
    fn check(&self, transcript: &Transcript, _source: &dyn Source) -> Vec<Breach> {
        // pi drops empty texts before it sends them.
        pairing::breaches(transcript)
    }
}
