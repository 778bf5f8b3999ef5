//! Every change of what is sent goes through here: it is verified before it is written.

use std::collections::HashSet;

use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::named;
use epitome_model::{Counter, Edit, Invariants, Source, Transcript, Violation};
use epitome_passes::{Compaction, Cut, Plan, PlannedEdit, Side, verify};

use super::Context;
use super::excerpt::{Excerpt, difference};
use super::log::Trial;

impl Context {
    /// Adds a line that changes what is sent, if that violates no invariant: the same that a stored
    /// session is verified with. The caller recounts.
    ///
    /// # Errors
    ///
    /// `Refused`, which names the first new violation; `Disk` if the line cannot be written. The
    /// log is then what it was.
    pub(super) fn apply(&mut self, line: &[u8], plan: &Plan<'_>) -> Result<()> {
        let format = named("epitome").expect("our own format is one of them");
        let trial = self.log.try_line(line);
        let changed = Changed { transcript: self.transcript(), trial: &trial };
        let source = self.log.bytes();
        let violations = changed.violations(plan, source, format.invariants, &*self.counter);
        match violations.first() {
            None => self.log.keep(trial),
            Some(first) => {
                // The lines of the log say nothing to the caller.
                let what = format!("{} ({})", first.what, first.invariant);
                self.log.discard(trial);
                Err(Error::new(ErrorKind::Refused, what))
            }
        }
    }
}

/// A log with a line that is tried. Lines only add items: all others are what they were.
struct Changed<'l> {
    transcript: &'l Transcript,
    trial: &'l Trial,
}

impl Changed<'_> {
    /// The invariants that the line violates. Edits leave calls and results where they are, which
    /// is compared: nothing but the part of the context that has them all needs to be looked at.
    fn violations(
        &self,
        plan: &Plan<'_>,
        source: &dyn Source,
        invariants: &dyn Invariants,
        counter: &dyn Counter,
    ) -> Vec<Violation> {
        let (old, new) = (self.trial.sent(), &*self.transcript.context);
        let (was, is) = match plan {
            Plan::Edits(compaction, _) => {
                let items = compaction.edits.iter().map(|planned| planned.edit.at.item());
                let edited: HashSet<usize> = items.collect();
                let (was, is) = difference(old, new, &edited);
                (&old[was], &new[is])
            }
            Plan::Cut(_) | Plan::Summary { .. } => (old, new),
        };
        let mut items = [was, is].concat();
        let after = Excerpt::new(self.transcript, items.clone(), is);
        items.retain(|&item| item < self.trial.items());
        let before = Excerpt::new(self.transcript, items, was);
        let side = |excerpt| Side { transcript: Excerpt::transcript(excerpt), source };
        let check =
            |plan: &Plan<'_>| verify(side(&before), side(&after), plan, invariants, counter);
        match plan {
            Plan::Edits(compaction, mode) => {
                check(&Plan::Edits(&in_excerpt(compaction, &before), *mode))
            }
            Plan::Cut(cut) => {
                let items = before.places(&cut.items);
                check(&Plan::Cut(&Cut { items, ..Cut::clone(cut) }))
            }
            Plan::Summary { text, kept } => {
                check(&Plan::Summary { text, kept: &before.places(kept) })
            }
        }
    }
}

/// The edits of these items, as edits of the excerpt.
fn in_excerpt(compaction: &Compaction, excerpt: &Excerpt) -> Compaction {
    let moved = |planned: &PlannedEdit| {
        let at = planned.edit.at.with_item(excerpt.place(planned.edit.at.item())?);
        Some(PlannedEdit { edit: Edit { at, ..planned.edit.clone() }, ..planned.clone() })
    };
    let counted = compaction.counted.iter();
    let counted = counted
        .filter_map(|(&(item, block), tokens)| Some(((excerpt.place(item)?, block), *tokens)));
    Compaction {
        edits: compaction.edits.iter().filter_map(moved).collect(),
        counted: counted.collect(),
        ..Compaction::default()
    }
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
