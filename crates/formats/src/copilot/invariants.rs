//! What the services behind Copilot refuse.

use epitome_model::{Invariants, Source, Transcript, Violation};

use crate::pairing;

/// Copilot rebuilds its requests from the log: a call that the user interrupted has no result there
/// either.
pub struct CopilotInvariants;

impl Invariants for CopilotInvariants {
    fn check(&self, transcript: &Transcript, _source: &dyn Source) -> Vec<Violation> {
        let mut violations = pairing::violations(transcript);
        violations.sort();
        violations
    }
}
