//! Hashes of the messages that a client has passed.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// For each message of a context, the hash of its bytes as the client wrote them, if that is known.
/// If a client passes a message with the same bytes, the message need not be parsed again.
#[derive(Clone, Debug, Default)]
pub struct KnownBytes(Vec<Option<u64>>);

impl KnownBytes {
    /// Sets the hash of message `at`, and removes the hashes of later messages.
    pub fn set_last(&mut self, at: usize, hash: Option<u64>) {
        self.0.resize(at, None);
        self.0.push(hash);
    }

    /// Whether message `at` had bytes with this hash.
    pub fn is_known(&self, at: usize, hash: u64) -> bool {
        self.0.get(at) == Some(&Some(hash))
    }

    /// Sets the hash of message `at`.
    pub fn set(&mut self, at: usize, hash: u64) {
        if self.0.len() <= at {
            self.0.resize(at + 1, None);
        }
        self.0[at] = Some(hash);
    }
}

/// The hash of a message's bytes.
pub fn hash_of(message: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.hash(&mut hasher);
    hasher.finish()
}
