//! The loop of the agent as a state machine: inputs go in, actions come out.
//!
//! The machine itself only writes the log of its context. Its caller sends requests, runs tools,
//! asks the user and shows events, and passes the results back in. The context of the machine is
//! valid at any time: a model service accepts it as soon as its open calls have results.
//!
//! A task is work for a sub-agent: a second machine, which a call of the tool `task` starts.

mod background;
mod calls;
mod commands;
mod event;
mod recall;
mod request;
mod task;

use std::collections::VecDeque;
use std::mem;

use epitome_engine::{Context, Next, Preparation, Recovery, ResponseCall, Speaker};
use epitome_error::{Error, ErrorKind, Result};
use epitome_llm::Failure;
use epitome_model::{MicroDollars, Role, TokenUsage};
use epitome_passes::{Ask, NoReply, Reply};

use crate::permissions::{Access, Answer, Permissions};
use crate::tools::Question;

pub use calls::{INTERRUPTED, NOT_RUN, NoAnswer};
pub use commands::OutsideChange;
pub use event::{Cost, Event, LoadedFile, LoadedKind, Retrying, TurnEnd};

use background::Background;
use calls::{OpenCall, close_open_calls};

/// The maximum number of requests in a row to continue an answer that was cut off.
const CONTINUATIONS: u32 = 3;

/// The message to the model after its answer was cut off.
pub const GO_ON: &str =
    "[Your answer was cut off at the limit of its length. Go on exactly where it ended.]";

/// Something that happened, for the machine to handle.
#[derive(Debug)]
pub enum Input {
    /// A message of the user.
    User(String),
    /// A chunk of the text of the answer to the request with this number.
    Text(u64, String),
    /// A chunk of readable reasoning of the answer to the request with this number.
    Thinking(u64, String),
    /// The answer to the request with this number is requested again: its chunks so far are void.
    Restart(u64),
    /// The request with this number failed, and is sent again after a while.
    Retry(u64, Retrying),
    /// The complete answer to the request with this number, and its cost if that is known.
    Response(u64, Box<epitome_llm::Response>, Option<MicroDollars>),
    /// The request with this number failed for good.
    Failed(u64, Failure),
    /// The answer to the summary request with this number, or why there is none, and the cost of
    /// the request if that is known.
    Summary(u64, std::result::Result<Reply, NoReply>, Option<MicroDollars>),
    /// The background compaction with this number is prepared as far as possible without a model's
    /// answer; `None` if this failed.
    Prepared(u64, Option<Box<Preparation>>),
    /// What the call with this id would access, or the reason why it cannot be run.
    Checked(Box<str>, std::result::Result<Access, String>),
    /// The user's answer to whether the call with this id may run.
    Permission(Box<str>, Answer),
    /// The user's answer to the question that the call with this id asks, or why there is none.
    Told(Box<str>, std::result::Result<String, NoAnswer>),
    /// The context for the sub-agent that a call of `task` starts, with its system prompt; or why
    /// there is none.
    Begun(Box<str>, std::result::Result<Box<Context>, String>),
    /// An input for the sub-agent that a call of `task` started.
    Task(Box<str>, Box<Input>),
    /// The call with this id is still running: the seconds so far, and the end of its output.
    Progress(Box<str>, u64, String),
    /// The call with this id ended: its result, or the error.
    Result(Box<str>, std::result::Result<String, String>),
    /// The user wants a compaction now, with this focus if there is one.
    Compact(Option<String>),
    /// The user wants to undo the last compaction.
    Undo,
    /// The user wants to see the contents of the window.
    Window,
    /// The user wants to see what was shortened.
    Losses,
    /// The user sets the budget for all requests; `None` asks what the budget is.
    Budget(Option<MicroDollars>),
    /// The user wants a change that this machine cannot make itself, such as another model.
    Change(OutsideChange),
    /// The user interrupts everything in progress.
    Cancel,
    /// The user leaves. The machine interrupts everything, as for [`Input::Cancel`], and
    /// [`Machine::has_left`] is true from then on.
    Leave,
}

