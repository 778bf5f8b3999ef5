//! Carries out the actions of a [`Machine`]. Each request to a model and each call of a tool runs
//! on a thread of its own.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use epitome_api::Outgoing;
use epitome_engine::{Context, Preparation, ResponseCall};
use epitome_error::Result;
use epitome_llm::{Catalogue, Delta, Failure, Model, Request, Retry, Stop};
use epitome_model::{MicroDollars, TokenUsage};
use epitome_passes::{Ask, NoReply};

use crate::machine::{Action, Event, Input, Machine, NoAnswer, OutsideChange, Retrying};
use crate::permissions::{Access, Answer};
use crate::tools::Workplace;

/// The maximum number of tokens of one response. An answer that is cut off there is continued in
/// further requests.
const MAX_TOKENS: u64 = 16_000;

/// When the agent ends: the maximum time to wait for the next input while tools are running.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// The interface: shows events, and asks the user.
pub trait Front {
    /// Shows an event.
    fn show(&mut self, event: &Event);

    /// Asks whether a call may run. Returns `None` if the answer comes later, as
    /// [`Input::Permission`]; for a call of a sub-agent, that input is inside [`Input::Task`].
    fn permit(&mut self, called: &ResponseCall, access: &Access) -> Option<Answer>;

    /// Whether a user is present to answer the model's questions. If so, the interface sends the
    /// answer to each [`Event::Question`] as [`Input::Told`].
    fn is_attended(&self) -> bool;
}

/// Makes the changes that the machine cannot make itself, such as the use of another model, and
/// makes the contexts of sub-agents.
pub trait Changes: Send {
    /// Makes the context of a sub-agent, which contains the system prompt. The machine adds what
    /// the sub-agent has to do. Also returns the event that names the session of the sub-agent.
    ///
    /// # Errors
    ///
    /// Why the sub-agent cannot begin, in words for the model.
    fn begin_task(&mut self, agent: &Agent) -> std::result::Result<(Context, Event), String>;

    /// Makes a change, and returns the events to show.
    ///
    /// # Errors
    ///
    /// The reason, for the user.
    fn change(
        &mut self,
        change: &OutsideChange,
        agent: &mut Agent,
    ) -> std::result::Result<Vec<Event>, String>;
}

/// An agent: a machine, its model and its tools.
pub struct Agent {
    machine: Machine,
    model: Arc<dyn Model>,
    /// The model that writes summaries.
    summariser: Arc<dyn Model>,
    prices: Arc<Catalogue>,
    workplace: Workplace,
    /// Stops all requests and calls that are running.
    stop: Stop,
    tell: Sender<Input>,
    inputs: Receiver<Input>,
    changes: Option<Box<dyn Changes>>,
    /// The number of calls that run on a thread and whose result the agent has not received.
    tools_running: usize,
}

impl Agent {
    /// An idle agent.
    pub fn new(
        machine: Machine,
        model: Arc<dyn Model>,
        prices: Catalogue,
        workplace: Workplace,
    ) -> Agent {
        let (tell, told) = channel();
        let prices = Arc::new(prices);
        let stop = Stop::default();
        Agent {
            machine,
            summariser: model.clone(),
            model,
            prices,
            workplace,
            stop,
            tell,
            inputs: told,
            changes: None,
            tools_running: 0,
        }
    }

    /// Sets the handler that makes changes and the contexts of sub-agents. Without a handler, the
    /// agent refuses changes and calls of `task`.
    #[must_use]
    pub fn with_changes(mut self, changes: impl Changes + 'static) -> Agent {
        self.changes = Some(Box::new(changes));
        self
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The machine, for example to replace its context.
    pub fn machine_mut(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// The workplace of the agent's tools.
    pub fn workplace(&self) -> &Workplace {
        &self.workplace
    }

    /// The workplace of the agent's tools, for example to refresh the list of tools.
    pub fn workplace_mut(&mut self) -> &mut Workplace {
        &mut self.workplace
    }

    /// The model that answers.
    pub fn model(&self) -> &dyn Model {
        &*self.model
    }

    /// Replaces the model that answers and the model that writes summaries, from the next request
    /// on.
    pub fn set_models(&mut self, model: Arc<dyn Model>, summariser: Arc<dyn Model>) {
        self.model = model;
        self.summariser = summariser;
    }

    /// The sender of inputs to the agent, such as messages, answers and interruptions of the user.
    /// Any thread may use a clone.
    pub fn inputs(&self) -> Sender<Input> {
        self.tell.clone()
    }

    /// Sends a message of the user, and works until the turn is over.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn turn(&mut self, message: &str, front: &mut dyn Front) -> Result<()> {
        self.take(Input::User(message.to_owned()), front)?;
        self.finish(front)
    }

    /// Works until the machine is idle.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn finish(&mut self, front: &mut dyn Front) -> Result<()> {
        while !self.machine.is_idle() {
            let Ok(input) = self.inputs.recv() else { return Ok(()) };
            self.take(input, front)?;
        }
        Ok(())
    }

