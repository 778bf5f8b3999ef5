//! A session for another agent: what every target makes its records of.
//!
//! What the targets take, and what stays behind, is in `docs/port.md`.

mod deed;
mod said;

pub use deed::{Deed, Reach, object};
pub use said::{Answer, Called, Said, said};

use epitome_model::Ref;

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

/// An id in the form of a UUID for `what` of a session or record, the same in every run.
pub fn uuid(of: &str, what: &str) -> String {
    let digits: String = (0..5)
        .map(|part| Ref::of(format!("{of} {what} {part}").as_bytes()).digits().to_owned())
        .collect();
    let part = |from: usize, len: usize| &digits[from..from + len];
    format!("{}-{}-4{}-a{}-{}", part(0, 8), part(8, 4), part(12, 3), part(15, 3), part(18, 12))
}
