//! What Claude Code and Anthropic's wire refuse.

use epitome_model::{Breach, Laws, Source, Transcript};

use crate::pairing;

/// Claude Code drops the other half of a broken pair by itself, but a session that relies on it
/// loses what it drops: a broken pair is a breach here as it is on the wire.
pub struct ClaudeLaws;

impl Laws for ClaudeLaws {
    fn check(&self, transcript: &Transcript, source: &dyn Source) -> Vec<Breach> {
        let mut breaches = pairing::breaches(transcript);
        breaches.extend(pairing::empty_texts(transcript, source));
        breaches.sort();
        breaches
    }
}
