//! Amp: one JSON document per thread. Read-only.
//!
//! `docs/formats/amp.md` describes its members, and how that was found out.

mod read;

use epitome_model::{Invariants, Source, Transcript, Violation};

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
    invariants: &AmpInvariants,
    make: None,
    thinking_is_bound: epitome_api::anthropic::thinking_is_bound,
    databases: &[],
    files: None,
};

/// Every call has a result after it.
struct AmpInvariants;

impl Invariants for AmpInvariants {
    fn check(&self, transcript: &Transcript, _source: &dyn Source) -> Vec<Violation> {
        let mut violations = pairing::violations(transcript);
        violations.sort();
        violations
    }
}
