//! A tokenizer that remembers its counts, because requests of one conversation repeat the same
//! texts.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use epitome_model::{Counter, Tokens};

/// The counts of texts with fewer bytes are not kept: counting such a text is as quick as looking
/// up its count.
const LEAST: usize = 64;
/// The maximum number of counts that are kept. Before one more is added, all are dropped.
const MOST: usize = 200_000;

/// Counts with another tokenizer, and keeps the counts.
pub(crate) struct CachingCounter {
    inner: &'static dyn Counter,
    known: Mutex<HashMap<[u8; 32], Tokens>>,
}

impl CachingCounter {
    pub(crate) fn new(inner: &'static dyn Counter) -> CachingCounter {
        CachingCounter { inner, known: Mutex::default() }
    }
}

impl Counter for CachingCounter {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn count(&self, text: &str) -> Tokens {
        if text.len() < LEAST {
            return self.inner.count(text);
        }
        let hash = *blake3::hash(text.as_bytes()).as_bytes();
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tokens) = known().get(&hash) {
            return *tokens;
        }
        // The lock is not held here, so that other texts can be counted at the same time.
        let tokens = self.inner.count(text);
        let mut known = known();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(hash, tokens);
        tokens
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Counts how often it is called.
    struct Calls(AtomicU64);

    impl Counter for Calls {
        fn name(&self) -> &'static str {
            "calls"
        }

        fn count(&self, text: &str) -> Tokens {
            self.0.fetch_add(1, Ordering::Relaxed);
            Tokens(text.len() as u64)
        }
    }

    #[test]
    fn a_long_text_is_counted_once() {
        static CALLS: Calls = Calls(AtomicU64::new(0));
        let counter = CachingCounter::new(&CALLS);
        let long = "a".repeat(LEAST);
        let other = "b".repeat(LEAST);
        for text in [&long, &other, &long, &other, &long] {
            assert_eq!(counter.count(text), Tokens(LEAST as u64));
        }
        assert_eq!(CALLS.0.load(Ordering::Relaxed), 2);
    }
}
