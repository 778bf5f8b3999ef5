//! Measures which of a session's earlier content an agent used, and how much of the used content a
//! compacted context still contains.
//!
//! What the model needed can be seen in the session itself: if it writes a fact (a name, a path, a
//! number) that occurred earlier, it has taken the fact from its context. A [`History`] is a
//! session as a list of [`MeasuredBlock`]s, and [`Needs`] has the earlier facts that each response
//! used.
//!
//! [`ForcedCompaction`] measures one compaction: how many of the facts that were used after it the
//! compacted context contains. [`Replay`] measures the context of every request of a session, and
//! what the request costs at a provider that caches requests ([`Cache`]).
//!
//! The method and its weaknesses are in `docs/quality.md`.
//!
//! ```
//! use epitome_measure::{Cache, MeasuredBlock};
//! use epitome_model::{Block, Role, Text, Tokens};
//! # use samples::Quarters;
//!
//! let source: &[u8] = b"";
//! let block = Block::Text(Text::Owned("What is in src/lib.rs?".into()));
//! let block = MeasuredBlock::from_block(&block, Role::User, &source, &Quarters);
//! let mut cache = Cache::default();
//! let first = cache.send([&block].into_iter());
//! assert_eq!(first.prefix, Tokens(0));
//! let second = cache.send([&block].into_iter());
//! assert_eq!(second.prefix, second.all);
//! ```
//!
//! # Absent
//!
//! - Contexts and recipes: a context is measured as a list of blocks, wherever it comes from.
//!   `epitome::simulate` makes them.
//! - Prices: a [`Bill`] is in tokens.
//! - Models: it is not measured whether a model could do without a fact.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod block;
mod cache;
mod forced;
mod history;
mod lines;
mod needs;
mod replay;
mod rules;
#[cfg(test)]
mod testing;

pub use block::{BlockKind, MeasuredBlock};
pub use cache::{Bill, Cache, CacheModel, RequestTokens};
pub use forced::{CutFigures, ForcedCompaction, References};
pub use history::{History, ModelCall};
pub use lines::{LineId, line_ids, plain_line};
pub use needs::{Edit, FAR, HORIZON, Need, Needs, Origin, UsedFact, is_generic};
pub use replay::{CallFigures, Replay};
pub use rules::{RequestRule, broken_rules};
