//! The client that passes requests on. It adds no header but `host`, and `proxy-authorization` for
//! a proxy; it changes no path, follows no redirect and decodes no body.

use std::error::Error as StdError;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use epitome_llm::prepare_tls;
use hyper::body::Incoming;
use hyper::header::PROXY_AUTHORIZATION;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::{Request, Response, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use rustls_platform_verifier::ConfigVerifierExt as _;
use tower_service::Service;

use crate::refusal::{AnyBody, AnyError};

/// Timeout for making a connection. The wait for a response has no timeout, because a model may
/// think for long.
const CONNECT: Duration = Duration::from_secs(30);
/// After this time without data, the system asks whether the other side is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Sends requests to services.
#[derive(Clone)]
pub(crate) struct Client {
    http: legacy::Client<Connector, AnyBody>,
    proxies: Arc<Matcher>,
}

impl Client {
    /// Makes a client that uses these proxies.
    ///
    /// # Errors
    ///
    /// If the system has no certificates.
    pub(crate) fn new(proxies: Matcher) -> Result<Client, rustls::Error> {
        prepare_tls();
        let proxies = Arc::new(proxies);
        let connector = Connector::new(ClientConfig::with_platform_verifier()?, &proxies);
        let http = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http1_preserve_header_case(true)
            .build(connector);
        Ok(Client { http, proxies })
    }

    /// Sends a request, and returns the response as soon as its headers are there.
    ///
    /// # Errors
    ///
    /// If the service cannot be reached, or ends the connection before it answers.
    pub(crate) async fn send(
        &self,
        mut request: Request<AnyBody>,
    ) -> Result<Response<Incoming>, legacy::Error> {
        if let Some(authorization) = self.proxy_authorization(request.uri()) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, authorization);
        }
        self.http.request(request).await
    }

    /// The authorization for a proxy that reads the request itself. In a tunnel it is sent when the
    /// tunnel is made.
    fn proxy_authorization(&self, uri: &Uri) -> Option<hyper::header::HeaderValue> {
        let is_plain = uri.scheme_str() == Some("http");
        let proxy = self.proxies.intercept(uri).filter(|_| is_plain)?;
        proxy.basic_auth().cloned()
    }
}

/// Connects to services, directly or through a proxy.
#[derive(Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector,
    tls: Arc<ClientConfig>,
    proxies: Arc<Matcher>,
}

impl Connector {
    fn new(tls: ClientConfig, proxies: &Arc<Matcher>) -> Connector {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE));
        Connector { tcp, tls: Arc::new(tls), proxies: Arc::clone(proxies) }
    }

    async fn connect(self, service: Uri) -> Result<ServiceConnection, AnyError> {
        let Some(proxy) = self.proxies.intercept(&service) else {
            let stream = HttpsConnector::from((self.tcp, self.tls)).call(service).await?;
            return Ok(ServiceConnection { stream: Box::new(stream), is_proxied: false });
        };
        if !matches!(proxy.uri().scheme_str(), Some("http" | "https")) {
            return Err("only HTTP proxies can be used".into());
        }
        if service.scheme_str() == Some("https") {
            self.connect_through(&proxy, service).await
        } else {
            let stream = HttpsConnector::from((self.tcp, self.tls)).call(proxy.uri().clone());
            Ok(ServiceConnection { stream: Box::new(stream.await?), is_proxied: true })
        }
    }

    /// Connects through a tunnel that a proxy makes.
    async fn connect_through(
        self,
        proxy: &Intercept,
        service: Uri,
    ) -> Result<ServiceConnection, AnyError> {
        let to_proxy = HttpsConnector::from((self.tcp, Arc::clone(&self.tls)));
        let mut tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
        if let Some(authorization) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(authorization.clone());
        }
        let stream = HttpsConnector::from((tunnel, self.tls)).call(service).await?;
        Ok(ServiceConnection { stream: Box::new(stream), is_proxied: false })
    }
}

impl Service<Uri> for Connector {
    type Response = ServiceConnection;
    type Error = AnyError;
    type Future = Pin<Box<dyn Future<Output = Result<ServiceConnection, AnyError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), AnyError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, service: Uri) -> Self::Future {
        let connecting = self.clone().connect(service);
        Box::pin(async move {
            let connected = tokio::time::timeout(CONNECT, connecting).await;
            connected.unwrap_or_else(|_| Err("no connection within 30 seconds".into()))
        })
    }
}

/// A connection to a service, or to a proxy that passes requests on.
pub(crate) struct ServiceConnection {
    stream: Box<dyn Stream>,
    /// Whether the other side is a proxy, which is sent whole URLs.
    is_proxied: bool,
}

/// The bytes of a connection, encrypted or not.
trait Stream: Read + Write + Connection + Send + Unpin {}

impl<T: Read + Write + Connection + Send + Unpin> Stream for T {}

impl Connection for ServiceConnection {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.is_proxied)
    }
}

impl Read for ServiceConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for ServiceConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }
}

/// Why a request has no response, with all causes.
pub(crate) fn describe(err: &legacy::Error) -> String {
    // The error itself only says in which step it happened.
    let Some(mut cause) = StdError::source(err) else { return err.to_string() };
    let mut message = cause.to_string();
    while let Some(next) = cause.source() {
        message = format!("{message}: {next}");
        cause = next;
    }
    message
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::sync::mpsc::{Receiver, channel};

    use http_body_util::{BodyExt as _, Empty};

    use super::*;

    /// A proxy that answers 403 to each request. Returns its address and the heads that it gets.
    fn refusing_proxy() -> (String, Receiver<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (report, reported) = channel();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let reader = BufReader::new(stream.try_clone().expect("a socket"));
                let lines = reader.lines().map_while(Result::ok);
                let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                report.send(head).ok();
                stream.write_all(b"HTTP/1.1 403 X\r\ncontent-length: 0\r\n\r\n").ok();
            }
        });
        (address, reported)
    }

    /// The outcome of a request through the proxy, and what the proxy got.
    fn through_proxy(url: &str) -> (Result<u16, String>, Vec<String>) {
        let (address, heads) = refusing_proxy();
        let proxies = Matcher::builder().all(format!("http://me:secret@{address}")).build();
        let client = Client::new(proxies).expect("certificates");
        let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
        let request = Request::get(url).body(body).expect("a request");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let sent = runtime.expect("a runtime").block_on(client.send(request));
        let outcome = match sent {
            Ok(response) => Ok(response.status().as_u16()),
            Err(err) => Err(describe(&err)),
        };
        (outcome, heads.recv().expect("a request"))
    }

    #[test]
    fn a_proxy_gets_the_whole_url_and_makes_tunnels_for_tls() {
        let authorization = "proxy-authorization: Basic bWU6c2VjcmV0";
        let (outcome, head) = through_proxy("http://gateway.example/v1/../models?a=b");
        assert_eq!(outcome, Ok(403));
        let first = "GET http://gateway.example/v1/../models?a=b HTTP/1.1";
        assert_eq!(head, [first, authorization, "host: gateway.example"]);

        let (outcome, head) = through_proxy("https://gateway.example/v1/models");
        assert_eq!(outcome, Err("tunnel error: unsuccessful".to_owned()));
        assert_eq!(head[0], "CONNECT gateway.example:443 HTTP/1.1");
        assert!(head.iter().any(|line| line.eq_ignore_ascii_case(authorization)), "{head:?}");
    }
}
