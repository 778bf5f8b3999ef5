//! The listener.

use crate::routes;
use crate::script::Script;
use crate::stage::{Exchange, Stage};
use anyhow::{Context, anyhow};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
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
        let stage = Arc::new(Stage::new(script, log));
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
        self.stage.play(script);
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
