//! Facts: the strings of a session that a model cannot guess and has to take from its context.
//!
//! A fact is a URL, a path or the end of one, a line of a file, an identifier, a name with hyphens,
//! a hash or a number. Plain words are none. Texts are scanned once, without a regular expression;
//! a fact is a slice of its text.
//!
//! The kinds and their limits are those by which the quality of compactions is measured
//! (`docs/quality.md`): what a compaction keeps and what its report says is lost are counted alike.

mod scan;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

pub use scan::{FactKind, each_fact};

/// A fact without its text: equal facts are equal, and two different ones are not but for one
/// chance in 2⁶⁴. Its value says nothing and is never written.
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

/// The facts of a text with their kinds, each once, in the order in which they come first.
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

/// What is used of earlier facts after some place in a session: a fact is used there if the model
/// writes it before any other text brings it back.
#[derive(Debug, Default)]
pub struct FactUses {
    seen: FactMap<()>,
}

impl FactUses {
    /// Takes a text that the model wrote, and reports the facts that it uses if they are known from
    /// before.
    pub fn write(&mut self, text: &str, mut used: impl FnMut(FactId, FactKind, &str)) {
        each_fact(text, |kind, fact| {
            let id = FactId::from_text(fact);
            if self.seen.insert(id, ()).is_none() {
                used(id, kind, fact);
            }
        });
    }

    /// Takes the facts of a text that the model reads: they are brought back.
    pub fn bring_back(&mut self, facts: impl IntoIterator<Item = FactId>) {
        self.seen.extend(facts.into_iter().map(|id| (id, ())));
    }
}

/// A map from facts.
pub type FactMap<T> = HashMap<FactId, T, BuildHasherDefault<IdHasher>>;

/// Hashes what is a hash already.
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
