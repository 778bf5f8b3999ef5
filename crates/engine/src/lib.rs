//! Context management inside an agent's loop: messages go in, and what to send comes out.
//!
//! A [`Context`] holds every message in a log and decides before each request what is sent: it
//! truncates results on ingest, runs the passes of a recipe when a trigger is reached, asks for a
//! summary, and makes the context smaller if a provider refuses a request as too long. It does no
//! input or output except through its [`Journal`], which stores the log.
//!
//! ```
//! use epitome_engine::{Context, Said, Setup};
//! use epitome_passes::built_in;
//!
//! let mut context = Context::in_memory(Setup::new(built_in("s06").expect("a built-in recipe")));
//! context.user("What is in a.rs?")?;
//! context.assistant(&[Said::call("c1", "Read", r#"{"path":"a.rs"}"#)])?;
//! context.tool(&[Said::output("c1", "fn main() {}")])?;
//! assert_eq!(context.view()?.transcript().context().count(), 3);
//! # Ok::<(), epitome_error::Error>(())
//! ```
//!
//! # Absent
//!
//! Files, clocks, the network: a journal writes, and the caller asks models.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod context;
mod digest;
mod journal;
mod middle;
mod overflow;
pub mod stored;
mod summary;

pub use context::{
    Called, Content, Context, Hit, ListChange, Next, NotDone, Origin, Outcome, Outgoing,
    Preparation, Question, RECALL, Recalled, Recovery, Report, Said, Setup, Share, Speaker,
    WindowUse, compact_tool,
};
pub use epitome_passes::history;
pub use journal::Journal;
pub use middle::stored_middle_cut;
pub use overflow::{KnownBy, Overflow, overflow};
pub use summary::{
    StartedSummary, SummaryRequest, WINDOW, keeping, kept_end, says_more_than_a_summary,
};
