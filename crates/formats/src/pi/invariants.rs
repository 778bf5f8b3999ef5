//! What pi and the APIs behind it refuse.

use std::ops::Range;

use epitome_model::{Invariants, Source, Transcript, Violation};

use crate::accounting::{self, EACH, Path};
use crate::pairing;

/// Values that other programs read from entries. Extensions of pi that run sub-agents store their
/// cost in `details` of a result.
pub const ACCOUNTING: &[Path] = &[
    &["type"],
    &["id"],
    &["parentId"],
    &["timestamp"],
    &["cwd"],
    &["version"],
    &["provider"],
    &["modelId"],
    &["usage"],
    &["message", "role"],
    &["message", "timestamp"],
    &["message", "api"],
    &["message", "provider"],
    &["message", "model"],
    &["message", "responseId"],
    &["message", "usage"],
    &["message", "stopReason"],
    &["message", "durationMs"],
    &["message", "toolCallId"],
    &["message", "toolName"],
    &["message", "details", "usage"],
    &["message", "details", "results", EACH, "usage"],
    &["message", "details", "results", EACH, "model"],
];

/// pi answers a call without a result itself, but sends a result without a call to the provider,
/// which refuses the session.
pub struct PiInvariants;

impl Invariants for PiInvariants {
    fn check(&self, transcript: &Transcript, _source: &dyn Source) -> Vec<Violation> {
        // pi drops empty texts before it sends them.
        pairing::violations(transcript)
    }

    fn accounting(&self, record: &[u8]) -> Vec<Range<usize>> {
        accounting::values(record, ACCOUNTING)
    }
}
