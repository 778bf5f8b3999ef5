//! The bytes of the messages of a list that was given before.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The bytes of the messages of a context, as hashes, as far as they are known: a message that is
/// given again need not be parsed.
#[derive(Clone, Debug, Default)]
pub struct KnownBytes(Vec<Option<u64>>);

impl KnownBytes {
    /// Remembers the bytes of a message; what was behind it is forgotten.
    pub fn set_last(&mut self, at: usize, hash: Option<u64>) {
        self.0.resize(at, None);
        self.0.push(hash);
    }

    /// Whether the message at a place had these bytes.
    pub fn is_known(&self, at: usize, hash: u64) -> bool {
        self.0.get(at) == Some(&Some(hash))
    }

    /// Remembers the bytes of the message at a place.
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
