//! Carries out plans, which change what is sent. Every plan is verified here before its line is
//! written to the journal.

use std::collections::HashSet;

use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::epitome::{Batch, FORMAT, batch, continuing};
use epitome_model::{
    Counter, Cut, Edit, Invariants, Source, Summary, Transcript, Verb, Violation, WriteMode,
};
use epitome_passes::{Plan, PlannedEdit, Side, verify};

use super::Context;
use super::excerpt::{Excerpt, difference};
use super::log::Trial;

/// A step of a compaction that is prepared on a copy.
#[derive(Clone, Debug)]
pub(super) enum PreparedStep {
    /// Carries out a plan. `recipe` is the name of the recipe whose passes made the plan; `None`
    /// for a summary, a digest or a cut. `continues` is whether an undo takes this step back
    /// together with the step before it.
    Apply { plan: Box<Plan>, recipe: Option<String>, continues: bool },
    /// Takes back the last step.
    TakeBack,
}

impl Context {
    /// Carries out a plan as a step of the current attempt. The journal is flushed first: no text
    /// leaves the context before it is on disk. `recipe` is the name of the recipe whose passes
    /// made the plan; `None` for a summary, a digest or a cut.
    ///
    /// # Errors
    ///
    /// `Refused`, with the reason why an edit cannot be written, or with the first new violation;
    /// `Disk` if the log cannot be written. The log is then unchanged.
    pub(super) fn apply(&mut self, mut plan: Plan, recipe: Option<&str>) -> Result<()> {
        let line = self.line_of(&plan, Batch::Compaction(recipe))?;
        let line = if self.attempt.has_begun { continuing(line) } else { line };
        self.log.flush()?;
        self.add_line(&line, &mut plan)?;
        if let Some(steps) = &mut self.attempt.steps {
            let recipe = recipe.map(str::to_owned);
            let continues = self.attempt.has_begun;
            steps.push(PreparedStep::Apply { plan: Box::new(plan), recipe, continues });
        }
        self.attempt.has_begun = true;
        self.recount();
        Ok(())
    }

    /// Returns the log line that carries out a plan.
    ///
    /// # Errors
    ///
    /// `Refused`, with the reason, if an edit cannot be written.
    pub(super) fn line_of(&self, plan: &Plan, what: Batch<'_>) -> Result<Vec<u8>> {
        let transcript = self.log.parsed().transcript();
        let source = self.log.bytes();
        batch(transcript, source, &plan.edits(), what)
            .map_err(|err| Error::new(ErrorKind::Refused, err.why))
    }

    /// Adds a line that carries out a plan, unless the changed context would violate an invariant
    /// of sessions in epitome's own format. The caller must count the context again.
    ///
    /// # Errors
    ///
    /// `Refused` with the first new violation; `Disk` if the line cannot be written. The log is
    /// then unchanged.
    pub(super) fn add_line(&mut self, line: &[u8], plan: &mut Plan) -> Result<()> {
        // `verify` needs the tokens of the blocks of the edited items, which were counted when the
        // items were added.
        let items: Vec<usize> = plan.block_edits().map(|it| it.edit.at.item()).collect();
        for item in items {
            let blocks = self.counts.items().get(item).into_iter().flatten().enumerate();
            plan.counted.extend(blocks.map(|(block, tokens)| ((item, block), *tokens)));
        }
        let trial = self.log.try_line(line);
        let changed = Changed { transcript: self.transcript(), trial: &trial };
        let source = self.log.bytes();
        let violations = changed.violations(plan, source, FORMAT.invariants, &*self.setup.counter);
        match violations.first() {
            None => self.log.keep(trial),
            Some(first) => {
                // The caller does not know the lines of the log, so the violation's line number is
                // left out.
                let what = format!("{} ({})", first.what, first.invariant);
                self.log.discard(trial);
                Err(Error::new(ErrorKind::Refused, what))
            }
        }
    }
}

/// A log with a new last line that carries out a plan and must be verified. The line only adds
/// items; existing items do not change.
struct Changed<'l> {
    transcript: &'l Transcript,
    trial: &'l Trial,
}

impl Changed<'_> {
    /// The invariants that the line violates. If the plan only edits blocks, which moves no calls
    /// and results, only the part of the context that the line changes is checked; otherwise the
    /// whole context is.
    fn violations(
        &self,
        plan: &Plan,
        source: &dyn Source,
        invariants: &dyn Invariants,
        counter: &dyn Counter,
    ) -> Vec<Violation> {
        let old = self.trial.sent();
        let new = &*self.transcript.context;
        let items = plan.block_edits().map(|planned| planned.edit.at.item());
        let edited: HashSet<usize> = items.collect();
        let (was, is) = if plan.block_edits().count() == plan.edits.len() {
            let (was, is) = difference(old, new, &edited);
            (&old[was], &new[is])
        } else {
            (old, new)
        };
        let mut items = [was, is].concat();
        let after = Excerpt::new(self.transcript, items.clone(), is);
        items.retain(|&item| item < self.trial.items());
        let before = Excerpt::new(self.transcript, items, was);
        let plan = moved(plan, |item| before.place(item));
        let before = Side { transcript: before.transcript(), source };
        let after = Side { transcript: after.transcript(), source };
        verify(before, after, &plan, WriteMode::Append, invariants, counter)
    }
}

/// The edits and counts of a plan, with each item index `item` replaced by `place(item)`. If
/// `place` returns `None` for an item, the edits and counts of this item are left out.
pub(super) fn moved(plan: &Plan, place: impl Fn(usize) -> Option<usize>) -> Plan {
    let edits = plan.edits.iter().filter_map(|PlannedEdit { edit, tokens }| {
        let at = edit.at.with_item(place(edit.at.item())?);
        let verb = match &edit.verb {
            Verb::Replace(_) | Verb::Drop => edit.verb.clone(),
            Verb::Cut(cut) => {
                let items = cut.items.iter().filter_map(|&item| place(item)).collect();
                Verb::Cut(Cut { items, ..cut.clone() })
            }
            Verb::Summarise(summary) => {
                let kept = summary.kept.iter().filter_map(|&item| place(item)).collect();
                Verb::Summarise(Summary { kept, ..summary.clone() })
            }
        };
        Some(PlannedEdit { edit: Edit { at, verb, pass: edit.pass }, tokens: *tokens })
    });
    let counted = plan.counted.iter();
    let counted =
        counted.filter_map(|(&(item, block), tokens)| Some(((place(item)?, block), *tokens)));
    Plan { edits: edits.collect(), counted: counted.collect(), ..Plan::default() }
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
