//! What the services behind Qwen Code refuse, and what other programs read from its records.

use std::ops::Range;

use epitome_model::{Breach, Laws, Source, Transcript};

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

/// Qwen Code sends the messages of a session as they are: every call has its result after it.
pub struct QwenInvariants;

impl Laws for QwenInvariants {
    fn check(&self, transcript: &Transcript, _source: &dyn Source) -> Vec<Breach> {
        let mut breaches = pairing::breaches(transcript);
        breaches.sort();
        breaches
    }

    fn accounting(&self, record: &[u8]) -> Vec<Range<usize>> {
        accounting::values(record, ACCOUNTING)
    }
}
