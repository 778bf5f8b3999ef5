//! Limits for connections: how many are open at once, and how long each may take.
//!
//! Every program on this machine can connect. A program without the token must not be able to keep
//! the viewer from answering or from ending.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc, watch};

/// The limits for connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of open connections.
    pub connections: usize,
    /// How long the head of a request may take, and how long a connection may be idle.
    pub head: Duration,
    /// How long the open connections may still take when the server ends.
    pub end: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let head = Duration::from_secs(10);
        Limits { connections: 64, head, end: Duration::from_millis(500) }
    }
}

/// How long accepting pauses after the system returned an error instead of a connection, usually
/// because too many files are open.
const PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections until `end`. Then signals `stop`, and waits until the open connections end,
/// at most for [`Limits::end`].
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: &watch::Sender<bool>,
    end: impl Future<Output = ()>,
) {
    let open = Arc::new(Open::default());
    // The channel closes when the last connection ends.
    let (alive, mut all_closed) = mpsc::channel::<()>(1);
    let mut end = pin!(end);
    loop {
        let (stream, peer) = tokio::select! {
            () = &mut end => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(_) => {
                    open.close_one();
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
        };
        let Some(connection) = open.add(limits.connections) else { continue };
        let alive = alive.clone();
        let stopped = stop.subscribe();
        let answered =
            answer(stream, peer, router.clone(), Arc::clone(&connection), stopped, limits);
        let open = Arc::clone(&open);
        tokio::spawn(async move {
            // An error of one connection does not affect the others.
            answered.await.ok();
            open.remove(&connection);
            drop(alive);
        });
    }
    drop(listener);
    stop.send(true).ok();
    drop(alive);
    tokio::time::timeout(limits.end, all_closed.recv()).await.ok();
}

/// Serves the requests of a connection.
async fn answer(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    connection: Arc<Connection>,
    mut stopped: watch::Receiver<bool>,
    limits: Limits,
) -> hyper::Result<()> {
    let router = TowerToHyperService::new(router);
    let known = Arc::clone(&connection);
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        request.extensions_mut().insert(Arc::clone(&known));
        router.call(request)
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .serve_connection(TokioIo::new(stream), service);
    let mut served = pin!(served);
    let mut is_ending = false;
    loop {
        tokio::select! {
            done = served.as_mut() => return done,
            () = connection.closed.notified() => return Ok(()),
            _ = stopped.changed(), if !is_ending => {
                is_ending = true;
                served.as_mut().graceful_shutdown();
            }
        }
    }
}

/// An open connection.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    /// Whether a request of the connection had the token.
    is_known: AtomicBool,
    closed: Notify,
}

impl Connection {
    /// Marks that a request of this connection had the token. The connection is then not closed to
    /// make room for others.
    pub(crate) fn know(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }
}

/// The open connections, the oldest first.
#[derive(Debug, Default)]
struct Open(Mutex<Vec<Arc<Connection>>>);

impl Open {
    /// Adds a connection. If there is no room, closes the oldest connection of which no request had
    /// the token. `None` if there is no such connection: the new one is then refused.
    fn add(&self, most: usize) -> Option<Arc<Connection>> {
        let mut all = self.all();
        if all.len() >= most {
            close_oldest(&mut all)?;
        }
        let connection = Arc::new(Connection::default());
        all.push(Arc::clone(&connection));
        Some(connection)
    }

    fn close_one(&self) {
        close_oldest(&mut self.all());
    }

    fn remove(&self, connection: &Arc<Connection>) {
        self.all().retain(|it| !Arc::ptr_eq(it, connection));
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the oldest connection of which no request had the token. `None` if there is none.
fn close_oldest(all: &mut Vec<Arc<Connection>>) -> Option<()> {
    let at = all.iter().position(|it| !it.is_known.load(Ordering::Relaxed))?;
    all.remove(at).closed.notify_one();
    Some(())
}
