//! What the services behind Qwen Code refuse, and what other programs read from its records.

use std::ops::Range;

use epitome_model::{Invariants, Source, Transcript, Violation};

use crate::accounting::{self, Path};
use crate::pairing;

/// Values that no edit changes.
const ACCOUNTING: &[Path] = &[
    &["uuid"],
    &["parentUuid"],
    &["sessionId"],
    &["timestamp"],
    &["type"],
    &["subtype"],
    &["cwd"],
    &["version"],
    &["model"],
    &["usageMetadata"],
];

/// Qwen Code sends the messages of a session unchanged: every call must have a result after it.
pub struct QwenInvariants;

impl Invariants for QwenInvariants {
    fn check(&self, transcript: &Transcript, _source: &dyn Source) -> Vec<Violation> {
        let mut violations = pairing::violations(transcript);
        violations.sort();
        violations
    }

    fn accounting(&self, record: &[u8]) -> Vec<Range<usize>> {
        accounting::values(record, ACCOUNTING)
    }
}
