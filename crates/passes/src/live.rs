//! A context while it is in use: in which steps it is made small, and what is reported of it.

mod event;
mod machine;

pub use event::{Event, EventReason, Missed};
pub use machine::{Machine, NextStep};
