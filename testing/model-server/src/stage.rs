//! The play, and the record of what was asked.

use crate::script::{Script, Step};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

/// A request and what became of it.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The path asked for.
    pub path: String,
    /// The request's body, or null when it had none or it was not JSON.
    pub body: Value,
    /// What was answered.
    pub outcome: Outcome,
}

/// What the server did with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Took a step of the script (`track` is empty for the main conversation).
    Played {
        /// The mark of the sub-agent's conversation, or nothing.
        track: String,
        /// The number of the step, from 0; past the end the server only says that it is done.
        step: usize,
    },
    /// Offered no tools (a title, a summary): answered with a canned text.
    Canned,
    /// Refused: the history is not one the real service would take.
    Refused(String),
    /// Anything else: a list of models, a count of tokens, a probe.
    Other,
}

/// The script and how far it has been played.
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

    /// Plays `script` from its beginning from now on; what was asked before stays known.
    pub(crate) fn play(&self, script: Script) {
        let mut state = self.state();
        state.script = script;
        state.played.clear();
    }

    /// What was asked so far.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.state().exchanges.clone()
    }

    /// Answers with this step from now on, whatever is asked.
    pub(crate) fn play_always(&self, step: Step) {
        self.state().always = Some(step);
    }

    /// What is answered: the next step of the conversation that opens with `first_user_text`, or
    /// the same as ever if the request offers no tools.
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

    /// Keeps an exchange.
    pub(crate) fn record(&self, path: &str, body: Value, outcome: Outcome) {
        let exchange = Exchange { path: path.to_owned(), body, outcome };
        self.state().exchanges.push(exchange);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