/// An action for the caller.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Send [`Machine::context`] to the model as the request with this number.
    Send(u64),
    /// Send a question for a summary to a model, as the request with this number.
    Ask(u64, Ask),
    /// Prepare a compaction ([`Preparation::work`]) with this number, in the background.
    Prepare(u64, Box<Preparation>),
    /// Find out what a call would access.
    Check(ResponseCall),
    /// Ask the user whether a call may run.
    Permit(ResponseCall, Access),
    /// Ask the user the question of a call.
    Question(ResponseCall, Question),
    /// Make a context for the sub-agent that a call of `task` starts.
    Begin(ResponseCall),
    /// Carry out an action for the sub-agent of the call with this id. Its context is
    /// [`Machine::task_context`].
    Task(Box<str>, Box<Action>),
    /// Run a call. The calls of one answer may run in parallel.
    Run(ResponseCall, Access),
    /// Stop all requests to models, and all running calls.
    Stop,
    /// Make a change outside of the machine. The machine is idle if this change requires it.
    Change(OutsideChange),
    /// Show an event.
    Show(Event),
}

/// The limits of a machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The budget for all requests: no request is sent once it is spent.
    pub budget: Option<MicroDollars>,
}

/// The loop of an agent, as a state machine. Its caller carries out the actions.
pub struct Machine {
    context: Context,
    permissions: Permissions,
    limits: Limits,
    state: State,
    /// Messages of the user that are not in the context yet.
    typed: VecDeque<String>,
    actions: Vec<Action>,
    requests: u64,
    continuations: u32,
    recovery: Option<Recovery>,
    /// Whether a turn is in progress, so that the model must answer. A command such as `/compact`
    /// begins no turn.
    wanted: bool,
    cost: Cost,
    answer: String,
    /// Calls of the engine's own tool, `compact`, that wait for their result.
    compacts: Vec<Box<str>>,
    /// A compaction that the user requested, with its focus if the user gave one.
    compaction: Option<Option<String>>,
    /// A compaction that is being prepared, or is ready.
    background: Option<Background>,
    has_left: bool,
    /// Whether this is the machine of a sub-agent, which another machine started for a call of
    /// `task`. A sub-agent cannot ask the user, and cannot start a sub-agent.
    is_task: bool,
}

/// What the machine is doing.
enum State {
    /// The machine does nothing.
    Idle,
    /// A request is running. The text is the answer so far.
    Answering(u64, String),
    /// A model answers a question for a summary, in the request with this number.
    Summarising(u64),
    /// The next request waits for a background compaction. `begins_turn` says whether that request
    /// is the first of its turn.
    Waiting { begins_turn: bool },
    /// The calls of an answer are checked and run.
    Calling(Vec<OpenCall>),
}

impl Machine {
    /// A machine with a context. Calls that have no result in it get one: that the program ended
    /// while they ran.
    pub fn new(mut context: Context, permissions: Permissions, limits: Limits) -> Result<Machine> {
        close_open_calls(&mut context)?;
        Ok(Machine {
            context,
            permissions,
            limits,
            state: State::Idle,
            typed: VecDeque::new(),
            actions: Vec::new(),
            requests: 0,
            continuations: 0,
            recovery: None,
            wanted: false,
            cost: Cost::default(),
            answer: String::new(),
            compacts: Vec::new(),
            compaction: None,
            background: None,
            has_left: false,
            is_task: false,
        })
    }

