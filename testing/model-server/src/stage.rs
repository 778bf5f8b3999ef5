//! The progress of the script, and the record of all requests.

use crate::script::{Script, Step};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

/// A request and its answer.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The requested path.
    pub path: String,
    /// The request's body as JSON; null if there was no body or it was not JSON.
    pub body: Value,
    /// The request's body as it arrived.
    pub text: String,
    /// How the request was answered.
    pub outcome: Outcome,
}

/// How the server answered a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// With a step of the script (`track` is empty for the main conversation).
    Played {
        /// The mark of the sub-agent's conversation, or empty.
        track: String,
        /// The number of the step, from 0; after the last step the numbers go on, and the answer is
        /// `That is all.`
        step: usize,
    },
    /// With a canned text or step, because the request offered no tools (a title, a summary).
    Canned,
    /// With a refusal: the real service would not accept the history.
    Refused(String),
    /// Otherwise: a list of models, a count of tokens, a probe.
    Other,
}

/// The script, and how far it has been played.
#[derive(Debug)]
pub(crate) struct Stage {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    script: Script,
    played: HashMap<String, usize>,
    always: Option<Step>,
    exchanges: Vec<Exchange>,
}

impl Stage {
    /// A stage for a script.
    pub(crate) fn new(script: Script) -> Stage {
        Stage { state: Mutex::new(State { script, ..State::default() }) }
    }

    /// Plays `script` from its beginning from now on; earlier exchanges are kept.
    pub(crate) fn play(&self, script: Script) {
        let mut state = self.state();
        state.script = script;
        state.played.clear();
    }

    /// All exchanges so far.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.state().exchanges.clone()
    }

    /// From now on answers every request with this step, whether it offers tools or not.
    pub(crate) fn play_always(&self, step: Step) {
        self.state().always = Some(step);
    }

    /// The answer to a request: if it offers tools, the next step of the conversation that begins
    /// with `first_user_text`, otherwise the canned answer. After
    /// [`play_always`](Stage::play_always), always that step.
    pub(crate) fn answer(&self, offers_tools: bool, first_user_text: &str) -> (Step, Outcome) {
        if offers_tools { self.next(first_user_text) } else { (self.canned(), Outcome::Canned) }
    }

    fn next(&self, first_user_text: &str) -> (Step, Outcome) {
        let mut state = self.state();
        let State { script, played, always, .. } = &mut *state;
        if let Some(step) = always {
            return (step.clone(), Outcome::Played { track: String::new(), step: 0 });
        }
        let track = script.tracks.iter().find(|track| first_user_text.contains(&track.mark));
        let (mark, steps) = match track {
            Some(track) => (track.mark.clone(), &track.steps),
            None => (String::new(), &script.steps),
        };
        let played = played.entry(mark.clone()).or_default();
        let step = steps.get(*played).cloned().unwrap_or_else(|| Step::text("That is all."));
        let outcome = Outcome::Played { track: mark, step: *played };
        *played += 1;
        (step, outcome)
    }

    /// The answer to a request without tools.
    fn canned(&self) -> Step {
        let state = self.state();
        let Script { aside, canned, .. } = &state.script;
        if let Some(step) = &state.always {
            return step.clone();
        }
        let plain = || Step::text(canned.as_deref().unwrap_or("Work on the project"));
        aside.clone().unwrap_or_else(plain)
    }

    /// Records an exchange.
    pub(crate) fn record(&self, path: &str, body: Value, bytes: &[u8], outcome: Outcome) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let exchange = Exchange { path: path.to_owned(), body, text, outcome };
        self.state().exchanges.push(exchange);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
