//! A session of an editor: runs an agent on a thread, and sends its events to the editor.

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use epitome_engine::ResponseCall;
use serde_json::{Value, json};

use super::choice::Choices;
use super::connection::{Client, Responder};
use super::update::{Abilities, Updates};
use super::wire::{Error, update};
use super::{StartedSession, questions};
use crate::agent::{Agent, Front};
use crate::commands::offered_to_editors;
use crate::machine::{Event, Input, TurnEnd};
use crate::permissions::{Access, Answer};

/// A request of the editor that is answered once the agent is idle.
pub(super) enum Waiting {
    /// A prompt, which is answered when its turn or its command ends.
    Prompt(Responder),
    /// A change of an option, which is answered with the options as they are then.
    Options(Responder),
}

/// The requests of the editor whose inputs the agent has not received yet, in the order of the
/// inputs.
type Queue = Arc<Mutex<VecDeque<Waiting>>>;

/// The sender of inputs to the agent of a session.
#[derive(Clone)]
pub(super) struct Line {
    inputs: Sender<Input>,
    queue: Queue,
}

impl Line {
    /// Sends an input for a request. The request is answered when the agent has handled the input
    /// and is idle.
    pub(super) fn ask(&self, input: Input, waiting: Waiting) {
        // Locked while sending, so that the queue has the order of the inputs.
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back(waiting);
        if self.inputs.send(input).is_err() {
            // The agent has ended. Dropping the responder answers the request.
            queue.pop_back();
        }
    }

    /// Sends an input without a request.
    pub(super) fn send(&self, input: Input) {
        let _gone = self.inputs.send(input);
    }
}

/// A session that is not running yet.
pub(super) struct PreparedSession {
    pub(super) id: String,
    agent: Agent,
    first: Vec<Event>,
    queue: Queue,
    editor: Editor,
}

impl PreparedSession {
    pub(super) fn new(
        started: StartedSession,
        client: Client,
        abilities: Abilities,
    ) -> PreparedSession {
        let StartedSession { agent, id, first, choices } = started;
        let editor = Editor {
            client,
            session: id.clone(),
            inputs: agent.inputs(),
            abilities,
            updates: Updates::new(abilities, agent.workplace().clone()),
            choices,
            asked: HashMap::new(),
            waiting: Vec::new(),
            ended: None,
        };
        PreparedSession { id, agent, first, queue: Queue::default(), editor }
    }

    /// A sender of inputs to the agent.
    pub(super) fn line(&self) -> Line {
        Line { inputs: self.agent.inputs(), queue: self.queue.clone() }
    }

    /// The options that the user may set.
    pub(super) fn choices(&self) -> &Choices {
        &self.editor.choices
    }

    /// Sends all of the first events to the editor, the earlier messages included.
    pub(super) fn replay(&mut self) {
        for event in std::mem::take(&mut self.first) {
            let updates = self.editor.updates.replayed(&event);
            self.editor.send(updates);
        }
    }

    /// Sends the slash commands to the editor, and those first events that are not earlier
    /// messages. Then runs the agent until [`Input::Leave`], or until the log cannot be written.
    pub(super) fn run(mut self) {
        self.editor.send(vec![commands()]);
        for event in std::mem::take(&mut self.first) {
            // Earlier messages are only sent by `replay`, which leaves no first events.
            if let Event::Usage { .. } | Event::Notice { .. } | Event::Loaded { .. } = event {
                self.editor.show(&event);
            }
        }
        while !self.agent.machine().has_left() {
            let Some(input) = self.agent.wait() else { return };
            if is_waited_for(&input) {
                let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
                self.editor.waiting.extend(queue.pop_front());
            }
            if let Err(err) = self.agent.take(input, &mut self.editor) {
                // The log cannot be written: the session ends.
                self.editor.fail(&err.to_string());
                return;
            }
            if self.agent.machine().is_idle() {
                self.editor.rest();
            }
        }
        self.agent.wait_for_tools();
    }
}

/// Whether a request of the editor made this input. That request is then the next one in the queue.
fn is_waited_for(input: &Input) -> bool {
    matches!(
        input,
        Input::User(_)
            | Input::Compact(_)
            | Input::Undo
            | Input::Window
            | Input::Losses
            | Input::Budget(_)
            | Input::Change(_)
    )
}

/// The slash commands that the user may type.
fn commands() -> Value {
    let commands = offered_to_editors().map(|it| {
        let mut command = json!({"name": &it.name[1..], "description": it.about});
        if !it.arguments.is_empty() {
            command["input"] = json!({"hint": it.arguments});
        }
        command
    });
    let all: Vec<Value> = commands.collect();
    update("available_commands_update", json!({"availableCommands": all}))
}

/// Sends updates and questions to the editor.
struct Editor {
    client: Client,
    session: String,
    inputs: Sender<Input>,
    abilities: Abilities,
    updates: Updates,
    choices: Choices,
    /// The numbers of the open requests to the editor, by the call that a request is about. The key
    /// is the id of that call; for a call of a sub-agent, the id of the call of `task` that started
    /// the sub-agent comes first.
    asked: HashMap<(Option<String>, String), u64>,
    waiting: Vec<Waiting>,
    /// How the last turn ended, and the reason in words if there is one. `None` until a turn has
    /// ended, and again once the requests that waited for the end are answered.
    ended: Option<(TurnEnd, Option<String>)>,
}

