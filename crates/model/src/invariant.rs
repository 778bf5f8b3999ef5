//! Properties that a transcript must have, and how a violation is reported.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

use crate::{Source, Transcript};

/// A property that a compaction must not violate. A session that violates it already may be
/// compacted: only new violations count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Invariant {
    /// Every result has a call and every call has a result, each exactly once.
    Pairing,
    /// Calls, results and texts are in the order that the agent or the API requires.
    Position,
    /// Reasoning is unchanged or removed, and is where the API requires it.
    Reasoning,
    /// The text of the user is unchanged.
    UserWords,
    /// No text or message is empty where the API refuses that.
    Empty,
    /// An edited record is still a record of its format.
    Shape,
    /// Apart from the edits, the session has the same entries in the same order.
    Tree,
    /// No edited block grew.
    Growth,
    /// Each entry has a role that its content allows, and the first role is allowed.
    Roles,
    /// What a provider made and signed is complete, and is where the provider requires it.
    Opaque,
    /// There are no more cache markers than the provider accepts, and only at places it accepts.
    Cache,
    /// There are no keys that the API does not know.
    Keys,
    /// Sizes are within the provider's limits.
    Limits,
    /// What other programs read from a record (cost, time, working directory) is unchanged.
    Accounting,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Invariant::Pairing => "pairing",
            Invariant::Position => "position",
            Invariant::Reasoning => "reasoning",
            Invariant::UserWords => "user words",
            Invariant::Empty => "empty text",
            Invariant::Shape => "shape",
            Invariant::Tree => "tree",
            Invariant::Growth => "growth",
            Invariant::Roles => "roles",
            Invariant::Opaque => "provider's items",
            Invariant::Cache => "cache markers",
            Invariant::Keys => "unknown keys",
            Invariant::Limits => "limits",
            Invariant::Accounting => "accounting",
        })
    }
}

/// A violated invariant, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Violation {
    /// The invariant that is violated. Its key in JSON output is an older name.
    #[serde(rename = "law")]
    pub invariant: Invariant,
    /// The line of the record, from 1.
    pub line: u64,
    /// A short description of what is wrong.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {} ({})", self.line, self.what, self.invariant)
    }
}

/// The invariants of one format: what its agent, or the API that the agent calls, requires.
pub trait Invariants: Sync {
    /// Returns every violation in what a resume would send.
    fn check(&self, transcript: &Transcript, source: &dyn Source) -> Vec<Violation>;

    /// The values of a record that no edit may change, because other programs read them, for
    /// example tokens, costs and times. Each is a range of `record`, in the order of the record.
    ///
    /// The default implementation returns none.
    fn accounting(&self, record: &[u8]) -> Vec<Range<usize>> {
        let _ = record;
        Vec::new()
    }
}
