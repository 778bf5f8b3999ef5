//! The listener.

use crate::routes;
use crate::script::Script;
use crate::stage::{Exchange, Stage};
use anyhow::{Context, anyhow};
use std::sync::Arc;

/// Agents send a few requests side by side (titles, sub-agents); no more than these are served.
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
    /// When no port can be had.
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

    /// Plays `script` from its beginning from now on; what was asked before stays known.
    pub fn play(&self, script: Script) {
        self.stage.play(script);
    }

    /// Everything asked so far, in the order it was answered.
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
        // Each `unblock` frees one worker from waiting.
        for _ in 0..WORKERS {
            self.http.unblock();
        }
    }
}
