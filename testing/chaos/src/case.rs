//! What became of one case.

use crate::violation::Violation;

/// One case: what was done, and what did not hold.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) what: String,
    /// Whether the fault happened before the command was over.
    pub(crate) hit: bool,
    pub(crate) violations: Vec<Violation>,
}
