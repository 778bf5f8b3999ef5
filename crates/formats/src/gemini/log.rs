//! Replays the log: finds the messages that are valid at its end, in the order in which they are
//! sent.
//!
//! It works as `loadConversationRecord` of Gemini CLI 0.61.0 does: as a map that keeps the order in
//! which ids were first inserted.

use std::collections::HashMap;

/// The messages of a log, by id. Messages are numbered by the reader.
#[derive(Default)]
pub struct Log {
    /// The numbers of the messages, in the order in which their ids first occurred.
    order: Vec<usize>,
    at: HashMap<Box<str>, usize>,
    /// For each id, the number of its newest message, valid or not.
    newest: HashMap<Box<str>, usize>,
    /// The number of the first message of the list that last replaced the history; 0 if none did.
    cleared: usize,
}

impl Log {
    /// Adds a message, or a new version of it.
    pub fn put(&mut self, id: &str, message: usize) {
        self.newest.insert(id.into(), message);
        match self.at.get(id) {
            Some(&place) => self.order[place] = message,
            None => {
                self.at.insert(id.into(), self.order.len());
                self.order.push(message);
            }
        }
    }

    /// Empties the history. The messages that replace it have numbers from `next` on.
    pub fn clear(&mut self, next: usize) {
        self.order.clear();
        self.at.clear();
        self.cleared = next;
    }

    /// Removes the message with this id and all after it. If the id is unknown, removes all
    /// messages.
    pub fn rewind(&mut self, id: &str) {
        let from = self.at.get(id).copied().unwrap_or(0);
        self.order.truncate(from);
        self.at.retain(|_, place| *place < from);
    }

    /// The messages that are valid at the end, in order.
    pub fn valid_messages(&self) -> impl Iterator<Item = usize> {
        self.order.iter().copied()
    }

    /// Whether a message was written again later.
    pub fn is_outdated(&self, id: &str, message: usize) -> bool {
        self.newest.get(id) != Some(&message)
    }

    /// Whether the history was replaced after this message was written.
    pub fn was_replaced_after(&self, message: usize) -> bool {
        message < self.cleared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(play: fn(&mut Log), expect: &[usize]) {
        let mut log = Log::default();
        play(&mut log);
        assert_eq!(log.valid_messages().collect::<Vec<_>>(), expect);
    }

    #[test]
    fn a_message_written_again_stands_where_it_stood() {
        check(|log| ["a", "b", "a"].iter().enumerate().for_each(|(n, id)| log.put(id, n)), &[2, 1]);
    }

    #[test]
    fn what_is_taken_back_goes_with_all_after_it() {
        check(
            |log| {
                ["a", "b", "c"].iter().enumerate().for_each(|(n, id)| log.put(id, n));
                log.rewind("b");
                log.put("c", 3);
            },
            &[0, 3],
        );
        check(
            |log| {
                log.put("a", 0);
                log.rewind("unknown");
            },
            &[],
        );
    }

    #[test]
    fn a_replaced_history_begins_anew() {
        check(
            |log| {
                log.put("a", 0);
                log.put("b", 1);
                log.clear(2);
                log.put("b", 2);
                log.put("a", 3);
            },
            &[2, 3],
        );
    }
}
