//! The result of a gate: each condition, and the figure that was measured.

use serde::{Serialize, Serializer};

/// Whether a figure must be at least or at most a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// `>=`.
    AtLeast,
    /// `<=`.
    AtMost,
}

/// A condition of a gate, and whether it is met.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateResult {
    /// The name of the figure, as in the JSON of a recipe.
    pub figure: &'static str,
    /// Whether `value` is the minimum or the maximum.
    pub bound: Bound,
    /// The value that the figure is compared with.
    pub value: f64,
    /// The figure; `null` if it was not measured.
    pub measured: Option<f64>,
    /// Whether the condition is met. A figure that was not measured meets no condition.
    pub passed: bool,
    /// The reason why the figure was not measured; `null` if it was measured.
    pub reason: Option<&'static str>,
}

impl GateResult {
    /// The condition: `recall>=0.9`.
    pub fn condition(&self) -> String {
        format!("{}{}{}", self.figure, self.bound.sign(), self.value)
    }

    /// The figure in words: `is 0.8812`, or why it was not measured.
    pub fn finding(&self) -> String {
        match (self.measured, self.reason) {
            (Some(measured), _) => format!("is {measured}"),
            (None, Some(reason)) => format!("was not measured: {reason}"),
            (None, None) => "was not measured".to_owned(),
        }
    }
}

impl Bound {
    /// The bound as it is written in a condition.
    pub fn sign(self) -> &'static str {
        match self {
            Bound::AtLeast => ">=",
            Bound::AtMost => "<=",
        }
    }
}

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.sign())
    }
}
