//! The result of one case.

use crate::violation::Violation;

/// A case: the injected fault, and the violations.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) what: String,
    /// Whether the fault occurred before the command ended; always true in parts without such a
    /// moment.
    pub(crate) hit: bool,
    pub(crate) violations: Vec<Violation>,
}
