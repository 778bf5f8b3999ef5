//! The listener, the play and the record of what was asked.

use crate::routes;
use crate::script::{Script, Step};
use anyhow::{Context, anyhow};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// Agents send a few requests side by side (titles, sub-agents); no more than these are served.
const WORKERS: usize = 8;

/// How a server starts.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The port on 127.0.0.1; 0 takes any free one.
    pub port: u16,
    /// A file that every exchange is appended to, one JSON object a line.
    pub log: Option<PathBuf>,
}

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

/// A running server; it stops when dropped.
pub struct Server {
    port: u16,
    http: Arc<tiny_http::Server>,
    stage: Arc<Stage>,
    workers: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts on any free port.
    ///
    /// # Errors
    ///
    /// When no port can be had.
    pub fn start(script: Script) -> anyhow::Result<Self> {
        Self::start_with(script, &Options::default())
    }

    /// Starts as `options` say.
    ///
    /// # Errors
    ///
    /// When the port cannot be had or the log cannot be opened.
    pub fn start_with(script: Script, options: &Options) -> anyhow::Result<Self> {
        let log = options
            .log
            .as_ref()
            .map(|path| {
                File::options()
                    .create(true)
                    .append(true)
                    .open(path)
                    .with_context(|| path.display().to_string())
            })
            .transpose()?;
        let http = tiny_http::Server::http(("127.0.0.1", options.port))
            .map_err(|cause| anyhow!("cannot listen on 127.0.0.1:{}: {cause}", options.port))?;
        let port = http.server_addr().to_ip().context("not an internet address")?.port();
        let http = Arc::new(http);
        let stage =
            Arc::new(Stage { state: Mutex::new(State { script, log, ..State::default() }) });
        let workers = (0..WORKERS)
            .map(|_| {
                let (http, stage) = (Arc::clone(&http), Arc::clone(&stage));
                std::thread::spawn(move || {
                    while let Ok(request) = http.recv() {
                        routes::answer(request, &stage);
                    }
                })
            })
            .collect();
        Ok(Self { port, http, stage, workers })
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The base URL, without a final slash.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Plays `script` from its beginning from now on; what was asked before stays known.
    pub fn play(&self, script: Script) {
        let mut state = self.stage.state();
        state.script = script;
        state.played.clear();
    }

    /// Everything asked so far, in the order it was answered.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.stage.exchanges()
    }

    /// Waits for ever, for a server that is a process of its own.
    pub fn join(mut self) {
        for worker in self.workers.drain(..) {
            // A worker that panicked has said so on stderr; the others go on.
            let _ = worker.join();
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Server").field("port", &self.port).finish_non_exhaustive()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Each `unblock` frees one worker from waiting.
        for _ in 0..self.workers.len() {
            self.http.unblock();
        }
    }
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
    /// A stage for a script, without a record on disk.
    pub(crate) fn of(script: Script) -> Stage {
        Stage { state: Mutex::new(State { script, ..State::default() }) }
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