    /// Works until the user leaves ([`Input::Leave`]), and then waits for tools as
    /// [`Agent::wait_for_tools`] does.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn serve(&mut self, front: &mut dyn Front) -> Result<()> {
        while !self.machine.has_left() {
            let Some(input) = self.wait() else { return Ok(()) };
            self.take(input, front)?;
        }
        self.wait_for_tools();
        Ok(())
    }

    /// Waits for the next input, to be passed to [`Agent::take`]. The agent has a sender itself, so
    /// the channel never closes and the result is never `None`.
    pub fn wait(&self) -> Option<Input> {
        self.inputs.recv().ok()
    }

    /// Waits for stopped tools to end: a command kills its processes as soon as it notices the
    /// stop. Gives up if no input arrives for two seconds.
    pub fn wait_for_tools(&mut self) {
        while self.tools_running > 0 {
            match self.inputs.recv_timeout(LAST_WAIT) {
                Ok(input) if is_result(&input) => self.tools_running -= 1,
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    /// Handles one input, and starts the resulting actions.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn take(&mut self, input: Input, front: &mut dyn Front) -> Result<()> {
        if is_result(&input) {
            self.tools_running = self.tools_running.saturating_sub(1);
        }
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for action in self.machine.input(input)? {
                inputs.extend(self.carry_out(action, None, front));
            }
        }
        Ok(())
    }

    /// Carries out an action. `task` is the id of the call that started the sub-agent for which the
    /// action is; `None` for the agent itself. Returns the resulting input, unless there is none or
    /// it comes later.
    fn carry_out(
        &mut self,
        action: Action,
        task: Option<&str>,
        front: &mut dyn Front,
    ) -> Option<Input> {
        let report = Report { tell: self.tell.clone(), task: task.map(Into::into) };
        let known = match action {
            Action::Send(request) => {
                self.send(request, report);
                return None;
            }
            Action::Ask(request, ask) => {
                self.ask(request, ask, report);
                return None;
            }
            Action::Prepare(n, prepared) => {
                prepare(n, prepared, report);
                return None;
            }
            Action::Check(called) => {
                let access = self.workplace.access(&called);
                Input::Checked(called.id, access)
            }
            Action::Permit(called, access) => {
                let answer = front.permit(&called, &access)?;
                Input::Permission(called.id, answer)
            }
            Action::Question(called, _) if !front.is_attended() => {
                Input::Told(called.id, Err(NoAnswer::Unattended))
            }
            // [`Front::show`] has asked the user already, when it received [`Event::Question`]. The
            // answer comes later, as an input.
            Action::Question(..) => return None,
            Action::Begin(called) => self.begin(called, front),
            Action::Task(call, action) => return self.carry_out(*action, Some(&call), front),
            Action::Run(called, access) => {
                self.run(called, access, report);
                return None;
            }
            Action::Stop => {
                self.stop.stop();
                self.stop = Stop::default();
                return None;
            }
            Action::Change(change) => {
                self.change(&change, front);
                return None;
            }
            Action::Show(event) => {
                front.show(&event);
                return None;
            }
        };
        Some(report.wrapped(known))
    }

    /// Makes the context of the sub-agent that a call of `task` starts, and shows the event that
    /// names its session.
    fn begin(&mut self, called: ResponseCall, front: &mut dyn Front) -> Input {
        let begun = match self.changes.take() {
            Some(mut changes) => {
                let begun = changes.begin_task(self);
                self.changes = Some(changes);
                begun
            }
            None => Err("there are no tasks here".to_owned()),
        };
        let context = begun.map(|(context, event)| {
            front.show(&Event::Task { id: called.id.to_string(), inner: Box::new(event) });
            Box::new(context)
        });
        Input::Begun(called.id, context)
    }

    fn change(&mut self, change: &OutsideChange, front: &mut dyn Front) {
        let changed = match self.changes.take() {
            Some(mut changes) => {
                let changed = changes.change(change, self);
                self.changes = Some(changes);
                changed
            }
            None => Err("this cannot be changed here".to_owned()),
        };
        match changed {
            Ok(events) => events.iter().for_each(|event| front.show(event)),
            Err(text) => front.show(&Event::Notice { text }),
        }
    }

    fn send(&self, request: u64, report: Report) {
        let of_task = report.task.as_deref();
        let context = match of_task.map(|call| self.machine.task_context(call)) {
            None => self.machine.context(),
            Some(Some(context)) => context,
            // The sub-agent has ended.
            Some(None) => return,
        };
        let place = self.workplace.clone();
        let in_task = of_task.is_some();
        let outgoing = context.unchanged_view().to_model();
        // The log may grow while the request is running, so a copy is sent.
        let transcript = outgoing.transcript.clone();
        let source = context.log().to_vec();
        let summary = outgoing.summary;
        let stop = self.stop.clone();
        let model = self.model.clone();
        let prices = self.prices.clone();
        thread::spawn(move || {
            let tools = place.request_tools(in_task);
            let outgoing = Outgoing { transcript: &transcript, source: &source, summary };
            let asked = Request { outgoing, tools: &tools, max_tokens: MAX_TOKENS };
            let deltas = report.clone();
            let mut sink = |delta: Delta<'_>| {
                let input = match delta {
                    Delta::Text(text) => Input::Text(request, text.to_owned()),
                    Delta::Thinking(text) => Input::Thinking(request, text.to_owned()),
                    Delta::Restart => Input::Restart(request),
                    Delta::Retry(Retry { reason, wait, attempt, tries }) => {
                        let reason = reason.to_owned();
                        // The seconds are rounded up.
                        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                        Input::Retry(request, Retrying { reason, seconds, attempt, tries })
                    }
                    Delta::Call(_) => return,
                };
                deltas.send(input);
            };
            let answer = caught(|| model.send(&asked, Some(&mut sink), &stop));
            let input = match answer {
                Ok(response) => {
                    let cost = cost(&prices, &*model, response.usage);
                    Input::Response(request, Box::new(response), cost)
                }
                Err(failure) => Input::Failed(request, failure),
            };
            report.send(input);
        });
    }

    fn ask(&self, request: u64, ask: Ask, report: Report) {
        let model = self.summariser.clone();
        let prices = self.prices.clone();
        let stop = self.stop.clone();
        thread::spawn(move || {
            let reply = caught(|| model.ask(&ask, &stop));
            let cost = reply.as_ref().ok().and_then(|reply| cost(&prices, &*model, reply.used));
            let reply = reply.map_err(|failure| match failure {
                Failure::TooLong { .. } => NoReply::TooLong,
                failure => NoReply::Failed(failure.to_string()),
            });
            report.send(Input::Summary(request, reply, cost));
        });
    }

    fn run(&mut self, called: ResponseCall, access: Access, report: Report) {
        self.tools_running += 1;
        let progress = report.clone();
        let id = called.id.clone();
        let on_progress = Arc::new(move |seconds, text| {
            progress.send(Input::Progress(id.clone(), seconds, text));
        });
        let place = self.workplace.clone().with_progress(on_progress);
        let stop = self.stop.clone();
        thread::spawn(move || {
            let run = catch_unwind(AssertUnwindSafe(|| place.run(&called, &access, &stop)));
            let result =
                run.unwrap_or_else(|_| Err("the tool failed: this is a bug of epitome".to_owned()));
            report.send(Input::Result(called.id, result));
        });
    }
}

