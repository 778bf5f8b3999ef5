//! Slash commands: `/compact`, `/undo`, `/context` and others.

use std::path::PathBuf;

use epitome_error::Result;
use epitome_model::MicroDollars;

use super::{Action, Event, Machine};
use crate::notices::losses;

/// A change that the machine cannot make itself, because it has no settings, keys or files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutsideChange {
    /// Use another recipe for the same log; `None` lists the recipes.
    Recipe(Option<String>),
    /// Use another model; `None` shows the current one.
    Model(Option<String>),
    /// Resume another session; `None` lists the sessions.
    Resume(Option<String>),
    /// Export the session to a new file; `None` names it after the session.
    Export(Option<PathBuf>),
}

impl OutsideChange {
    /// Whether the machine must be idle for the change.
    fn needs_rest(&self) -> bool {
        match self {
            OutsideChange::Recipe(name)
            | OutsideChange::Model(name)
            | OutsideChange::Resume(name) => name.is_some(),
            OutsideChange::Export(_) => false,
        }
    }
}

impl Machine {
    pub(super) fn compact(&mut self, focus: Option<String>) -> Result<()> {
        self.compaction = Some(focus);
        if self.is_idle() { self.advance() } else { Ok(()) }
    }

    pub(super) fn undo(&mut self) -> Result<()> {
        if !self.rests() {
            return Ok(());
        }
        let before = self.context.usage().tokens;
        if self.context.undo()? {
            let after = self.context.usage().tokens;
            self.show(Event::Undone { before, after });
            self.show_compactions();
            if self.context.is_due() {
                self.notice("the context is compacted again before the next request");
            }
        } else {
            self.notice("there is no compaction to take back");
        }
        self.show_usage();
        Ok(())
    }

    pub(super) fn show_window(&mut self) {
        let usage = self.context.usage();
        let contents = self.context.contents();
        self.show(Event::Window { usage, contents, window: self.context.window() });
    }

    pub(super) fn show_losses(&mut self) {
        let lines = losses(&self.context);
        self.show(Event::Losses { lines });
    }

    pub(super) fn change_budget(&mut self, budget: Option<MicroDollars>) {
        let spent = self.cost.cost;
        match budget {
            Some(budget) => {
                self.limits.budget = Some(budget);
                self.notice(&format!(
                    "no request is sent once {budget} are spent ({spent} so far)"
                ));
            }
            None => match self.limits.budget {
                Some(budget) => self.notice(&format!("{spent} of {budget} are spent")),
                None => self.notice(&format!("{spent} are spent, and there is no budget")),
            },
        }
    }

    pub(super) fn change(&mut self, change: OutsideChange) {
        if !change.needs_rest() || self.rests() {
            self.actions.push(Action::Change(change));
        }
    }

    /// Interrupts everything in progress, and notes that the user has left.
    pub(super) fn leave(&mut self) -> Result<()> {
        self.cancel()?;
        self.has_left = true;
        Ok(())
    }

    /// Whether the machine is idle. If the machine is busy, shows a notice that says so.
    fn rests(&mut self) -> bool {
        let rests = self.is_idle();
        if !rests {
            self.notice("not while the model works: press Esc first");
        }
        rests
    }
}
