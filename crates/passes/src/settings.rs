//! A pass with its settings, as a recipe lists it.

use serde::{Deserialize, Serialize};

use crate::Pass;
use crate::arguments::Arguments;
use crate::copies::Copies;
use crate::images::Images;
use crate::repeats::Repeats;
use crate::results::Results;
use crate::stale::Stale;
use crate::thinking::Thinking;

/// A pass and its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "pass", rename_all = "lowercase", expecting = "a table with `pass`")]
pub enum PassSettings {
    /// Replaces the results of reads that a later read or change makes stale.
    Stale(Stale),
    /// Removes texts of calls and results that a later reply of the same turn repeats.
    Repeats(Repeats),
    /// Shortens results.
    Results(Results),
    /// Shortens arguments.
    Arguments(Arguments),
    /// Replaces pictures.
    Images(Images),
    /// Removes reasoning.
    Thinking(Thinking),
    /// Removes hidden fields, which no model sees, and results that repeat earlier ones.
    Copies(Copies),
}

impl PassSettings {
    /// The pass with these settings.
    pub fn pass(&self) -> &dyn Pass {
        match self {
            PassSettings::Stale(pass) => pass,
            PassSettings::Repeats(pass) => pass,
            PassSettings::Results(pass) => pass,
            PassSettings::Arguments(pass) => pass,
            PassSettings::Images(pass) => pass,
            PassSettings::Thinking(pass) => pass,
            PassSettings::Copies(pass) => pass,
        }
    }

    /// The number of characters that a context must exceed before the pass begins. `None` if the
    /// settings of the pass have no such number.
    pub(crate) fn over_chars(&self) -> Option<u64> {
        match self {
            PassSettings::Results(pass) => pass.over_chars,
            PassSettings::Stale(_)
            | PassSettings::Repeats(_)
            | PassSettings::Arguments(_)
            | PassSettings::Images(_)
            | PassSettings::Thinking(_)
            | PassSettings::Copies(_) => None,
        }
    }
}
