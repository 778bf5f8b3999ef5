//! Tasks: a call of `task` starts a sub-agent, which is a second machine within this one. It shares
//! the permissions and the budget of this one, and its last answer is the result of the call.

use std::mem;

use epitome_engine::Context;
use epitome_error::Result;

use super::calls::OpenCall;
use super::{Action, Event, Input, Machine, State, TurnEnd};
use crate::tools::{ASK, TASK, task};

impl Machine {
    /// The context of the sub-agent that a call of `task` started. `None` if no sub-agent works for
    /// that call.
    pub fn task_context(&self, call: &str) -> Option<&Context> {
        let State::Calling(calls) = &self.state else { return None };
        let call = calls.iter().find(|it| &*it.called.id == call)?;
        call.task.as_ref().map(|task| &task.context)
    }

    /// The error for a call of a tool that sub-agents do not have: they cannot ask the user, and
    /// cannot start sub-agents. `None` for other tools, and if this machine is not a sub-agent.
    pub(super) fn missing_in_task(&self, tool: &str) -> Option<String> {
        let is_missing = self.is_task && [TASK, ASK].contains(&tool);
        is_missing.then(|| format!("there is no tool `{tool}` in a task"))
    }

    /// Starts the sub-agent of a call with this context. The call fails if there is no context, or
    /// if the arguments of the call are invalid.
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

    /// Passes an input to a sub-agent. If the sub-agent has ended, only the cost of a response or a
    /// summary is counted.
    pub(super) fn in_task(&mut self, id: &str, input: Input) -> Result<()> {
        if self.task_context(id).is_none() {
            // A response that arrives after an interruption still has a cost.
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

    /// Judges again all calls of sub-agents that wait for the user.
    pub(super) fn judge_tasks_again(&mut self) -> Result<()> {
        let State::Calling(calls) = &self.state else { return Ok(()) };
        let tasks = calls.iter().filter(|call| call.task.is_some());
        let ids: Vec<Box<str>> = tasks.map(|call| call.called.id.clone()).collect();
        ids.iter().try_for_each(|id| self.with_task(id, Machine::judge_again))
    }

    /// Runs `act` on a sub-agent, with the permissions and the budget of this machine. If its turn
    /// ends, the answer becomes the result of the call. Without an answer, the call fails with the
    /// reason.
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

    /// Interrupts the sub-agent of a call.
    pub(super) fn interrupt_task(&mut self, call: &mut OpenCall) -> Result<()> {
        let Some(mut task) = call.task.take() else { return Ok(()) };
        self.act_as(&call.called.id, &mut task, |task| task.take(Input::Cancel))?;
        Ok(())
    }

    /// Runs `act` on a sub-agent, and passes its actions on. If its turn ended, returns how it
    /// ended, the reason, and the last answer.
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
                // Ignored: a sub-agent is only stopped together with this machine.
                Action::Stop => {}
                action => self.actions.push(Action::Task(id.into(), Box::new(action))),
            }
        }
        Ok(done)
    }

    /// Swaps the permissions and the cost with those of a sub-agent. Called before the sub-agent
    /// acts, and again afterwards, so that both machines use the same ones.
    fn share_with(&mut self, task: &mut Machine) {
        mem::swap(&mut self.permissions, &mut task.permissions);
        mem::swap(&mut self.cost, &mut task.cost);
    }
}
