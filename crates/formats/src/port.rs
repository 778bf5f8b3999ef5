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
pub struct NewSessionValues<'a> {
    /// The id of the new session, a UUID.
    pub id: &'a str,
    /// The working directory of the new session.
    pub cwd: &'a str,
    /// The time of the new records, in UTC with milliseconds: `2026-11-21T12:00:00.000Z`.
    pub time: &'a str,
    /// The same time in milliseconds since 1970.
    pub millis: i64,
}

/// The text that is given to a failed result without text, because Anthropic's API refuses such a
/// result.
pub const NOTHING: &str = "[no output]";

/// An id in the form of a UUID, derived from `of` and `what`: the same in every run.
pub fn uuid(of: &str, what: &str) -> String {
    let digits: String = (0..5)
        .map(|part| Ref::from_bytes(format!("{of} {what} {part}").as_bytes()).digits().to_owned())
        .collect();
    format!(
        "{}-{}-4{}-a{}-{}",
        &digits[..8],
        &digits[8..12],
        &digits[12..15],
        &digits[15..18],
        &digits[18..30],
    )
}
