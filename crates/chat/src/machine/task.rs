//! Tasks: a call of `task` runs a second machine within this one. That machine shares the
//! permissions and the budget of this one, and its last answer is the result of the call.

use std::mem;

use epitome_engine::Context;
use epitome_error::Result;

use super::calls::OpenCall;
use super::{Action, Event, Input, Machine, State, TurnEnd};
use crate::tools::{ASK, TASK, task};

impl Machine {
    /// The context of the task that a call began, while it is running.
    pub fn task_context(&self, call: &str) -> Option<&Context> {
        let State::Calling(calls) = &self.state else { return None };
        let call = calls.iter().find(|it| &*it.called.id == call)?;
        call.task.as_ref().map(|task| &task.context)
    }

    /// The error for a call of a tool that a task does not have: no user can answer questions in a
    /// task, and tasks cannot be nested. `None` for other tools, and outside of a task.
    pub(super) fn missing_in_task(&self, tool: &str) -> Option<String> {
        let is_missing = self.is_task && [TASK, ASK].contains(&tool);
        is_missing.then(|| format!("there is no tool `{tool}` in a task"))
    }

    /// Starts the task of a call with this context. The call fails if there is no context, or if
    /// the arguments of the call are invalid.
    pub(super) fn begun(
        &mut self,
        id: &str,
        context: std::result::Result<Box<Context>, String>,
    ) -> Result<()> {
        let Some(call) = self.running(id).filter(|call| call.task.is_none()) else { return Ok(()) };
        let begun = context.and_then(|context| Ok((context, task(&call.called.arguments)?)));
        let (context, task) = match begun {
            Ok(begun) => begun,
            Err(why) => return self.ended(id, Err(why)),
        };
        let mut machine = Machine::new(*context, self.permissions.clone(), self.limits)?;
        machine.is_task = true;
        if let Some(call) = self.running(id) {
            call.task = Some(Box::new(machine));
        }
        self.in_task(id, Input::User(task.prompt))
    }

    /// Passes an input to a task. If the task is over, only the cost of an answer is counted.
    pub(super) fn in_task(&mut self, id: &str, input: Input) -> Result<()> {
        if self.task_context(id).is_none() {
            // An answer that arrives after the task was interrupted still has a cost.
            match input {
                Input::Response(_, response, cost) => self.spend(response.usage, cost),
                Input::Summary(_, reply, cost) => {
                    self.spend(reply.ok().and_then(|reply| reply.used), cost);
                }
                _ => {}
            }
            return Ok(());
        }
        let is_answer = matches!(input, Input::Permission(..));
        self.with_task(id, |task| task.take(input))?;
        if is_answer { self.judge_again() } else { Ok(()) }
    }

    /// Judges again all calls in tasks that wait for the user.
    pub(super) fn judge_tasks_again(&mut self) -> Result<()> {
        let State::Calling(calls) = &self.state else { return Ok(()) };
        let tasks = calls.iter().filter(|call| call.task.is_some());
        let ids: Vec<Box<str>> = tasks.map(|call| call.called.id.clone()).collect();
        ids.iter().try_for_each(|id| self.with_task(id, Machine::judge_again))
    }

    /// Runs `act` on a task, with the permissions and the budget of this machine. If the task ends,
    /// its answer, or the reason why there is none, becomes the result of the call.
    fn with_task(&mut self, id: &str, act: impl FnOnce(&mut Machine) -> Result<()>) -> Result<()> {
        let Some(mut task) = self.running(id).and_then(|call| call.task.take()) else {
            return Ok(());
        };
        let done = self.act_as(id, &mut task, act)?;
        let Some((ended, reason, answer)) = done else {
            if let Some(call) = self.running(id) {
                call.task = Some(task);
            }
            return Ok(());
        };
        let result = match ended {
            TurnEnd::Answered => Ok(answer),
            TurnEnd::Interrupted | TurnEnd::Failed | TurnEnd::Budget => {
                let reason = reason.unwrap_or_default();
                Err(format!("The task ended without an answer: {reason}"))
            }
        };
        self.ended(id, result)
    }

    /// Interrupts the task of a call.
    pub(super) fn interrupt_task(&mut self, call: &mut OpenCall) -> Result<()> {
        let Some(mut task) = call.task.take() else { return Ok(()) };
        self.act_as(&call.called.id, &mut task, |task| task.take(Input::Cancel))?;
        Ok(())
    }

    /// Runs `act` on a task, and takes over its actions. If the task ended, returns how it ended,
    /// the reason, and its last answer.
    fn act_as(
        &mut self,
        id: &str,
        task: &mut Machine,
        act: impl FnOnce(&mut Machine) -> Result<()>,
    ) -> Result<Option<(TurnEnd, Option<String>, String)>> {
        task.limits = self.limits;
        self.share_with(task);
        let acted = act(task);
        self.share_with(task);
        acted?;
        let mut done = None;
        for action in mem::take(&mut task.actions) {
            match action {
                Action::Show(event) => {
                    if let Event::Done { ended, reason, answer, .. } = &event {
                        done = Some((*ended, reason.clone(), answer.clone()));
                    }
                    self.show(Event::Task { id: id.to_owned(), inner: Box::new(event) });
                }
                // Ignored: a task is only stopped together with this machine.
                Action::Stop => {}
                action => self.actions.push(Action::Task(id.into(), Box::new(action))),
            }
        }
        Ok(done)
    }

    /// Swaps the permissions and the cost, which a task shares with this machine. Called before the
    /// task acts, and again afterwards.
    fn share_with(&mut self, task: &mut Machine) {
        mem::swap(&mut self.permissions, &mut task.permissions);
        mem::swap(&mut self.cost, &mut task.cost);
    }
}
