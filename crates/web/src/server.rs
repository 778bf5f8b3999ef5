//! The server: a local port, its routes, and its end.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use tokio::sync::watch;

use crate::connection::{self, Limits};
use crate::guard::{Guard, guard};
use crate::options::Options;
use crate::query::encoded;
use crate::viewer::Viewer;
use crate::{asset, change, hits, list, losses, overview, plan, proxy, session, tail, versions};

/// The maximum length of a form in bytes.
const FORM: usize = 16 << 10;

/// A viewer that is bound to a port and does not serve requests yet.
pub struct Server {
    listener: TcpListener,
    guard: Arc<Guard>,
    options: Options,
    limits: Limits,
}

impl Server {
    /// Binds a port of 127.0.0.1 (for 0, any free one), and generates a token.
    ///
    /// # Errors
    ///
    /// An error if the port cannot be bound, for example because it is in use, or if the system has
    /// no randomness.
    pub fn bind(options: Options, port: u16) -> io::Result<Server> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        let guard = Arc::new(Guard::new(listener.local_addr()?.port())?);
        Ok(Server { listener, guard, options, limits: Limits::default() })
    }

    /// Sets other limits for connections.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Server {
        Server { limits, ..self }
    }

    /// The address to open, with the token.
    pub fn address(&self) -> String {
        self.guard.root()
    }

    /// The address of the list, filtered by an agent or by words. To filter by a project, the words
    /// are the path of its folder.
    pub fn address_of(&self, agent: Option<&str>, words: Option<&str>) -> String {
        let asked: Vec<String> = [("agent", agent), ("q", words)]
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", encoded(value?))))
            .collect();
        if asked.is_empty() {
            self.address()
        } else {
            format!("{}?{}", self.address(), asked.join("&"))
        }
    }

    /// Serves requests until Ctrl-C.
    ///
    /// # Errors
    ///
    /// The errors of the operating system when the server starts.
    pub fn run(self) -> io::Result<()> {
        self.run_until(async {
            // Without a handler for Ctrl-C, the server runs until it is killed.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }

    /// Serves requests until `end`. Then a running compaction or restore is completed; other
    /// responses have the time of [`Limits::end`].
    ///
    /// # Errors
    ///
    /// As [`Server::run`].
    pub fn run_until(self, end: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let done = runtime.block_on(async {
            let (stop, stopped) = watch::channel(false);
            let viewer = Arc::new(Viewer::new(self.options, self.guard.path(), stopped));
            self.listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let writes = Arc::clone(&viewer.writes);
            let router = routes(viewer, self.guard);
            connection::serve(listener, router, self.limits, &stop, end).await;
            // Waits for running writes. A write is completed even if its client disconnects.
            drop(writes.write().await);
            Ok(())
        });
        // There is no need to wait for requests that only read.
        runtime.shutdown_background();
        done
    }
}

/// The paths of the viewer. Each begins with the token, which [`guard`] has checked.
fn routes(viewer: Arc<Viewer>, known: Arc<Guard>) -> Router {
    Router::new()
        .route("/{token}/", get(list::page))
        .route("/{token}/viewer.css", get(asset::style))
        .route("/{token}/page.js", get(asset::page_script))
        .route("/{token}/viewer.js", get(asset::viewer_script))
        .route("/{token}/overview", get(overview::page))
        .route("/{token}/proxy", get(proxy::page))
        .route("/{token}/search", get(hits::page))
        .route("/{token}/s/{key}/at", get(session::at))
        .route("/{token}/s/{key}/tail", get(tail::tail))
        .route("/{token}/s/{key}/plan", get(plan::page))
        .route("/{token}/s/{key}/losses", get(losses::page))
        .route("/{token}/s/{key}/history", get(versions::page))
        .route("/{token}/s/{key}/compact", post(change::compact))
        .route("/{token}/s/{key}/restore", post(change::give_back))
        .route("/{token}/s/{key}/{file}", get(session::page))
        .route("/{token}/v/{version}/{file}", get(versions::session))
        .fallback(async || (StatusCode::NOT_FOUND, "there is nothing here\n"))
        .with_state(viewer)
        .layer(DefaultBodyLimit::max(FORM))
        .layer(from_fn_with_state(known, guard))
}
