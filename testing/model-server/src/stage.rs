//! The play, and the record of what was asked.

use crate::script::{Script, Step};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, MutexGuard};

/// A request and what became of it.
#[derive(Debug, Clone, Serialize)]
pub struct Exchange {
    /// The path asked for.
    pub path: String,
    /// The request's body, or null when it had none or it was not JSON.
    pub body: Value,
    /// What was answered.
    pub outcome: Outcome,
}

/// What the server did with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
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
    log: Option<File>,
}

impl Stage {
    /// A stage for a script, with a record on disk if there is a file for it.
    pub(crate) fn new(script: Script, log: Option<File>) -> Stage {
        Stage { state: Mutex::new(State { script, log, ..State::default() }) }
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

    /// The next step for a conversation that offers tools and opens with `first_user_text`.
    pub(crate) fn next(&self, first_user_text: &str) -> (Step, Outcome) {
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
    pub(crate) fn canned(&self) -> Step {
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
        let mut state = self.state();
        if let Some(log) = &mut state.log {
            let line = serde_json::to_string(&exchange).expect("an exchange is plain data");
            // A full disk must not fail the conversation; the exchange stays in memory.
            let _ = writeln!(log, "{line}");
        }
        state.exchanges.push(exchange);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
