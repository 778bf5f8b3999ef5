//! A number before and after.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// A number before and after. Changes of several sessions are added side by side.
///
/// ```
/// use epitome::ops::Change;
///
/// let changes = [Change { before: 10, after: 4 }, Change { before: 5, after: 5 }];
/// assert_eq!(changes.into_iter().sum::<Change<u64>>(), Change { before: 15, after: 9 });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change<T> {
    /// Before.
    pub before: T,
    /// After.
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
