//! What a reader says about kinds that it does not know: those of a newer version of an agent.

use std::collections::HashSet;

use epitome_model::short;

use crate::{Fault, Faults};

/// Characters of the name of a kind.
const NAME: usize = 40;
/// Kinds that are told of one session: what is made of nothing else is of another format.
const MOST: usize = 64;

/// Kinds that were told: each is told once, with the line where it stood first.
#[derive(Debug, Default)]
pub struct Unknown(HashSet<(&'static str, String)>);

impl Unknown {
    /// Tells a kind that is not among the `known`; `what` it is a kind of, with its article. No
    /// kind at all is not a new one.
    pub fn kind(
        &mut self,
        (line, what): (u64, &'static str),
        kind: &str,
        known: &[&str],
        faults: &mut dyn Faults,
    ) {
        if kind.is_empty() || known.contains(&kind) || self.0.len() == MOST {
            return;
        }
        // The name is whatever stands in the file, and is shown in a terminal.
        let plain = |c: char| if c.is_ascii_graphic() && c != '`' { c } else { '?' };
        let name = short(&kind.chars().map(plain).collect::<String>(), NAME);
        if self.0.insert((what, name.clone())) {
            faults.report(Fault { line, what: format!("{what} that is not known: {name}") });
        }
    }
}
