//! Sends requests, and handles their answers and failures.

use epitome_passes::Reply;
use std::mem;

use epitome_engine::{MessagePart, Next, Recovery};
use epitome_error::Result;
use epitome_llm::{Failure, Response};
use epitome_model::StopReason;
use epitome_passes::NoReply;

use super::{Action, CONTINUATIONS, Event, GO_ON, Machine, State, TurnEnd};

impl Machine {
    pub(super) fn send(&mut self) -> Result<()> {
        self.requests += 1;
        if let Some(recovery) = self.recovery.take()
            && let Recovery::Final { because } = self.context.recovery_result(recovery)
        {
            return self.too_long(&because);
        }
        self.state = State::Answering(self.requests, String::new());
        self.show_usage();
        let request = self.requests;
        self.prepare();
        self.actions.push(Action::Send(request));
        Ok(())
    }

    pub(super) fn response(&mut self, response: &Response) -> Result<()> {
        self.state = State::Idle;
        if response.entry.blocks.is_empty() {
            return match &response.stop {
                StopReason::Length => self.go_on(),
                StopReason::Refused => self.fail("the model declined to answer"),
                StopReason::End | StopReason::Call | StopReason::Other(_) => {
                    self.fail("the model returned an empty answer")
                }
            };
        }
        let called = self.context.push_response(response)?;
        self.add_to_answer(&response.text());
        if !called.is_empty() {
            self.continuations = 0;
            return self.call(called);
        }
        match &response.stop {
            StopReason::Length => self.go_on(),
            StopReason::Refused => self.fail("the model declined to answer"),
            StopReason::End | StopReason::Call | StopReason::Other(_) => {
                self.continuations = 0;
                self.end(TurnEnd::Answered, None)
            }
        }
    }

    /// Adds a text of the model to the answer that it continues. A text that continues none begins
    /// a new answer.
    fn add_to_answer(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.continuations == 0 {
            self.answer.clear();
        }
        self.answer.push_str(text);
    }

    /// Asks the model to continue its answer that was cut off. Ends the turn instead if the model
    /// was asked [`CONTINUATIONS`] times in a row.
    fn go_on(&mut self) -> Result<()> {
        if self.continuations == CONTINUATIONS {
            return self.fail("the answer was cut off at the limit of its length several times");
        }
        self.continuations += 1;
        self.context.user(GO_ON)?;
        self.advance()
    }

    pub(super) fn failed(&mut self, failure: Failure) -> Result<()> {
        let State::Answering(_, partial) = mem::replace(&mut self.state, State::Idle) else {
            return Ok(());
        };
        if !partial.is_empty() {
            self.show(Event::Restart);
        }
        if let Failure::TooLong { message, .. } = &failure {
            // Only the message of the service is passed on, because the engine searches it for
            // token counts. The text of the failure also has words of epitome.
            return self.refused(message);
        }
        self.fail(&failure.to_string())
    }

    /// Handles the refusal of a request as too long: makes the context smaller and sends the
    /// request again, or ends the turn if that is impossible.
    fn refused(&mut self, message: &str) -> Result<()> {
        self.background = None;
        let recovery = self.context.recover_from_refusal(Some(413), message)?;
        self.show_compactions();
        match recovery {
            Recovery::NotAnOverflow => self.fail(message),
            Recovery::Final { because } => self.too_long(&because),
            Recovery::Retry { .. } | Recovery::Summarise { .. } => {
                self.recovery = Some(recovery);
                self.advance()
            }
        }
    }

    fn too_long(&mut self, because: &[String]) -> Result<()> {
        let because = because.join("; ");
        self.fail(&format!("the context cannot be made to fit: {because}"))
    }

    fn fail(&mut self, reason: &str) -> Result<()> {
        self.end(TurnEnd::Failed, Some(reason.to_owned()))
    }

    /// Interrupts what is in progress. Keeps the model's text so far, and gives every open call a
    /// result. Does nothing if the machine is idle: a background compaction then goes on.
    pub(super) fn cancel(&mut self) -> Result<()> {
        if !self.is_idle() {
            self.background = None;
        }
        match mem::replace(&mut self.state, State::Idle) {
            State::Idle => return Ok(()),
            State::Waiting { .. } => {}
            State::Answering(_, partial) => {
                if !partial.trim().is_empty() {
                    self.context.assistant(&[MessagePart::text(&partial)])?;
                    self.add_to_answer(&partial);
                }
            }
            State::Summarising(_) => {
                self.context.answer(interrupted())?;
                // A waiting call of `compact` gets its result from `step`, which may ask for a
                // summary again.
                while let Next::Ask(_) = self.context.step()? {
                    self.context.answer(interrupted())?;
                }
                self.show_compactions();
                self.close_compact_calls();
            }
            State::Calling(calls) => self.interrupt(calls)?,
        }
        self.actions.push(Action::Stop);
        self.end(TurnEnd::Interrupted, Some("interrupted".to_owned()))
    }
}

fn interrupted() -> std::result::Result<Reply, NoReply> {
    Err(NoReply::Failed("interrupted".to_owned()))
}
