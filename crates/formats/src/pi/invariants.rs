//! The invariants of pi's sessions: every result has its call, every call before the last user
//! message has one result, and no edit changes the values that other programs read.

use crate::accounting::Path;
use crate::pairing::{self, RecordInvariants};

/// Values that other programs read from entries. Extensions of pi that run sub-agents store their
/// cost in `details` of a result.
pub const ACCOUNTING: &[Path] = &[
    "type",
    "id",
    "parentId",
    "timestamp",
    "cwd",
    "version",
    "provider",
    "modelId",
    "usage",
    "message.role",
    "message.timestamp",
    "message.api",
    "message.provider",
    "message.model",
    "message.responseId",
    "message.usage",
    "message.stopReason",
    "message.durationMs",
    "message.toolCallId",
    "message.toolName",
    "message.details.usage",
    "message.details.results.*.usage",
    "message.details.results.*.model",
];

/// pi adds a result to a call without one, but sends a result without a call to the provider, which
/// refuses the request. Both are violations here.
pub const INVARIANTS: RecordInvariants = RecordInvariants {
    check: |transcript, _| {
        // Empty texts are no violation: pi drops them before it sends an entry.
        pairing::violations(transcript)
    },
    accounting: ACCOUNTING,
};
