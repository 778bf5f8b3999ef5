//! What must hold of a transcript, and what is said when it does not.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

use crate::{Source, Transcript};

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Law {
    /// Every result has its call, every call its result, each once.
    Pairing,
    /// A result stands after its call and before the next words of the user.
    Position,
    /// Reasoning is as it was, or gone.
    Reasoning,
    /// The words of the user are as they were.
    UserWords,
    /// No text is empty where the wire refuses empty text.
    Empty,
    /// An edited record is still a record of its format.
    Shape,
    /// The entries are those that were there, in the same tree.
    Tree,
    /// No edited block grew.
    Growth,
    /// Everybody says what is theirs to say, and the right one begins.
    Roles,
    /// What a provider made and seals is whole, and stands where it wants it.
    Opaque,
    /// Cache markers are as few and in such places as a provider takes.
    Cache,
    /// No keys that a wire does not know.
    Keys,
    /// It is as small as a provider wants it.
    Limits,
    /// What other programs read from a record (what a request cost, when and where it was made) is
    /// as it was.
    Accounting,
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Law::Pairing => "pairing",
            Law::Position => "position",
            Law::Reasoning => "reasoning",
            Law::UserWords => "user words",
            Law::Empty => "empty text",
            Law::Shape => "shape",
            Law::Tree => "tree",
            Law::Growth => "growth",
            Law::Roles => "roles",
            Law::Opaque => "provider's items",
            Law::Cache => "cache markers",
            Law::Keys => "unknown keys",
            Law::Limits => "limits",
            Law::Accounting => "accounting",
        })
    }
}

/// A law that does not hold, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Breach {
    /// Which.
    pub law: Law,
    /// The line of the record, from 1.
    pub line: u64,
    /// What is wrong, in a few words.
    pub what: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {} ({})", self.line, self.what, self.law)
    }
}

/// The laws of one format: what its agent and the wire behind it refuse.
pub trait Laws: Sync {
    /// Every law that does not hold in what a resume would send.
    fn check(&self, transcript: &Transcript, source: &dyn Source) -> Vec<Breach>;

    /// The values of a record that no edit may touch, because other programs read them: tokens and
    /// costs, ids, times, models, and where the session was run. Each is a range of `record`, in
    /// the order of the record.
    ///
    /// A format that is never written has none.
    fn accounting(&self, record: &[u8]) -> Vec<Range<usize>> {
        let _ = record;
        Vec::new()
    }
}
