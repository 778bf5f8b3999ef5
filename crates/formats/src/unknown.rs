//! Reports kinds that a reader does not know: those of a newer version of an agent.

use std::collections::HashSet;

use epitome_model::{Fault, Faults, short};

/// Maximum length of a kind's name in characters.
const NAME: usize = 40;
/// Maximum number of kinds that are reported per session. A file with more unknown kinds is
/// probably not a session of this agent.
const MOST: usize = 64;

/// The kinds that were reported. Each kind is reported once, for the line where it first occurs.
#[derive(Debug, Default)]
pub struct Unknown(HashSet<(&'static str, String)>);

impl Unknown {
    /// Reports a kind that is not in `known`. An empty kind is not reported. `what` describes the
    /// kind, with its article.
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
        // The name comes from the file, and is shown in a terminal.
        let plain = kind.chars().map(|c| if c.is_ascii_graphic() && c != '`' { c } else { '?' });
        let name = short(&plain.collect::<String>(), NAME);
        if self.0.insert((what, name.clone())) {
            faults.report(Fault { line, what: format!("{what} that is not known: {name}") });
        }
    }
}
