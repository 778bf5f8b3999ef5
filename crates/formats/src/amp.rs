//! Amp: a JSON document a thread. Only read.
//!
//! What its members mean, and how that was found, is in `docs/formats/amp.md`.

mod read;

use epitome_model::{Breach, Laws, Source, Transcript};

use crate::{Format, Writing, pairing};

/// Amp's threads.
pub const FORMAT: Format = Format {
    name: "amp",
    sniff: read::sniff,
    read: read::read,
    writing: Writing::ReadOnly(
        "Amp keeps its threads on a server, and the file is a copy that it writes again",
    ),
    native: None,
    summarise: None,
    laws: &AmpInvariants,
    thinking_is_bound: crate::claude::thinking_is_bound,
};

/// Every call has its result after it.
struct AmpInvariants;

impl Laws for AmpInvariants {
    fn check(&self, transcript: &Transcript, _source: &dyn Source) -> Vec<Breach> {
        let mut breaches = pairing::breaches(transcript);
        breaches.sort();
        breaches
    }
}
