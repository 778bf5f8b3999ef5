//! What any of the services behind Copilot refuses.

use epitome_model::{Breach, Laws, Source, Transcript};

use crate::pairing;

/// Copilot rebuilds its requests from the log: a call without its result stands there too when the
/// user interrupted it.
pub struct CopilotLaws;

impl Laws for CopilotLaws {
    fn check(&self, transcript: &Transcript, _source: &dyn Source) -> Vec<Breach> {
        let mut breaches = pairing::breaches(transcript);
        breaches.sort();
        breaches
    }
}
