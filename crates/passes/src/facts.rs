//! Facts: the strings of a session that a model cannot guess and has to take from its context.
//!
//! A fact is a URL, a path or the end of one, a line of a file, an identifier, a name with hyphens,
//! a hash or a number; plain words are not. Texts are scanned once, without a regular expression,
//! and a fact is a slice of its text.
//!
//! The same kinds and limits are used to measure the quality of compactions (`docs/quality.md`),
//! and in the report of what a compaction lost.

mod scan;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

pub use scan::{FactKind, each_fact};

/// A hash of a fact. Two different facts have the same id with a probability of one in 2⁶⁴. Ids are
/// never stored, and their values have no meaning outside of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FactId(u64);

impl FactId {
    /// The id of a fact with this text.
    pub fn from_text(text: &str) -> FactId {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        FactId(hasher.finish())
    }
}

/// The distinct facts of a text with their kinds, in the order of first occurrence.
pub fn facts(text: &str) -> Vec<(FactId, FactKind)> {
    let mut found: Vec<(FactId, FactKind)> = Vec::new();
    each_fact(text, |kind, fact| {
        let id = FactId::from_text(fact);
        if !found.iter().any(|(known, _)| *known == id) {
            found.push((id, kind));
        }
    });
    found
}

/// Finds uses of earlier facts after a point in a session. The model uses a fact if the first text
/// after that point that contains the fact is one that the model wrote.
#[derive(Debug, Default)]
pub struct FactUses {
    seen: FactMap<()>,
}

impl FactUses {
    /// Reads a text that the model wrote. Calls `used` with each fact of this text that is in no
    /// text which was read or written before.
    pub fn write(&mut self, text: &str, mut used: impl FnMut(FactId, FactKind, &str)) {
        each_fact(text, |kind, fact| {
            let id = FactId::from_text(fact);
            if self.seen.insert(id, ()).is_none() {
                used(id, kind, fact);
            }
        });
    }

    /// Adds the facts of a text that the model reads. If the model writes one of these facts later,
    /// it may have taken the fact from this text. So this is no use of a fact of an earlier text.
    pub fn bring_back(&mut self, facts: impl IntoIterator<Item = FactId>) {
        self.seen.extend(facts.into_iter().map(|id| (id, ())));
    }
}

/// A map with facts as keys.
pub type FactMap<T> = HashMap<FactId, T, BuildHasherDefault<IdHasher>>;

/// A hasher for ids that are hashes themselves.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = id;
    }
}
