//! A value before and after a change.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// A value before and after a change: tokens, bytes, or money. A sum of changes adds the values
/// before, and the values after.
///
/// ```
/// use epitome::ops::Change;
///
/// let changes = [Change { before: 10, after: 4 }, Change { before: 5, after: 5 }];
/// assert_eq!(changes.into_iter().sum::<Change<u64>>(), Change { before: 15, after: 9 });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change<T> {
    /// The value before the change.
    pub before: T,
    /// The value after the change.
    pub after: T,
}

impl<T: AddAssign> AddAssign for Change<T> {
    fn add_assign(&mut self, other: Change<T>) {
        self.before += other.before;
        self.after += other.after;
    }
}

impl<T: Add<Output = T> + Default> Sum for Change<T> {
    fn sum<I: Iterator<Item = Change<T>>>(changes: I) -> Change<T> {
        changes.fold(Change::default(), |sum, change| Change {
            before: sum.before + change.before,
            after: sum.after + change.after,
        })
    }
}
