//! The two kinds of contexts, stored and live, and settings for each.

use serde::{Deserialize, Serialize};

/// The kind of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextKind {
    /// The context of a stored session: what a resume would send.
    Stored,
    /// A live context, that of a running agent.
    Live,
}

/// A value for each kind of context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(bound = "T: Default + Serialize + schemars::JsonSchema"))]
#[serde(deny_unknown_fields, default, expecting = "a table with `stored` and `live`")]
pub struct PerKind<T> {
    /// The value for stored sessions.
    pub stored: T,
    /// The value for live contexts.
    pub live: T,
}

impl<T> PerKind<T> {
    /// The value for one kind.
    pub fn value_for(&self, kind: ContextKind) -> &T {
        match kind {
            ContextKind::Stored => &self.stored,
            ContextKind::Live => &self.live,
        }
    }

    /// Both values.
    pub fn both_mut(&mut self) -> [&mut T; 2] {
        [&mut self.stored, &mut self.live]
    }
}

impl<T: Clone> PerKind<T> {
    /// The same value for both kinds.
    pub fn for_both(value: T) -> PerKind<T> {
        PerKind { stored: value.clone(), live: value }
    }
}
