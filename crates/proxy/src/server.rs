//! The server: a local port whose requests are passed on to model services.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;

use crate::proxy::{Options, Proxy};
use crate::telemetry::Exporter;

/// How long the first bytes of a connection may take, and over HTTP/1.1 the head of each request.
const HEAD: Duration = Duration::from_secs(120);
/// The maximum size of the headers of a request over HTTP/2, in bytes: about as much as is accepted
/// over HTTP/1.1.
const HEADERS: u32 = 400 * 1024;
/// How many requests a client may have on one connection of HTTP/2 at a time.
const STREAMS: u32 = 1000;
/// How long the server waits at its end for work that cannot be cut off.
const END: Duration = Duration::from_secs(1);
/// The pause after a connection could not be accepted, for example for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// The least length of a token for an address that other machines can reach, in bytes. Without a
/// minimum, an environment variable that is not set would make an empty token.
const LEAST_TOKEN: usize = 16;

/// Why a proxy cannot listen.
#[derive(Debug)]
pub enum BindError {
    /// An address that other machines can reach needs a token of at least 16 bytes.
    NoToken(SocketAddr),
    /// The system refused the address, or has no certificates.
    System(io::Error),
}

impl std::fmt::Display for BindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BindError::NoToken(address) => {
                write!(
                    f,
                    "other machines can reach {address}: it needs a token of at least 16 bytes"
                )
            }
            BindError::System(err) => write!(f, "{err}"),
        }
    }
}

impl std::error::Error for BindError {}

/// A proxy that is bound to a port and does not serve requests yet.
///
/// ```no_run
/// use epitome_passes::built_in;
/// use epitome_proxy::{Options, Server};
/// use epitome_tokens::O200k;
///
/// let recipe = built_in("epitome").expect("a recipe of the program");
/// let options = Options::new(recipe, &const { O200k::new() }, std::env::temp_dir());
/// let server = Server::bind("127.0.0.1:0".parse()?, options)?;
/// println!("ANTHROPIC_BASE_URL={}", server.address());
/// server.run_until(std::future::pending())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    proxy: Arc<Proxy>,
    exporter: Option<Exporter>,
}

impl Server {
    /// Binds an address; port 0 means any free port.
    ///
    /// # Errors
    ///
    /// [`BindError`], if the address cannot be bound, for example because the port is in use; if
    /// the system has no certificates; or if the address needs a token and `options` has none that
    /// is long enough.
    pub fn bind(address: SocketAddr, options: Options) -> Result<Server, BindError> {
        let is_guarded = options.token.as_ref().is_some_and(|token| token.len() >= LEAST_TOKEN);
        if !address.ip().is_loopback() && !is_guarded {
            return Err(BindError::NoToken(address));
        }
        let listener = TcpListener::bind(address).map_err(BindError::System)?;
        let address = listener.local_addr().map_err(BindError::System)?;
        let made = Proxy::new(options).map_err(|err| BindError::System(io::Error::other(err)));
        let (proxy, exporter) = made?;
        Ok(Server { listener, address, proxy: Arc::new(proxy), exporter })
    }

    /// The base URL for agents, with the token if there is one, without a slash at its end.
    pub fn address(&self) -> String {
        match self.proxy.token() {
            Some(token) => format!("http://{}/{token}", self.address),
            None => format!("http://{}", self.address),
        }
    }

    /// The proxy, which passes requests on and counts them.
    pub fn proxy(&self) -> Arc<Proxy> {
        Arc::clone(&self.proxy)
    }

    /// Serves requests until `end` is complete. Responses that are still being sent then are cut
    /// off.
    ///
    /// # Errors
    ///
    /// If the system cannot start threads, or does not let the program listen on the port.
    pub fn run_until(self, end: impl Future<Output = ()>) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let exporting = self.exporter.map(Exporter::start).transpose()?;
        let proxy = Arc::clone(&self.proxy);
        let done = runtime.block_on(async {
            self.listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            serve(listener, self.proxy, end).await;
            Ok(())
        });
        // Requests that are cut off are still written to the ledger.
        runtime.shutdown_timeout(END);
        if let Some(exporting) = exporting {
            proxy.end();
            exporting.join().ok();
        }
        done
    }
}

/// Accepts connections until `end` is complete.
async fn serve(
    listener: tokio::net::TcpListener,
    proxy: Arc<Proxy>,
    end: impl Future<Output = ()>,
) {
    let mut end = pin!(end);
    loop {
        tokio::select! {
            () = &mut end => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(tokio::spawn(answer(stream, Arc::clone(&proxy)))),
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
        }
    }
}

/// Serves the requests of a connection.
async fn answer(stream: TcpStream, proxy: Arc<Proxy>) {
    // Events of a stream are small, and each is sent at once.
    stream.set_nodelay(true).ok();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let proxy = Arc::clone(&proxy);
        async move { Ok::<_, Infallible>(proxy.answer(request).await) }
    });
    // The version of HTTP depends on the first bytes that the client sends. If none come within
    // `HEAD`, the connection is closed.
    let Ok(Ok(())) = tokio::time::timeout(HEAD, stream.readable()).await else { return };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    let mut http1 = builder.http1();
    http1.timer(TokioTimer::new()).header_read_timeout(HEAD).preserve_header_case(true);
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).max_header_list_size(HEADERS).max_concurrent_streams(STREAMS);
    let served = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    // An error of one connection does not affect the others.
    served.await.ok();
}
