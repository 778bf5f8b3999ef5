//! Counts by name, in the order of the last occurrence.

use std::collections::HashMap;

/// Counts by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally<T> {
    entries: Vec<(String, T, u64)>,
    places: HashMap<String, usize>,
    touches: u64,
}

impl<T> Default for Tally<T> {
    fn default() -> Tally<T> {
        Tally { entries: Vec::new(), places: HashMap::new(), touches: 0 }
    }
}

impl<T: Default> Tally<T> {
    /// The count of a name, to be changed. The name becomes the last one in the order.
    pub fn touch(&mut self, name: &str) -> &mut T {
        self.touches += 1;
        let place = *self.places.entry(name.to_owned()).or_insert_with(|| {
            self.entries.push((name.to_owned(), T::default(), 0));
            self.entries.len() - 1
        });
        let (_, count, said) = &mut self.entries[place];
        *said = self.touches;
        count
    }

    /// The number of names.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Names and counts, in the order of the last occurrence.
    pub fn all(&self) -> Vec<(&str, &T)> {
        let mut all: Vec<&(String, T, u64)> = self.entries.iter().collect();
        all.sort_by_key(|(_, _, said)| *said);
        all.into_iter().map(|(name, count, _)| (&**name, count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_in_which_they_were_counted_last() {
        let mut tally: Tally<u64> = Tally::default();
        assert_eq!((tally.len(), tally.is_empty(), tally.all()), (0, true, vec![]));
        for name in ["a", "b", "a", "c"] {
            *tally.touch(name) += 1;
        }
        assert_eq!(tally.all(), [("b", &1), ("a", &2), ("c", &1)]);
        assert_eq!((tally.len(), tally.is_empty()), (3, false));
    }
}
