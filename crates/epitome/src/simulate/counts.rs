//! A cache of token counts: a replay counts the same texts many times.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::{Arc, Mutex, PoisonError};

use epitome_model::{Counter, Tokens};

/// The length in bytes below which the count of a text is not cached.
const SHORT: usize = 32;

/// A counter with a cache, which its clones share.
#[derive(Clone)]
pub struct Remembering {
    counter: &'static dyn Counter,
    known: Arc<Mutex<HashMap<(u64, usize), Tokens>>>,
}

impl Remembering {
    /// Caches the counts of another counter.
    pub fn new(counter: &'static (dyn Counter + 'static)) -> Remembering {
        Remembering { counter, known: Arc::default() }
    }
}

impl Counter for Remembering {
    fn name(&self) -> &'static str {
        self.counter.name()
    }

    fn count(&self, text: &str) -> Tokens {
        if text.len() < SHORT {
            return self.counter.count(text);
        }
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(text);
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tokens) = known().get(&(hash, text.len())) {
            return *tokens;
        }
        let tokens = self.counter.count(text);
        known().insert((hash, text.len()), tokens);
        tokens
    }
}

#[cfg(test)]
mod tests {
    use epitome_tokens::O200k;

    use super::*;

    #[test]
    fn a_text_has_the_same_tokens_when_it_is_counted_again() {
        let counter = Remembering::new(&const { O200k::new() });
        let long = "fn main() { println!(\"a text that is remembered\") }";
        for text in ["", "short", long] {
            let expect = O200k::new().count(text);
            assert_eq!([counter.count(text), counter.clone().count(text)], [expect; 2], "{text}");
        }
        assert_eq!(counter.known.lock().expect("nothing failed").len(), 1);
    }
}
