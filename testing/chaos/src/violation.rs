//! Violations of promises.

/// A promise that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// How severe the violation is.
    pub kind: Kind,
    /// What happened.
    pub what: String,
}

/// How severe a violation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Bytes that cannot be restored with the documented commands.
    Lost,
    /// A wrong result, status or message.
    Wrong,
    /// A panic, a crash, or no end within the deadline.
    Crash,
    /// Temporary files that remain after `archive gc`.
    Left,
}
