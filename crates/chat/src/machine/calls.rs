//! The calls of one answer: checking, permitting, running and closing them.

use epitome_engine::{Context, MessagePart, ResponseCall};
use epitome_error::Result;
use epitome_model::ToolKind;

use super::{Action, Event, Machine, State};
use crate::permissions::{Access, Answer, Verdict};
use crate::tools::{ASK, Question, RECALL, TASK, question};

/// The result of a call that the user interrupted while it was running.
pub const INTERRUPTED: &str = "Interrupted by the user before it ended. It may have had effects.";

/// The result of a call that did not run because the user interrupted first.
pub const NOT_RUN: &str = "Not run: the user interrupted.";

/// The result of a call that had no result when the program ended. The log does not say whether the
/// call ran, or still waited for the user's permission.
const KILLED: &str = "There is no result: the program ended first. If the call ran, it may have \
                      had effects.";

/// The maximum number of lines of a running call's output that are shown.
const SHOWN: usize = 40;

/// Why a question of the model has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// No user is present.
    Unattended,
    /// The user has seen the question, and does not answer it.
    Declined,
}

impl NoAnswer {
    /// The result of the call that asked the question.
    fn result(self) -> &'static str {
        match self {
            NoAnswer::Unattended => {
                "No user is present. Decide yourself, and say what you assumed."
            }
            NoAnswer::Declined => {
                "The user does not answer this. Decide yourself, and say what you assumed."
            }
        }
    }
}

/// A call of the last answer.
pub(super) struct OpenCall {
    pub(super) called: ResponseCall,
    access: Option<Access>,
    state: CallState,
    /// The end of the call's output so far.
    progress: String,
    /// The sub-agent, if this is a call of `task`. `None` before the sub-agent starts, and after it
    /// ends.
    pub(super) task: Option<Box<Machine>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    /// It is not known yet what the call would access.
    Checking,
    /// The user is asked whether the call may run.
    Asked,
    /// The call is a question to the user, who has not answered yet.
    Question,
    /// The call is running.
    Running,
    /// The call has its result.
    Done,
}

/// Adds results to the calls that had none when the program ended.
pub(super) fn close_open_calls(context: &mut Context) -> Result<()> {
    for (id, _) in context.open_calls() {
        context.tool(&[MessagePart::failure(&*id, KILLED)])?;
    }
    Ok(())
}

impl Machine {
    pub(super) fn call(&mut self, called: Vec<ResponseCall>) -> Result<()> {
        let mut open = Vec::new();
        let mut at_once = Vec::new();
        for called in called {
            let id = called.id.to_string();
            let tool = called.name.to_string();
            let arguments = called.arguments.clone();
            self.show(Event::Call { id, tool, arguments });
            // The engine gives results to calls of its own tool, `compact`, after all other calls
            // have theirs.
            if called.kind == ToolKind::Compact {
                self.compacts.push(called.id.clone());
                continue;
            }
            if let Some(why) = self.missing_in_task(&called.name) {
                at_once.push((called.id.clone(), Err(why)));
            } else if &*called.name == RECALL {
                let result = self.recall(&called.arguments);
                at_once.push((called.id.clone(), result));
            } else {
                self.actions.push(Action::Check(called.clone()));
            }
            let state = CallState::Checking;
            let access = None;
            let progress = String::new();
            let task = None;
            open.push(OpenCall { called, access, state, progress, task });
        }
        self.state = State::Calling(open);
        for (id, result) in at_once {
            self.ended(&id, result)?;
        }
        self.go_on_if_all_done()
    }

    pub(super) fn checked(
        &mut self,
        id: &str,
        access: std::result::Result<Access, String>,
    ) -> Result<()> {
        let Some(call) = self.find(id, CallState::Checking) else { return Ok(()) };
        match access {
            Ok(access) => {
                call.access = Some(access);
                self.judge(id)
            }
            Err(why) => self.ended(id, Err(why)),
        }
    }

    /// Begins a call that is permitted: runs it, asks the question of a call of `ask`, or starts
    /// the sub-agent of a call of `task`. Otherwise asks the user whether the call may run, or
    /// refuses it.
    fn judge(&mut self, id: &str) -> Result<()> {
        let State::Calling(calls) = &mut self.state else { return Ok(()) };
        let Some(call) = calls.iter_mut().find(|call| &*call.called.id == id) else {
            return Ok(());
        };
        let Some(access) = call.access.clone() else { return Ok(()) };
        match self.permissions.judge(&access) {
            Verdict::Allow if &*call.called.name == ASK => {
                call.state = CallState::Question;
                let called = call.called.clone();
                self.question(called)
            }
            Verdict::Allow if &*call.called.name == TASK => {
                call.state = CallState::Running;
                self.actions.push(Action::Begin(call.called.clone()));
                Ok(())
            }
            Verdict::Allow => {
                call.state = CallState::Running;
                self.actions.push(Action::Run(call.called.clone(), access));
                Ok(())
            }
            Verdict::Ask => {
                call.state = CallState::Asked;
                let called = call.called.clone();
                let about = access.to_string();
                let always = self.permissions.scope_of(&access);
                self.show(Event::Permission { id: id.to_owned(), about, always });
                self.actions.push(Action::Permit(called, access));
                Ok(())
            }
            Verdict::Deny(why) => self.ended(id, Err(why)),
        }
    }

    /// Asks the user the question of a call.
    fn question(&mut self, called: ResponseCall) -> Result<()> {
        let asked = match question(&called.arguments) {
            Ok(asked) => asked,
            Err(why) => return self.ended(&called.id, Err(why)),
        };
        let Question { question, choices } = asked.clone();
        self.show(Event::Question { id: called.id.to_string(), question, choices });
        self.actions.push(Action::Question(called, asked));
        Ok(())
    }

