//! What the services behind Qwen Code refuse, and what other programs read from its records.

use crate::accounting::Path;
use crate::pairing::{self, RecordInvariants};

/// Values that other programs read. No edit may change them.
const ACCOUNTING: &[Path] = &[
    "uuid",
    "parentUuid",
    "sessionId",
    "timestamp",
    "type",
    "subtype",
    "cwd",
    "version",
    "model",
    "usageMetadata",
];

/// Qwen Code sends the messages of a session unchanged, so every call must have a result after it.
pub const INVARIANTS: RecordInvariants = RecordInvariants {
    check: |transcript, _| pairing::violations(transcript),
    accounting: ACCOUNTING,
};
