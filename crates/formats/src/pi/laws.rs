//! What pi and the wires behind it refuse.

use std::ops::Range;

use epitome_model::{Breach, Laws, Source, Transcript};

use crate::accounting::{self, EACH, Path};
use crate::pairing;

/// What other programs read from entries. `details` of a result is where extensions of pi that run
/// sub-agents put what these cost.
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

/// pi answers a call without a result by itself, but passes a result without a call on to the
/// provider, which refuses the session.
pub struct PiLaws;

impl Laws for PiLaws {
    fn check(&self, transcript: &Transcript, _source: &dyn Source) -> Vec<Breach> {
        // pi drops empty texts before it sends them.
        pairing::breaches(transcript)
    }

    fn accounting(&self, record: &[u8]) -> Vec<Range<usize>> {
        accounting::values(record, ACCOUNTING)
    }
}