/// Sends inputs to the machine of the agent or of a sub-agent.
#[derive(Clone)]
struct Report {
    tell: Sender<Input>,
    /// The id of the call that started the sub-agent; `None` for the agent itself.
    task: Option<Box<str>>,
}

impl Report {
    fn wrapped(&self, input: Input) -> Input {
        match &self.task {
            None => input,
            Some(call) => Input::Task(call.clone(), Box::new(input)),
        }
    }

    fn send(&self, input: Input) {
        // The receiver is gone if the agent has ended.
        let _unread = self.tell.send(self.wrapped(input));
    }
}

/// Prepares a compaction on a thread.
fn prepare(n: u64, mut prepared: Box<Preparation>, report: Report) {
    thread::spawn(move || {
        // After a panic, the machine gets no preparation. It then makes the compaction itself once
        // one is due.
        let worked = catch_unwind(AssertUnwindSafe(|| {
            prepared.work();
            prepared
        }));
        let worked = worked.ok();
        report.send(Input::Prepared(n, worked));
    });
}

/// Whether an input is the result of a tool.
fn is_result(input: &Input) -> bool {
    match input {
        Input::Result(..) => true,
        Input::Task(_, input) => is_result(input),
        _ => false,
    }
}

/// Sends a request with `send`. A panic becomes a failure, because the machine waits for a result.
fn caught<T>(
    send: impl FnOnce() -> std::result::Result<T, Failure>,
) -> std::result::Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(send)).unwrap_or_else(|_| {
        Err(Failure::Setup("the request failed: this is a bug of epitome".to_owned()))
    })
}

fn cost(prices: &Catalogue, model: &dyn Model, used: Option<TokenUsage>) -> Option<MicroDollars> {
    Some(prices.look_up(model.name())?.cost(&used?))
}
