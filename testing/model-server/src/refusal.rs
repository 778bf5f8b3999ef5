//! What a history is refused with.

use std::fmt;

/// The reason for an answer 400, with the text of the real service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub String);

impl Refusal {
    /// A refusal as an `Err`, so that a check can return it directly.
    pub(crate) fn because(message: impl Into<String>) -> Result<(), Self> {
        Err(Self(message.into()))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}