impl Front for Editor {
    fn show(&mut self, event: &Event) {
        let (task, about) = match event {
            Event::Task { id, inner } => (Some(id.as_str()), &**inner),
            event => (None, event),
        };
        match about {
            Event::Permission { id, always, .. } => self.ask(task, id, always),
            Event::Question { id, question, choices } => self.question(id, question, choices),
            Event::Permitted { id, .. } | Event::Result { id, .. } => self.close_question(task, id),
            Event::Session { model, recipe, .. } if task.is_none() => {
                self.choices.model = model.clone();
                self.choices.recipe = recipe.clone();
                let options = json!({"configOptions": self.choices.options()});
                self.send(vec![update("config_option_update", options)]);
            }
            Event::Done { ended, reason, .. } if task.is_none() => {
                self.ended = Some((*ended, reason.clone()));
                // Nothing is shown: the response to the request contains the reason.
                if *ended == TurnEnd::Failed {
                    return;
                }
            }
            _ => {}
        }
        let updates = self.updates.live(event);
        self.send(updates);
    }

    fn permit(&mut self, _: &ResponseCall, _: &Access) -> Option<Answer> {
        // `show` has asked the user already, when it received [`Event::Permission`] for this call.
        // The answer comes later, as an input.
        None
    }

    fn is_attended(&self) -> bool {
        self.abilities.forms
    }
}

impl Editor {
    fn send(&self, updates: Vec<Value>) {
        for update in updates {
            let params = json!({"sessionId": self.session, "update": update});
            self.client.notify("session/update", params);
        }
    }

    /// Asks the user whether a call may run. Does nothing if the call is not open.
    fn ask(&mut self, task: Option<&str>, id: &str, always: &str) {
        let Some(call) = self.updates.open(task, id) else { return };
        let mut call = call.value.clone();
        call["status"] = "pending".into();
        let options = questions::options(always);
        let params = json!({"sessionId": self.session, "toolCall": call, "options": options});
        let key = (task.map(str::to_owned), id.to_owned());
        let inputs = self.inputs.clone();
        let (task, id) = key.clone();
        let request = self.client.request("session/request_permission", params, move |response| {
            let input = Input::Permission(id.into(), questions::answer(response));
            // Errors are ignored: a session that has ended needs no answer.
            let _gone = inputs.send(match task {
                None => input,
                Some(task) => Input::Task(task.into(), Box::new(input)),
            });
        });
        self.asked.insert(key, request);
    }

    /// Asks the user a question of the model. Does nothing if the editor shows no forms, or if the
    /// call that asks is not open.
    fn question(&mut self, id: &str, question: &str, choices: &[String]) {
        let Some(call) = self.updates.open(None, id).filter(|_| self.abilities.forms) else {
            return;
        };
        let form = questions::form(&self.session, &call.id, question, choices);
        let inputs = self.inputs.clone();
        let call = id.to_owned();
        let request = self.client.request("elicitation/create", form, move |response| {
            // Errors are ignored: a session that has ended needs no answer.
            let _gone = inputs.send(Input::Told(call.into(), questions::answer_from(response)));
        });
        self.asked.insert((None, id.to_owned()), request);
    }

    /// Withdraws the question to the user about a call, which needs no answer any more.
    fn close_question(&mut self, task: Option<&str>, id: &str) {
        if let Some(request) = self.asked.remove(&(task.map(str::to_owned), id.to_owned())) {
            self.client.cancel(request);
        }
    }

    /// The agent is idle: answers the open requests.
    fn rest(&mut self) {
        let ended = self.ended.take();
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting {
                Waiting::Prompt(responder) => responder.respond(response(ended.as_ref())),
                Waiting::Options(responder) => {
                    responder.respond(Ok(json!({"configOptions": self.choices.options()})));
                }
            }
        }
    }

    /// Answers the open requests with an error, because the session cannot continue.
    fn fail(&mut self, reason: &str) {
        for waiting in std::mem::take(&mut self.waiting) {
            let (Waiting::Prompt(responder) | Waiting::Options(responder)) = waiting;
            responder.respond(Err(Error::failed(reason)));
        }
    }
}

/// The response to a prompt, which was a message of the user or a command. `ended` says how the
/// turn ended; `None` if no turn has ended.
fn response(ended: Option<&(TurnEnd, Option<String>)>) -> Result<Value, Error> {
    let reason = match ended {
        // No turn has ended: the prompt was a command.
        None | Some((TurnEnd::Answered, _)) => "end_turn",
        Some((TurnEnd::Interrupted, _)) => "cancelled",
        // The protocol has no reason for a spent budget. This one, for a maximum number of
        // requests, is the closest.
        Some((TurnEnd::Budget, _)) => "max_turn_requests",
        Some((TurnEnd::Failed, reason)) => {
            return Err(Error::failed(reason.as_deref().unwrap_or("there is no answer")));
        }
    };
    Ok(json!({"stopReason": reason}))
}
