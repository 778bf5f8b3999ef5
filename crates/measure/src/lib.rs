//! Measures what an agent used of a session's earlier content, and how much of that a compacted
//! context still contains.
//!
//! What was needed can be seen in the session itself: if the model writes a fact that occurred
//! earlier, and nothing has brought it back in between, it took the fact from the context. A
//! [`History`] is a session as a list of [`MeasuredBlock`]s, [`Needs`] are the facts that its later
//! calls used, [`ForcedCompaction`] measures one compaction, and [`Replay`] measures a context
//! before every call, with its cost at providers that cache requests.
//!
//! The method and its weaknesses are in `docs/quality.md`.
//!
//! # Absent
//!
//! Contexts and recipes: a context is measured as a list of pieces, wherever it comes from. Prices:
//! a [`Bill`] is in tokens. Models: whether one could do without a fact is not measured.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod block;
mod cache;
mod forced;
mod history;
mod lines;
mod needs;
mod replay;
#[cfg(test)]
mod testing;

pub use block::{BlockKind, MeasuredBlock};
pub use cache::{Bill, Cache, CacheModel, Sent};
pub use forced::{CutFigures, ForcedCompaction, References};
pub use history::{History, ModelCall};
pub use lines::{LineId, line_ids, plain_line};
pub use needs::{Edit, FAR, HORIZON, Need, Needs, Origin, UsedFact, is_generic};
pub use replay::{CallFigures, Replay};
