//! Helpers for the tests of this crate.

use epitome_model::{Block, Counter, Role, Text, Tokens};
use samples::Sample;

use crate::block::MeasuredBlock;
use crate::history::History;

/// A counter with one token per byte.
struct Bytes;

impl Counter for Bytes {
    fn name(&self) -> &'static str {
        "bytes"
    }

    fn count(&self, text: &str) -> Tokens {
        Tokens(text.len() as u64)
    }
}

/// The measured block of a text of the user.
pub fn text(text: &str) -> MeasuredBlock {
    let block = Block::Text(Text::Owned(text.into()));
    MeasuredBlock::from_block(&block, Role::User, &&b""[..], &Bytes)
}

/// The measured block of a text of the user, with the given number of tokens.
pub fn piece(words: &str, tokens: u64) -> MeasuredBlock {
    MeasuredBlock { tokens: Tokens(tokens), ..text(words) }
}

/// A sample as a history, with one token per byte.
pub fn history(sample: &Sample) -> History {
    History::from_transcript(sample.transcript(), sample.source(), &Bytes)
}
