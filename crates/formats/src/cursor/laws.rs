//! What any of the services behind Cursor refuses.

use epitome_model::{Breach, Law, Laws, Source, Transcript};

use crate::pairing;

/// Cursor makes its requests on its own servers, from more than is stored here: what it sends for a
/// call that was cancelled, and has no result, is not known.
pub struct CursorLaws;

impl Laws for CursorLaws {
    fn check(&self, transcript: &Transcript, _source: &dyn Source) -> Vec<Breach> {
        let mut breaches = pairing::breaches(transcript);
        breaches.retain(|breach| breach.law != Law::Position);
        breaches.sort();
        breaches
    }
}
