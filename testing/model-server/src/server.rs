//! The HTTP server.

use crate::routes;
use crate::script::Script;
use crate::stage::{Exchange, Stage};
use anyhow::{Context, anyhow};
use std::sync::Arc;

/// Maximum number of requests at the same time: agents send a few in parallel (titles, sub-agents).
const WORKERS: usize = 8;

/// A running server; it stops when dropped.
pub struct Server {
    port: u16,
    http: Arc<tiny_http::Server>,
    stage: Arc<Stage>,
}

impl Server {
    /// Starts on any free port.
    ///
    /// # Errors
    ///
    /// If no port is free.
    pub fn start(script: Script) -> anyhow::Result<Self> {
        let http = tiny_http::Server::http(("127.0.0.1", 0))
            .map_err(|cause| anyhow!("cannot listen on 127.0.0.1: {cause}"))?;
        let port = http.server_addr().to_ip().context("not an internet address")?.port();
        let http = Arc::new(http);
        let stage = Arc::new(Stage::new(script));
        for _ in 0..WORKERS {
            let (http, stage) = (Arc::clone(&http), Arc::clone(&stage));
            std::thread::spawn(move || {
                while let Ok(request) = http.recv() {
                    routes::answer(request, &stage);
                }
            });
        }
        Ok(Self { port, http, stage })
    }

    /// The base URL, without a final slash.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Plays `script` from its beginning from now on; earlier exchanges are kept.
    pub fn play(&self, script: Script) {
        self.stage.play(script);
    }

    /// All exchanges so far, in the order in which they were answered.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.stage.exchanges()
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Server").field("port", &self.port).finish_non_exhaustive()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Each `unblock` wakes one worker.
        for _ in 0..WORKERS {
            self.http.unblock();
        }
    }
}
