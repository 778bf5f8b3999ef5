//! Background compactions: prepared while the model answers, and usually put into the context where
//! the next turn begins.
//!
//! If the preparation is still being computed then, the machine waits: that takes milliseconds, and
//! so the context does not depend on the speed of the computer. If a model is still writing a
//! summary, the machine waits only if a compaction is due: otherwise it would ask for the same
//! summary again.
//!
//! If a compaction is due within a turn, the machine uses a prepared one only if a model was asked
//! for it. Any other is discarded, because making a new one is cheap, and the new one covers all
//! messages so far.

use epitome_engine::Preparation;
use epitome_error::Result;
use epitome_passes::{NoReply, Reply};

use super::{Action, Machine, State};

/// A compaction in the background.
pub(super) enum Background {
    /// The compaction with this number is being prepared.
    Working(u64),
    /// The compaction waits for a summary by a model, which was requested with this number.
    Asking(u64, Box<Preparation>),
    /// The compaction is ready to be put into the context.
    Done(Box<Preparation>),
}

impl Machine {
    /// Starts a background compaction, if one should be prepared.
    pub(super) fn prepare(&mut self) {
        if self.background.is_none()
            && let Some(prepared) = self.context.prepare()
        {
            self.work(Box::new(prepared));
        }
    }

    fn work(&mut self, prepared: Box<Preparation>) {
        self.requests += 1;
        self.background = Some(Background::Working(self.requests));
        self.actions.push(Action::Prepare(self.requests, prepared));
    }

    /// Handles the end of a preparation. `prepared` is `None` after a panic.
    pub(super) fn prepared(&mut self, n: u64, prepared: Option<Box<Preparation>>) -> Result<()> {
        if !matches!(self.background, Some(Background::Working(open)) if open == n) {
            return Ok(());
        }
        let question = prepared.as_ref().and_then(|prepared| prepared.question());
        self.background = match (question.map(|question| question.ask.clone()), prepared) {
            (None, prepared) => prepared.map(Background::Done),
            (Some(ask), Some(mut prepared)) => match self.over_budget() {
                Some(over) => {
                    prepared.answer(Err(NoReply::Failed(over)));
                    self.work(prepared);
                    return Ok(());
                }
                None => {
                    self.requests += 1;
                    self.actions.push(Action::Ask(self.requests, ask));
                    Some(Background::Asking(self.requests, prepared))
                }
            },
            (Some(_), None) => None,
        };
        self.go_on_waiting()
    }

    /// Handles the answer to a summary question, if the background compaction asked that question.
    pub(super) fn answer_in_background(
        &mut self,
        request: u64,
        reply: std::result::Result<Reply, NoReply>,
    ) {
        match self.background.take() {
            Some(Background::Asking(open, mut prepared)) if open == request => {
                prepared.answer(reply);
                self.work(prepared);
            }
            other => self.background = other,
        }
    }

    fn go_on_waiting(&mut self) -> Result<()> {
        let State::Waiting { begins_turn } = self.state else { return Ok(()) };
        self.state = State::Idle;
        self.advance_from(begins_turn)
    }

    /// Uses the background compaction if a turn begins or a compaction is due; otherwise does
    /// nothing. Returns whether the machine must wait for an unfinished one. A finished one is put
    /// into the context if a turn begins or if a model was asked for a summary; otherwise it is
    /// discarded.
    pub(super) fn swap(&mut self, begins_turn: bool) -> Result<bool> {
        let is_due = self.context.is_due();
        if !is_due && !begins_turn {
            return Ok(false);
        }
        match self.background.take() {
            None => Ok(false),
            Some(Background::Done(prepared)) => {
                if begins_turn || prepared.has_asked() {
                    self.context.swap(*prepared)?;
                }
                Ok(false)
            }
            Some(under_way) => {
                let waits = is_due || matches!(under_way, Background::Working(_));
                self.background = Some(under_way);
                Ok(waits)
            }
        }
    }
}
