//! Keeps the context of an agent small and valid, whether the agent is running or its session is
//! stored.
//!
//! A [`Context`] is the context of a running agent. It keeps every message in a log, and decides
//! before each request what is sent: it truncates results on ingest, runs the passes of a recipe
//! when a trigger is reached, makes a digest (one entry with lines of the old messages, in their
//! place), or returns a [`Question`] for a model that writes a summary. If a provider refuses a
//! request as too long, the context makes itself smaller for a retry. Compactions are lines of the
//! log, so that they can be undone, and what they removed can be recalled.
//!
//! A [`Setup`] has the recipe, the window and the tokenizer of a context. A [`Journal`] stores its
//! log; without one the log is in memory. [`Context::view`] returns an [`Outgoing`]: the content of
//! the next request, for any API.
//!
//! [`stored`] compacts stored sessions: a [`PreparedCompaction`](stored::PreparedCompaction) is
//! planned, written, read again, verified and counted in memory.
//!
//! [`pipe`] is for agents in any language: a program sends requests about contexts as lines of
//! JSON.
//!
//! ```
//! use epitome_engine::{Context, MessagePart, Setup};
//! use epitome_passes::built_in;
//!
//! let mut context = Context::in_memory(Setup::new(built_in("s06").expect("a built-in recipe")));
//! context.user("What is in a.rs?")?;
//! context.assistant(&[MessagePart::call("c1", "Read", r#"{"path":"a.rs"}"#)])?;
//! context.tool(&[MessagePart::output("c1", "fn main() {}")])?;
//! assert_eq!(context.view()?.transcript().context().count(), 3);
//! # Ok::<(), epitome_error::Error>(())
//! ```
//!
//! # Absent
//!
//! - Files: a [`Journal`] writes. `epitome::live` has one for a file, and `epitome::ops` compacts
//!   stored sessions on disk.
//! - Calling models: the caller asks the questions. `epitome-llm` has clients.
//! - Clocks and the network.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod boundary;
mod context;
mod digest;
mod journal;
mod middle;
mod overflow;
pub mod pipe;
pub mod stored;
mod summary;

pub use context::{
    Content, ContentShare, Context, Hit, ListChange, MessagePart, Next, NotDone, Origin, Outcome,
    Outgoing, Preparation, Question, RECALL, RecallResult, Recovery, ResponseCall, SavingsReport,
    Setup, Speaker, WindowUse, compact_tool,
};
pub use epitome_passes::history;
pub use journal::Journal;
pub use middle::stored_middle_cut;
pub use overflow::{Overflow, OverflowSign, overflow};
pub use summary::{
    StartedSummary, SummaryRequest, WINDOW, keep_rules_of, says_more_than_a_summary,
    split_at_kept_end,
};
