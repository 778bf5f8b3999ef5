//! What the services behind Cursor refuse.

use epitome_model::{Invariant, Invariants, Source, Transcript, Violation};

use crate::pairing;

/// Cursor makes its requests on its own servers, from more than is stored here: what it sends for a
/// cancelled call without a result is not known.
pub struct CursorInvariants;

impl Invariants for CursorInvariants {
    fn check(&self, transcript: &Transcript, _source: &dyn Source) -> Vec<Violation> {
        let mut violations = pairing::violations(transcript);
        violations.retain(|violation| violation.invariant != Invariant::Position);
        violations.sort();
        violations
    }
}
