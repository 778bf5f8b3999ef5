//! What every API refuses.

use crate::accounting::Path;
use crate::pairing::{self, RecordInvariants};

/// Values that other programs read from lines of a log.
const ACCOUNTING: &[Path] = &["id", "time", "role", "model", "group", "usage", "cwd"];

/// A log may be sent to any API, so only the invariants that all APIs have in common are checked
/// here. The invariants of one API are checked when a request to it is made.
pub const INVARIANTS: RecordInvariants = RecordInvariants {
    check: |transcript, _| pairing::violations(transcript),
    accounting: ACCOUNTING,
};
