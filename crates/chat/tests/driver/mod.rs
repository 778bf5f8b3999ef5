//! Drives the machine without a model and without tools: the test gives their results.

#![allow(dead_code, reason = "each test uses a part of it")]

use epitome_api::find_api;
use epitome_chat::machine::{Action, Event, Input, TurnEnd};
use epitome_chat::permissions::Access;
use epitome_chat::{Limits, Machine, Permissions};
use epitome_engine::{Context, Setup};
use epitome_llm::Response;
use epitome_model::{StopReason, Tokens};
use epitome_passes::{Ask, NoReply, Recipe, Reply};
use epitome_tokens::Estimate;
use serde_json::{Value, json};

/// A machine, and the results so far.
pub struct Driver {
    pub machine: Machine,
    actions: Vec<Action>,
    /// The events that were shown.
    pub shown: Vec<Event>,
    /// The questions for summaries.
    pub asked: Vec<Ask>,
    /// Whether a model answers the questions for summaries.
    pub writes: bool,
    /// The tokens of the largest request.
    pub largest: Tokens,
}

impl Driver {
    pub fn new(recipe: Recipe, window: u64) -> Driver {
        let setup = Setup::new(recipe).with_window(Tokens(window)).with_counter(Estimate::new());
        let permissions = Permissions::new("/p".into());
        let context = Context::in_memory(setup);
        let machine = Machine::new(context, permissions, Limits::default()).expect("a machine");
        let (actions, shown, asked) = (Vec::new(), Vec::new(), Vec::new());
        Driver { machine, actions, shown, asked, writes: true, largest: Tokens(0) }
    }

    pub fn input(&mut self, input: Input) {
        for action in self.machine.input(input).expect("memory takes all") {
            match action {
                Action::Show(Event::Done { ended, reason, .. }) => {
                    assert_eq!(ended, TurnEnd::Answered, "{reason:?}");
                }
                Action::Show(event) => self.shown.push(event),
                // The compaction is prepared before anything else happens.
                Action::Prepare(n, mut prepared) => {
                    prepared.work();
                    self.input(Input::Prepared(n, Some(prepared)));
                }
                Action::Send(_) => {
                    // Services refuse a request with open calls.
                    assert_eq!(self.machine.context().open_calls(), Vec::new());
                    self.largest = self.largest.max(self.machine.context().usage().tokens);
                    self.actions.push(action);
                }
                action => self.actions.push(action),
            }
        }
        self.summarise();
    }

    /// Answers a question for a summary with a short text, or with an error if `writes` is false.
    fn summarise(&mut self) {
        let Some(at) = self.actions.iter().position(|it| matches!(it, Action::Ask(..))) else {
            return;
        };
        let Action::Ask(request, ask) = self.actions.remove(at) else { return };
        let headings = ask.prompt.lines().filter(|line| line.starts_with("## "));
        let heading = |line: &str| line.split(" (").next().unwrap_or_default().to_owned();
        let text: String = headings.map(|line| heading(line) + "\nThe work goes on.\n").collect();
        let reply = Reply { text, stopped: StopReason::End, used: None };
        let reply = if self.writes { Ok(reply) } else { Err(NoReply::Failed("down".into())) };
        self.asked.push(ask);
        self.input(Input::Summary(request, reply, None));
    }

    /// Answers the current request.
    fn answers(&mut self, content: &Value) {
        let sent = self.actions.iter().position(|it| matches!(it, Action::Send(_)));
        let Some(Action::Send(request)) = sent.map(|at| self.actions.remove(at)) else {
            panic!("nothing is sent")
        };
        self.input(Input::Response(request, Box::new(response(content)), None));
    }

    pub fn user(&mut self, text: &str) {
        self.input(Input::User(text.to_owned()));
    }

    pub fn says(&mut self, text: &str) {
        self.answers(&json!([{"type": "text", "text": text}]));
    }

    /// The model calls tools in parallel, each with an id, and gets these results.
    pub fn calls(&mut self, all: &[(&str, &str, Value, &str)]) {
        let call = |(id, name, input, _): &(&str, &str, Value, &str)| {
            let kind = "tool_use";
            json!({"type": kind, "id": id, "name": name, "input": input})
        };
        self.answers(&all.iter().map(call).collect());
        for (id, _, _, text) in all {
            let text = (*text).to_owned();
            self.input(Input::Checked((*id).into(), Ok(Access::Own)));
            let of_it = |action: &Action| match action {
                Action::Run(called, _) | Action::Question(called, _) => &*called.id == *id,
                _ => false,
            };
            let at = self.actions.iter().position(of_it);
            match at.map(|at| self.actions.remove(at)) {
                Some(Action::Question(..)) => self.input(Input::Told((*id).into(), Ok(text))),
                Some(_) => self.input(Input::Result((*id).into(), Ok(text))),
                // The machine itself answers it.
                None => {}
            }
        }
        self.actions.retain(|it| !matches!(it, Action::Check(_)));
    }

    /// The body of the request in Anthropic's format.
    pub fn body(&self) -> Value {
        let made = self.machine.context().unchanged_view().body("anthropic").expect("an API");
        serde_json::from_str(&made.body).expect("JSON")
    }

    /// Checks that services accept the request.
    pub fn accepted(&self) {
        for name in ["anthropic", "openai-chat", "openai-responses", "gemini-api"] {
            let made = self.machine.context().unchanged_view().body(name).expect("an API");
            let bytes = made.body.into_bytes();
            let format = find_api(name).expect("an API").format;
            let read = (format.read)(&bytes, &mut ());
            assert_eq!(format.invariants.check(&read, &bytes), Vec::new(), "{name}");
        }
    }

    /// The results in the request, with the ids of their calls.
    pub fn results(&self) -> Vec<(String, String)> {
        let body = self.body();
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
        let results = blocks.filter(|block| block["type"] == "tool_result");
        let text = |block: &Value| match &block["content"] {
            Value::String(text) => text.clone(),
            parts => parts[0]["text"].as_str().unwrap_or_default().to_owned(),
        };
        let id = |block: &Value| block["tool_use_id"].as_str().unwrap_or_default().to_owned();
        results.map(|block| (id(block), text(block))).collect()
    }

    /// The changes of the context so far, as text.
    pub fn changes(&self) -> Vec<String> {
        let change = |event: &Event| match event {
            Event::Context { event } => epitome_chat::notices::change(event),
            _ => None,
        };
        self.shown.iter().filter_map(change).collect()
    }
}

pub fn response(content: &Value) -> Response {
    let body = json!({"content": content}).to_string();
    find_api("anthropic").expect("an API").response(body.as_bytes()).expect("a response")
}