    /// Gives the user's answer as the result of the call that asked. Without an answer, the call
    /// fails.
    pub(super) fn user_answered(
        &mut self,
        id: &str,
        answer: std::result::Result<String, NoAnswer>,
    ) -> Result<()> {
        if self.find(id, CallState::Question).is_none() {
            return Ok(());
        }
        self.ended(id, answer.map_err(|why| why.result().to_owned()))
    }

    pub(super) fn answered(&mut self, id: &str, answer: Answer) -> Result<()> {
        let Some(call) = self.find(id, CallState::Asked) else { return Ok(()) };
        let Some(access) = call.access.clone() else { return Ok(()) };
        let verdict = self.permissions.answer(&access, answer);
        self.decided(id, verdict)?;
        self.judge_again()
    }

    /// Judges again all calls that wait for the user, also those of sub-agents, because one answer
    /// may apply to several.
    pub(super) fn judge_again(&mut self) -> Result<()> {
        let State::Calling(calls) = &self.state else { return Ok(()) };
        let waiting = calls.iter().filter(|call| call.state == CallState::Asked);
        let verdicts = waiting.filter_map(|call| {
            let verdict = self.permissions.judge(call.access.as_ref()?);
            Some((call.called.id.clone(), verdict))
        });
        let verdicts: Vec<(Box<str>, Verdict)> = verdicts.collect();
        for (id, verdict) in verdicts {
            self.decided(&id, verdict)?;
        }
        self.judge_tasks_again()
    }

    /// Runs or refuses a call that the user was asked about. Does nothing if the user must still
    /// answer.
    fn decided(&mut self, id: &str, verdict: Verdict) -> Result<()> {
        let allowed = match &verdict {
            Verdict::Allow => true,
            Verdict::Deny(_) => false,
            Verdict::Ask => return Ok(()),
        };
        self.show(Event::Permitted { id: id.to_owned(), allowed });
        if let Verdict::Deny(why) = verdict {
            return self.ended(id, Err(why));
        }
        let Some(call) = self.find(id, CallState::Asked) else { return Ok(()) };
        call.state = CallState::Running;
        let called = call.called.clone();
        let access = call.access.clone();
        self.actions.extend(access.map(|access| Action::Run(called, access)));
        Ok(())
    }

    pub(super) fn ended(
        &mut self,
        id: &str,
        result: std::result::Result<String, String>,
    ) -> Result<()> {
        let State::Calling(calls) = &mut self.state else { return Ok(()) };
        let open = calls.iter_mut().find(|call| &*call.called.id == id);
        let Some(call) = open.filter(|call| call.state != CallState::Done) else { return Ok(()) };
        call.state = CallState::Done;
        let (error, text) = match result {
            Ok(text) => (false, text),
            Err(text) => (true, text),
        };
        let part =
            if error { MessagePart::failure(id, &text) } else { MessagePart::output(id, &text) };
        self.context.tool(&[part])?;
        self.show(Event::Result { id: id.to_owned(), error, text });
        self.go_on_if_all_done()
    }

    fn go_on_if_all_done(&mut self) -> Result<()> {
        let State::Calling(calls) = &self.state else { return Ok(()) };
        if calls.iter().any(|call| call.state != CallState::Done) {
            return Ok(());
        }
        self.state = State::Idle;
        self.advance()
    }

    /// Shows the results that the engine gave to calls of `compact`.
    pub(super) fn close_compact_calls(&mut self) {
        let calls = std::mem::take(&mut self.compacts);
        let Some(outcome) = self.context.outcome() else { return };
        let text = outcome.to_string();
        for id in calls {
            self.show(Event::Result { id: id.into(), error: false, text: text.clone() });
        }
    }

    /// Interrupts the calls of an answer: each that has no result yet gets one.
    pub(super) fn interrupt(&mut self, calls: Vec<OpenCall>) -> Result<()> {
        for mut call in calls {
            self.interrupt_task(&mut call)?;
            let text = match call.state {
                CallState::Done => continue,
                CallState::Running if call.progress.is_empty() => INTERRUPTED.to_owned(),
                CallState::Running => format!("{}\n[{INTERRUPTED}]", call.progress),
                CallState::Checking | CallState::Asked | CallState::Question => NOT_RUN.to_owned(),
            };
            let id = &call.called.id;
            self.context.tool(&[MessagePart::failure(&**id, &text)])?;
            let id = id.to_string();
            self.show(Event::Result { id, error: true, text });
        }
        // Calls of `compact` have no result yet if other calls were open.
        self.compacts.clear();
        for (id, _) in self.context.open_calls() {
            self.context.tool(&[MessagePart::failure(&*id, NOT_RUN)])?;
        }
        Ok(())
    }

    /// Stores the output of a running call, in case the call is interrupted, and shows the last
    /// lines of the output.
    pub(super) fn progress(&mut self, id: &str, seconds: u64, text: String) {
        let Some(call) = self.running(id) else { return };
        let lines = text.lines().count();
        let last: Vec<&str> = text.lines().skip(lines.saturating_sub(SHOWN)).collect();
        let shown = last.join("\n");
        call.progress = text;
        self.show(Event::Progress { id: id.to_owned(), seconds, text: shown });
    }

    /// The call with this id, if it is running.
    pub(super) fn running(&mut self, id: &str) -> Option<&mut OpenCall> {
        self.find(id, CallState::Running)
    }

    fn find(&mut self, id: &str, state: CallState) -> Option<&mut OpenCall> {
        let State::Calling(calls) = &mut self.state else { return None };
        calls.iter_mut().find(|call| &*call.called.id == id && call.state == state)
    }
}
