//! A session for another agent: what every target makes its records of.
//!
//! What the targets take, and what stays behind, is in `docs/port.md`.

mod deed;
mod said;

pub use deed::{Deed, Reach, object};
pub use said::{Answer, Called, Said, said};

/// What a session is given that does not come from another.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// Its id, a UUID.
    pub id: &'a str,
    /// The folder it is to be run in.
    pub cwd: &'a str,
    /// The time, in UTC with milliseconds: `2026-11-21T12:00:00.000Z`.
    pub time: &'a str,
    /// The same in milliseconds since 1970.
    pub millis: i64,
}

/// What stands for a failure that says nothing: Anthropic's wire refuses one without words.
pub const NOTHING: &str = "[no output]";