    /// Adds the system prompt: what the agent is and where it works. Must be called before any
    /// message is added.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn prompt(&mut self, text: &str) -> Result<()> {
        let speaker = Speaker { role: Role::System, prompt: true, ..Speaker::default() };
        self.context.push(&speaker, &[epitome_engine::MessagePart::text(text)])
    }

    /// The context: what is sent, and how full the window is.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Replaces the context: the same log with another recipe, or another log. Its open calls get a
    /// result, as in [`Machine::new`].
    ///
    /// # Errors
    ///
    /// `InUse` if something is in progress, `Disk` if the log cannot be written. The old context
    /// stays then.
    pub fn replace_context(&mut self, mut context: Context) -> Result<()> {
        if !self.is_idle() {
            return Err(Error::new(ErrorKind::InUse, "the model works: press Esc first"));
        }
        close_open_calls(&mut context)?;
        self.context = context;
        self.background = None;
        Ok(())
    }

    /// Whether no turn and no command of the user is in progress. A background compaction may be.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// Whether the user has left.
    pub fn has_left(&self) -> bool {
        self.has_left
    }

    /// The usage and cost so far.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// The current permissions.
    pub fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    /// Sets the budget for all requests; `None` means that there is no limit.
    pub fn set_budget(&mut self, budget: Option<MicroDollars>) {
        self.limits.budget = budget;
    }

    /// Handles an input, and returns the resulting actions in order.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn input(&mut self, input: Input) -> Result<Vec<Action>> {
        self.take(input)?;
        Ok(mem::take(&mut self.actions))
    }

    fn take(&mut self, input: Input) -> Result<()> {
        match input {
            Input::User(text) => self.user(text)?,
            Input::Text(request, text) => self.text(request, text),
            Input::Thinking(request, text) => {
                if self.awaits(request) {
                    self.show(Event::Thinking { text });
                }
            }
            Input::Restart(request) => self.restart(request),
            Input::Retry(request, retrying) => {
                if self.awaits(request) {
                    self.show(Event::Retry(retrying));
                }
            }
            Input::Response(request, response, cost) => {
                self.spend(response.usage, cost);
                if self.awaits(request) {
                    self.response(&response)?;
                }
            }
            Input::Failed(request, failure) => {
                if self.awaits(request) {
                    self.failed(failure)?;
                }
            }
            Input::Summary(request, reply, cost) => {
                self.spend(reply.as_ref().ok().and_then(|reply| reply.used), cost);
                self.summary(request, reply)?;
            }
            Input::Prepared(n, prepared) => self.prepared(n, prepared)?,
            Input::Checked(call, access) => self.checked(&call, access)?,
            Input::Permission(call, answer) => self.answered(&call, answer)?,
            Input::Begun(call, context) => self.begun(&call, context)?,
            Input::Task(call, input) => self.in_task(&call, *input)?,
            Input::Told(call, answer) => self.user_answered(&call, answer)?,
            Input::Progress(call, seconds, text) => self.progress(&call, seconds, text),
            Input::Result(call, result) => self.ended(&call, result)?,
            Input::Compact(focus) => self.compact(focus)?,
            Input::Undo => self.undo()?,
            Input::Window => self.show_window(),
            Input::Losses => self.show_losses(),
            Input::Budget(budget) => self.change_budget(budget),
            Input::Change(change) => self.change(change),
            Input::Cancel => self.cancel()?,
            Input::Leave => self.leave()?,
        }
        Ok(())
    }

    fn show(&mut self, event: Event) {
        self.actions.push(Action::Show(event));
    }

    fn awaits(&self, request: u64) -> bool {
        matches!(self.state, State::Answering(open, _) if open == request)
    }

    fn user(&mut self, text: String) -> Result<()> {
        self.typed.push_back(text);
        if self.is_idle() {
            self.continuations = 0;
            self.answer.clear();
            self.advance()?;
        }
        Ok(())
    }

    fn text(&mut self, request: u64, text: String) {
        if let State::Answering(open, so_far) = &mut self.state
            && *open == request
        {
            so_far.push_str(&text);
            self.show(Event::Text { text });
        }
    }

    fn restart(&mut self, request: u64) {
        if let State::Answering(open, so_far) = &mut self.state
            && *open == request
        {
            so_far.clear();
            self.show(Event::Restart);
        }
    }

    fn summary(&mut self, request: u64, reply: std::result::Result<Reply, NoReply>) -> Result<()> {
        if matches!(self.state, State::Summarising(open) if open == request) {
            self.state = State::Idle;
            self.context.answer(reply)?;
            return self.advance();
        }
        self.answer_in_background(request, reply);
        Ok(())
    }

    /// Does everything that is due before the next request, and sends it if the model must answer.
    fn advance(&mut self) -> Result<()> {
        self.advance_from(!self.wanted)
    }

    /// Like `advance`. `begins_turn` says whether the request is the first of a turn.
    fn advance_from(&mut self, begins_turn: bool) -> Result<()> {
        loop {
            // Open calls of the tool `compact` get their results first: no message may come between
            // a call and its result.
            if self.context.open_calls().is_empty() {
                self.drain()?;
            }
            if let Some(over) = self.over_budget().filter(|_| self.wanted) {
                return self.end(TurnEnd::Budget, Some(over));
            }
            if let Some(focus) = self.compaction.take() {
                self.background = None;
                self.context.ask_for_compaction(focus.as_deref(), None);
            }
            if self.context.open_calls().is_empty() && self.swap(begins_turn)? {
                self.state = State::Waiting { begins_turn };
                return Ok(());
            }
            let next = self.context.step()?;
            self.show_compactions();
            match next {
                Next::Ask(question) => match self.over_budget() {
                    Some(over) => self.context.answer(Err(NoReply::Failed(over)))?,
                    None => {
                        self.requests += 1;
                        self.state = State::Summarising(self.requests);
                        self.actions.push(Action::Ask(self.requests, question.ask));
                        return Ok(());
                    }
                },
                Next::Send => {
                    self.close_compact_calls();
                    if self.typed.is_empty() {
                        return self.ready();
                    }
                }
            }
        }
    }

    /// Adds the messages that the user has typed in the meantime to the context.
    fn drain(&mut self) -> Result<()> {
        while let Some(text) = self.typed.pop_front() {
            self.context.user(&text)?;
            self.show(Event::User { text });
            self.wanted = true;
        }
        Ok(())
    }

    /// Called when nothing else is due. In a turn, sends the request. Otherwise the machine becomes
    /// idle, and shows how the compaction ended that the user requested, if there was one.
    fn ready(&mut self) -> Result<()> {
        if self.wanted {
            return self.send();
        }
        self.state = State::Idle;
        if let Some(outcome) = self.context.outcome() {
            let text = outcome.to_string();
            self.show(Event::Notice { text });
        }
        self.show_usage();
        Ok(())
    }

    /// Ends the turn. If the model answered, and the user has typed another message or requested a
    /// compaction since, the machine continues with that. Otherwise it becomes idle.
    fn end(&mut self, why: TurnEnd, reason: Option<String>) -> Result<()> {
        self.state = State::Idle;
        self.wanted = false;
        self.recovery = None;
        self.show_usage();
        let answer = mem::take(&mut self.answer);
        let cost = self.cost;
        self.show(Event::Done { ended: why, reason, answer, cost });
        // After any other end, what the user has typed or requested waits until the user sends a
        // message or requests a compaction.
        let is_asked = !self.typed.is_empty() || self.compaction.is_some();
        if is_asked && why == TurnEnd::Answered {
            self.continuations = 0;
            return self.advance();
        }
        Ok(())
    }

    fn over_budget(&self) -> Option<String> {
        let budget = self.limits.budget?;
        (self.cost.cost >= budget).then(|| {
            let spent = self.cost.cost;
            format!("the budget of {budget} is spent ({spent}): no request is sent")
        })
    }

    fn spend(&mut self, used: Option<TokenUsage>, cost: Option<MicroDollars>) {
        self.cost.requests += 1;
        if let Some(used) = used {
            self.cost.used += used;
        }
        match cost {
            Some(cost) => self.cost.cost += cost,
            None => self.cost.unpriced += 1,
        }
    }

    fn notice(&mut self, text: &str) {
        self.show(Event::Notice { text: text.to_owned() });
    }

    fn show_usage(&mut self) {
        let usage = self.context.usage();
        let cost = self.cost;
        self.show(Event::Usage { usage, cost });
    }

    fn show_compactions(&mut self) {
        for event in self.context.events() {
            self.show(Event::Context { event });
        }
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
