//! What was promised and does not hold.

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// How bad it is.
    pub kind: Kind,
    /// What happened.
    pub what: String,
}

/// How bad a violation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Bytes that cannot be had back with the commands that are documented.
    Lost,
    /// A wrong result, status or message.
    Wrong,
    /// A panic, a crash, or no end within the deadline.
    Crash,
    /// Temporary files that stay after `archive gc`.
    Left,
}
