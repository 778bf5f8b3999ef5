//! Ports a session to another agent: the code that all target agents share.
//!
//! `docs/port.md` describes what each target accepts, and what is lost.

mod action;
mod message;

pub use action::{Reach, ToolAction, object};
pub use message::{Message, PortedCall, PortedResult, messages};

use epitome_model::Ref;

/// The values of the new session that do not come from the old one.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// The id of the new session, a UUID.
    pub id: &'a str,
    /// The working directory of the new session.
    pub cwd: &'a str,
    /// The time, in UTC with milliseconds: `2026-11-21T12:00:00.000Z`.
    pub time: &'a str,
    /// The same time in milliseconds since 1970.
    pub millis: i64,
}

/// The text of a failed result without text: Anthropic's API refuses an empty one.
pub const NOTHING: &str = "[no output]";

/// An id in the form of a UUID, derived from `of` and `what`: the same in every run.
pub fn uuid(of: &str, what: &str) -> String {
    let digits: String = (0..5)
        .map(|part| Ref::from_bytes(format!("{of} {what} {part}").as_bytes()).digits().to_owned())
        .collect();
    let part = |from: usize, len: usize| &digits[from..from + len];
    format!("{}-{}-4{}-a{}-{}", part(0, 8), part(8, 4), part(12, 3), part(15, 3), part(18, 12))
}
