//! The exact counter.

use epitome_model::{Counter, Tokens};

/// Counts the tokens of OpenAI's `o200k_base` exactly.
#[derive(Clone, Copy, Debug, Default)]
pub struct O200k;

impl O200k {
    /// A counter; nothing is loaded until it counts a text that is not empty.
    pub const fn new() -> O200k {
        O200k
    }
}

impl Counter for O200k {
    fn name(&self) -> &'static str {
        "o200k"
    }

    fn count(&self, text: &str) -> Tokens {
        if text.is_empty() {
            return Tokens(0);
        }
        let vocabulary = tiktoken::get_encoding("o200k_base")
            .expect("the vocabulary is compiled in: feature vocab-o200k_base");
        Tokens(vocabulary.count(text) as u64)
    }
}
