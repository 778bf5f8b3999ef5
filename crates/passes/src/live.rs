//! Decides when a live context (that of a running agent) is compacted, and reports events.

mod event;
mod machine;

pub use event::{Event, EventReason, TargetExcess};
pub use machine::{Machine, NextStep};
