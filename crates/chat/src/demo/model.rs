//! The scripted model: it follows a script, and finds references in its context.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use epitome_llm::{
    Clock as _, Delta, Failure, Model, ModelName, RealClock, Request, Response, Sink, Stop,
};
use epitome_model::{Block, Counter, Tokens};
use epitome_tokens::O200k;
use serde_json::{Value, json};

/// The summary that the model writes. It has all sections that the recipes of the demo request.
const SUMMARY: &str = "\
## What was accomplished
The build log was read: it fails in src/pricing.rs, line 118. All modules in src were read.
## Current state
Nothing is changed yet.
## Key decisions
None.
## Task state
The user asked why the build fails, and to read every file of src.
## Files
build.log, src/pricing.rs
## Tool history
shell cat build.log; read of the modules.
## Errors
error[E0308]: mismatched types at src/pricing.rs:118:11: expected `u64`, found `f64`.
## Decisions
None.
## User guidance
Read the files one by one.
## Next steps
Fix src/pricing.rs.";

/// The answer to a message that is not in the script, if a person watches the demo.
const ASIDE: &str = "I only follow a script: send the line that is typed for you.";

/// One answer of the model.
pub(super) enum ScriptedAnswer {
    Say(String),
    Call(String, String),
    /// A call of `recall` that searches for this text in the first removed text that a reference in
    /// the request names, or in `#1`, the first call, if the request contains no reference.
    Recall(String),
}

impl ScriptedAnswer {
    pub(super) fn say(text: &str) -> ScriptedAnswer {
        ScriptedAnswer::Say(text.to_owned())
    }

    pub(super) fn call(tool: &str, arguments: &str) -> ScriptedAnswer {
        ScriptedAnswer::Call(tool.to_owned(), arguments.to_owned())
    }

    /// Reads a module of the project.
    pub(super) fn read_module(n: usize) -> ScriptedAnswer {
        ScriptedAnswer::call("read", &format!(r#"{{"path":"src/module_{n:02}.rs"}}"#))
    }

    pub(super) fn recall(search: &str) -> ScriptedAnswer {
        ScriptedAnswer::Recall(search.to_owned())
    }
}

/// The answers of the model after a message of the user.
pub(super) struct Turn {
    pub(super) message: String,
    pub(super) steps: Vec<ScriptedAnswer>,
}

/// The delay before each word of a text, if a person watches the demo.
const WORD: Duration = Duration::from_millis(20);
/// The delay before a call, if a person watches the demo.
const CALL: Duration = Duration::from_millis(200);

pub(super) struct ScriptedModel {
    name: ModelName,
    window: Tokens,
    is_watched: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    steps: VecDeque<ScriptedAnswer>,
    /// The turns that have not begun. Each begins when the user sends its message.
    turns: VecDeque<Turn>,
    calls: u64,
    largest: Tokens,
}

impl ScriptedModel {
    pub(super) fn new(window: Tokens) -> ScriptedModel {
        let name = "compatible/scripted".parse().expect("a name");
        ScriptedModel { name, window, is_watched: false, state: Mutex::default() }
    }

    /// A model with these turns. If `is_watched`, a person watches the demo, and the model answers
    /// slowly.
    pub(super) fn with_turns(window: Tokens, turns: Vec<Turn>, is_watched: bool) -> ScriptedModel {
        let model = ScriptedModel { is_watched, ..ScriptedModel::new(window) };
        model.lock().turns = turns.into();
        model
    }

    pub(super) fn play(&self, steps: impl IntoIterator<Item = ScriptedAnswer>) {
        self.lock().steps = steps.into_iter().collect();
    }

    /// The tokens of the largest request.
    pub(super) fn largest(&self) -> Tokens {
        self.lock().largest
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn window(&self) -> Option<Tokens> {
        Some(self.window)
    }

    fn send(
        &self,
        request: &Request<'_>,
        sink: Option<Sink<'_>>,
        stop: &Stop,
    ) -> Result<Response, Failure> {
        let texts = texts(request);
        let counter = O200k::new();
        let input: Tokens = texts.iter().map(|text| counter.count(text)).sum();
        let mut state = self.lock();
        state.largest = state.largest.max(input);
        let block = if request.tools.is_empty() {
            text(SUMMARY)
        } else {
            let is_next = state
                .turns
                .front()
                .is_some_and(|turn| texts.iter().any(|it| it.contains(&turn.message)));
            if state.steps.is_empty() && is_next {
                let turn = state.turns.pop_front();
                state.steps = turn.map(|turn| turn.steps.into()).unwrap_or_default();
            } else if state.steps.is_empty() && self.is_watched {
                state.steps.push_back(ScriptedAnswer::say(ASIDE));
            }
            state.calls += 1;
            let id = format!("call_{}", state.calls);
            match state.steps.pop_front() {
                Some(ScriptedAnswer::Say(words)) => text(&words),
                Some(ScriptedAnswer::Call(tool, arguments)) => {
                    call(&id, &tool, &parsed(&arguments))
                }
                Some(ScriptedAnswer::Recall(search)) => {
                    let reference = texts.iter().find_map(|text| reference(text));
                    let reference = reference.unwrap_or("#1");
                    call(&id, "recall", &json!({"ref": reference, "search": search}))
                }
                None => return Err(Failure::Setup("the script is over".to_owned())),
            }
        };
        drop(state);
        let pause = |time| {
            if self.is_watched {
                RealClock.wait(time, stop);
            }
        };
        if let (Some(sink), Some(words)) = (sink, block["text"].as_str()) {
            for word in words.split_inclusive(' ') {
                pause(WORD);
                sink(Delta::Text(word));
            }
        } else {
            pause(CALL);
        }
        if stop.is_stopped() {
            return Err(Failure::Stopped);
        }
        let stop = if block["type"] == "text" { "end_turn" } else { "tool_use" };
        let body = json!({"content": [block], "stop_reason": stop}).to_string();
        let api = epitome_api::find_api("anthropic").expect("an API");
        api.response(body.as_bytes()).map_err(|bad| Failure::BadAnswer(format!("{bad:?}")))
    }
}

fn text(words: &str) -> Value {
    json!({"type": "text", "text": words})
}

fn call(id: &str, tool: &str, input: &Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": tool, "input": input})
}

fn parsed(arguments: &str) -> Value {
    serde_json::from_str(arguments).expect("the script is JSON")
}

/// The texts, the arguments of calls and the results in a request.
fn texts(request: &Request<'_>) -> Vec<String> {
    let outgoing = &request.outgoing;
    let source = outgoing.source;
    let blocks = outgoing.transcript.context().flat_map(|(_, entry)| &entry.blocks);
    let texts = blocks.map(|block| match block {
        Block::Text(text) | Block::Summary(text) => text.read(source).into_owned(),
        Block::Output(output) => output.text(source),
        Block::Call(call) => String::from_utf8_lossy(&source.at(call.arguments)).into_owned(),
        _ => String::new(),
    });
    texts.collect()
}

/// The reference in the first stub of a text. `None` if there is no stub, or if that stub contains
/// no reference.
fn reference(text: &str) -> Option<&str> {
    let rest = text.split_once("[epitome ")?.1;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric())?;
    let reference = &rest[..end];
    reference.parse::<epitome_model::Ref>().is_ok().then_some(reference)
}
