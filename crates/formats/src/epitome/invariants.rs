//! What every API refuses.

use crate::accounting::Path;
use crate::pairing::{self, RecordInvariants};

/// Values that other programs read from lines of a log.
const ACCOUNTING: &[Path] = &["id", "time", "role", "model", "group", "usage", "cwd"];

/// A log may be sent to any API: these are the invariants common to all. Those of one API are
/// checked on the request that is made.
pub const INVARIANTS: RecordInvariants = RecordInvariants {
    check: |transcript, _| pairing::violations(transcript),
    accounting: ACCOUNTING,
};
