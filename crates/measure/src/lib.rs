//! What a session's agent used of its past, and what of it a context still holds.
//!
//! A session tells by itself what was needed: a fact that the model writes, that stood before in
//! the context, and that nothing has brought back in between, was taken from the context. A
//! [`History`] is a session as a list of [`Piece`]s, [`Needs`] are what its later calls used,
//! [`Cut`] measures one compaction, and [`Replay`] measures a context before every call, with what
//! it costs where providers cache requests.
//!
//! The method and its weaknesses are in `docs/quality.md`.
//!
//! # Absent
//!
//! Contexts and recipes: a context is measured as a list of pieces, wherever it comes from. Prices:
//! a [`Bill`] is in tokens. Models: whether one would cope without a fact is not seen.

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
