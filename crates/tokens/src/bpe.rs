//! The exact counter, with the vocabulary of OpenAI.

use std::sync::{Mutex, PoisonError};

use epitome_model::{Counter, Tokens, parallel};

/// Counts tokens with `o200k_base`, the vocabulary of OpenAI's models since GPT-4o.
///
/// The counts are exact, with one exception that is rare in real text: see
/// [`count`](Counter::count). Special tokens such as `<|endoftext|>` are counted as plain text. The
/// vocabulary is part of the binary. The first count of a text that is not empty loads it, which
/// takes about 55 ms and 24 MB; the counter itself has no state and is free to copy.
///
/// The vocabulary and the merging are from the crate [`tiktoken`]; the tests compare the counts
/// with those of GitHub's `bpe-openai`.
///
/// # Examples
///
/// ```
/// use epitome_model::{Counter, Tokens};
/// use epitome_tokens::O200k;
///
/// let counter = O200k::new();
/// assert_eq!(counter.name(), "o200k");
/// assert_eq!(counter.count("fn main() {}\n"), Tokens(4));
/// assert_eq!(counter.count("<|endoftext|>"), Tokens(7));
/// assert_eq!(counter.count(""), Tokens(0));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct O200k;

impl O200k {
    /// Makes a counter. The vocabulary is loaded at the first count.
    pub const fn new() -> O200k {
        O200k
    }
}

impl Counter for O200k {
    fn name(&self) -> &'static str {
        "o200k"
    }

    /// The tokens of `text`, counted on its own; 0 only when the text is empty.
    ///
    /// The time is linear in the length of the text: windows of at most 32 KB are counted
    /// separately, each of which ends where a token certainly ends. A window without such a place
    /// (32 KB of one repeated letter, or of Chinese without a comma) is cut between any two
    /// characters, which may make the count wrong by a few tokens.
    fn count(&self, text: &str) -> Tokens {
        if text.is_empty() {
            return Tokens(0);
        }
        let vocabulary = tiktoken::get_encoding("o200k_base")
            .expect("the feature vocab-o200k_base puts it into the binary");
        if text.len() < LARGE {
            return windows(text, WINDOW)
                .map(|window| Tokens(vocabulary.count(window) as u64))
                .sum();
        }
        let hash = blake3::hash(text.as_bytes());
        let known = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tokens)) = known.iter().find(|(known, _)| *known == hash) {
            return *tokens;
        }
        drop(known);
        let counts = parallel::map(windows(text, WINDOW).collect(), |window| {
            Tokens(vocabulary.count(window) as u64)
        });
        let tokens = counts.into_iter().sum();
        let mut known = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
        known.truncate(REMEMBERED - 1);
        known.insert(0, (hash, tokens));
        tokens
    }
}

/// Texts of at least this many bytes are counted on all cores. Their counts are cached, because
/// several steps of a compaction count the same text.
const LARGE: usize = 1 << 20;

/// The number of cached counts; the oldest count is dropped first.
const REMEMBERED: usize = 64;

/// The cache of counts of large texts, the newest first.
///
/// Global, because [`O200k`] is a value without state that callers make where they need one, and a
/// compaction counts the same text with several of these values. A count depends on the text alone,
/// so the cache changes nothing but the time.
static COUNTED: Mutex<Vec<(blake3::Hash, Tokens)>> = Mutex::new(Vec::new());

/// The maximum number of bytes merged at once. Merging an unbroken run of n bytes takes about 36 n
/// bytes of memory and n log n steps: 5 MB of one letter would take 190 MB. The number is a
/// multiple of 128 and of 9, because the longest tokens of one repeated character have such
/// lengths: a run of it is then cut between two tokens.
const WINDOW: usize = 28 * 128 * 9;

/// Cuts `text` into windows of at most `limit` bytes (or one character), between tokens where that
/// is possible.
fn windows(text: &str, limit: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (window, after) = rest.split_at(cut(rest, limit));
        rest = after;
        Some(window)
    })
}

/// The length of the first window of `text`, in bytes; more than 0.
fn cut(text: &str, limit: usize) -> usize {
    if text.len() <= limit {
        return text.len();
    }
    let end = text.floor_char_boundary(limit);
    if end == 0 {
        return text.ceil_char_boundary(1);
    }
    (1..=end).rev().find(|at| ends_token(text, *at)).unwrap_or(end)
}

/// Whether it is certain from the characters around `at` that a token ends there, whatever the rest
/// of the text is.
///
/// This follows from the pattern that splits a text before the merging (`O200K_PATTERN` in the
/// crate `tiktoken`; `pat_str` of `o200k_base` in
/// <https://github.com/openai/tiktoken/blob/main/tiktoken_ext/openai_public.py>): a word is
/// letters, with at most one mark or blank before them and an English contraction after them; a
/// number is up to three digits; a run of marks includes one space before it, and the line feeds
/// and slashes after it; white space goes up to its last line feed, or else up to the character
/// before the next word.
fn ends_token(text: &str, at: usize) -> bool {
    let before = text.as_bytes()[at - 1];
    let after = text.as_bytes()[at];
    match (before, after) {
        (_, b' ' | b'\t') => {
            text[..at].chars().next_back().is_some_and(|last| !last.is_whitespace())
        }
        (b'\n', b'!'..=b'.' | b'0'..=b'~') => true,
        (b'0'..=b'9', b'!'..=b'/' | b':'..=b'~') => true,
        (b'a'..=b'z' | b'A'..=b'Z', b'0'..=b'9') => true,
        // An apostrophe may begin a contraction.
        (b'a'..=b'z' | b'A'..=b'Z', b'\'') => false,
        (b'a'..=b'z' | b'A'..=b'Z', b'!'..=b'/' | b':'..=b'@' | b'['..=b'`' | b'{'..=b'~') => true,
        // A token ends between a Chinese, Japanese or Korean letter and the comma or full stop
        // after it.
        (0x80..=0xbf, 0xe3 | 0xef) if text.is_char_boundary(at) => {
            let (head, tail) = text.split_at(at);
            tail.starts_with(['、', '。', '，'])
                && head
                    .ends_with(|last: char| matches!(last, 'ぁ'..='ゖ' | '一'..='鿿' | '가'..='힣'))
        }
        _ => false,
    }
}

#[cfg(test)]
#[path = "bpe_tests.rs"]
mod tests;
