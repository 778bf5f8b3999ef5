//! The scripted model: it answers by a script, and finds references in its context.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use epitome_llm::{Delta, Failure, Model, ModelName, Request, Response, Sink, Stop};
use epitome_model::{Block, Counter, Tokens};
use epitome_tokens::O200k;
use serde_json::{Value, json};

/// What it writes when it is asked for a summary: the sections of both recipes that ask here.
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

/// One answer.
pub(super) enum Step {
    Say(String),
    Call(String, String),
    /// A call of `recall` with the first reference that the request holds.
    Recall(String),
}

impl Step {
    pub(super) fn say(text: &str) -> Step {
        Step::Say(text.to_owned())
    }

    pub(super) fn call(tool: &str, arguments: &str) -> Step {
        Step::Call(tool.to_owned(), arguments.to_owned())
    }

    pub(super) fn recall(search: &str) -> Step {
        Step::Recall(search.to_owned())
    }
}

pub(super) struct ScriptedModel {
    name: ModelName,
    window: Tokens,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    steps: VecDeque<Step>,
    calls: u64,
    largest: Tokens,
}

impl ScriptedModel {
    pub(super) fn new(window: Tokens) -> ScriptedModel {
        let name = "compatible/scripted".parse().expect("a name");
        ScriptedModel { name, window, state: Mutex::default() }
    }

    pub(super) fn play(&self, steps: impl IntoIterator<Item = Step>) {
        self.lock().steps = steps.into_iter().collect();
    }

    /// Tokens of the largest request.
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
        _: &Stop,
    ) -> Result<Response, Failure> {
        let texts = texts(request);
        let counter = O200k::new();
        let input: Tokens = texts.iter().map(|text| counter.count(text)).sum();
        let mut state = self.lock();
        state.largest = state.largest.max(input);
        let block = if request.tools.is_empty() {
            text(SUMMARY)
        } else {
            state.calls += 1;
            let id = format!("call_{}", state.calls);
            match state.steps.pop_front() {
                Some(Step::Say(words)) => text(&words),
                Some(Step::Call(tool, arguments)) => call(&id, &tool, &parsed(&arguments)),
                Some(Step::Recall(search)) => {
                    let reference = texts.iter().find_map(|text| reference(text));
                    let reference = reference.unwrap_or("#1");
                    call(&id, "recall", &json!({"ref": reference, "search": search}))
                }
                None => return Err(Failure::Setup("the script is over".to_owned())),
            }
        };
        if let (Some(sink), Some(words)) = (sink, block["text"].as_str()) {
            words.split_inclusive(' ').for_each(|word| sink(Delta::Text(word)));
        }
        let stop = if block["type"] == "text" { "end_turn" } else { "tool_use" };
        let body = json!({"content": [block], "stop_reason": stop}).to_string();
        let api = epitome_api::named("anthropic").expect("an API");
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

/// All that a request says.
fn texts(request: &Request<'_>) -> Vec<String> {
    let outgoing = &request.outgoing;
    let source = outgoing.source;
    let text = |block: &Block| match block {
        Block::Text(text) | Block::Summary(text) => text.read(source).into_owned(),
        Block::Output(output) => output.text(source),
        Block::Call(call) => String::from_utf8_lossy(&source.at(call.arguments)).into_owned(),
        _ => String::new(),
    };
    outgoing.transcript.context().flat_map(|(_, entry)| entry.blocks.iter().map(text)).collect()
}

/// The first reference in a text.
fn reference(text: &str) -> Option<&str> {
    let rest = text.split_once("[epitome ")?.1;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric())?;
    let reference = &rest[..end];
    reference.parse::<epitome_model::Ref>().is_ok().then_some(reference)
}
