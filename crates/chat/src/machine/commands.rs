//! What the user asks for that is no message: `/compact`, `/undo`, `/context` and the like.

use std::path::PathBuf;

use epitome_error::Result;
use epitome_model::MicroDollars;

use super::{Action, Event, Machine};
use crate::notices::losses;

/// Something to change that the machine knows nothing of: settings, keys and files are outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutsideChange {
    /// Another recipe for the same log, or which there are.
    Recipe(Option<String>),
    /// Another model, or which it is.
    Model(Option<String>),
    /// Another session, or which there are.
    Resume(Option<String>),
    /// The session as a new file, which is named by the session if no name is given.
    Export(Option<PathBuf>),
}

impl OutsideChange {
    /// Whether nothing may be under way.
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
        let (usage, contents) = (self.context.usage(), self.context.contents());
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

    /// Interrupts what is under way; nothing is to happen from now on.
    pub(super) fn leave(&mut self) -> Result<()> {
        self.cancel()?;
        self.has_left = true;
        Ok(())
    }

    /// Whether nothing is under way; says so otherwise.
    fn rests(&mut self) -> bool {
        let rests = self.is_idle();
        if !rests {
            self.notice("not while the model works: press Esc first");
        }
        rests
    }
}
