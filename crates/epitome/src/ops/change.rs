//! Two states of a number.

use serde::Serialize;

/// A number before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change<T> {
    /// Before.
    pub before: T,
    /// After.
    pub after: T,
}
