//! The engine inside an agent's loop: what was said goes in, what to send comes out.
//!
//! A [`Context`] holds every message in a log and decides before each request what is sent: it
//! shortens results on their way in, runs the passes of a recipe when a trigger says so, asks for a
//! summary, and answers a provider's refusal of a request that is too long. It is pure but for its
//! [`Journal`], which keeps the log.
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
