//! Hashes of the messages that a client passed before.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Hashes of a context's messages as the client wrote them, where known: a message with the same
/// bytes need not be parsed again.
#[derive(Clone, Debug, Default)]
pub struct KnownBytes(Vec<Option<u64>>);

impl KnownBytes {
    /// Sets the hash of the last message and forgets those after it.
    pub fn set_last(&mut self, at: usize, hash: Option<u64>) {
        self.0.resize(at, None);
        self.0.push(hash);
    }

    /// Whether the message at this place had these bytes.
    pub fn is_known(&self, at: usize, hash: u64) -> bool {
        self.0.get(at) == Some(&Some(hash))
    }

    /// Sets the hash of the message at this place.
    pub fn set(&mut self, at: usize, hash: u64) {
        if self.0.len() <= at {
            self.0.resize(at + 1, None);
        }
        self.0[at] = Some(hash);
    }
}

/// A hash of a message's bytes.
pub fn hash_of(message: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.hash(&mut hasher);
    hasher.finish()
}
