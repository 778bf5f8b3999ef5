//! Decides when to compact a context in use, and reports events.

mod event;
mod machine;

pub use event::{Event, EventReason, Missed};
pub use machine::{Machine, NextStep};
