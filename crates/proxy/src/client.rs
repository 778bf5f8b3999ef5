//! The client that sends requests to services. It adds only headers that the connection needs, such
//! as `host`, or `proxy-authorization` for an HTTP proxy. It changes no path, follows no redirect
//! and decodes no body.

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
use rustls::{AlertDescription, ClientConfig};
use rustls_platform_verifier::ConfigVerifierExt as _;
use tower_service::Service;

use crate::refusal::{AnyBody, AnyError};

/// Timeout for making a connection. The wait for a response has no timeout, because a model may
/// think for long.
const CONNECT: Duration = Duration::from_secs(30);
/// After this time without data, the operating system checks whether the other side can still be
/// reached (TCP keepalive).
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
        Ok(Client::with_tls(ClientConfig::with_platform_verifier()?, proxies))
    }

    fn with_tls(tls: ClientConfig, proxies: Arc<Matcher>) -> Client {
        let http = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http1_preserve_header_case(true)
            .build(Connector::new(tls, &proxies));
        Client { http, proxies }
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

    /// The value of the header `proxy-authorization` for a request to a service. Only a request
    /// without TLS has this header: for TLS, the HTTP proxy got the authorization when it made the
    /// tunnel. `None` also if the request goes through no proxy, or if the address of the proxy has
    /// no user name.
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
    /// The settings of TLS for HTTP/1.1.
    tls: Arc<ClientConfig>,
    /// The settings of TLS for HTTP/2, for services that refuse HTTP/1.1.
    tls_http2: Arc<ClientConfig>,
    proxies: Arc<Matcher>,
}

impl Connector {
    fn new(mut tls: ClientConfig, proxies: &Arc<Matcher>) -> Connector {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE));
        let mut tls_http2 = tls.clone();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        tls_http2.alpn_protocols = vec![b"h2".to_vec()];
        let (tls, tls_http2) = (Arc::new(tls), Arc::new(tls_http2));
        Connector { tcp, tls, tls_http2, proxies: Arc::clone(proxies) }
    }

    async fn connect(self, service: Uri) -> Result<ServiceConnection, AnyError> {
        let Some(proxy) = self.proxies.intercept(&service) else {
            return self.connect_over(self.tcp.clone(), service).await;
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
        let to_proxy = HttpsConnector::from((self.tcp.clone(), Arc::clone(&self.tls)));
        let mut tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
        if let Some(authorization) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(authorization.clone());
        }
        self.connect_over(tunnel, service).await
    }

    /// Connects to a service, over HTTP/1.1 unless the service refuses it.
    async fn connect_over<C>(
        &self,
        transport: C,
        service: Uri,
    ) -> Result<ServiceConnection, AnyError>
    where
        C: Service<Uri> + Clone,
        C::Response: Connection + Read + Write + Send + Unpin + 'static,
        C::Future: Send + 'static,
        C::Error: Into<AnyError>,
    {
        let over = |tls: &Arc<ClientConfig>| {
            HttpsConnector::from((transport.clone(), Arc::clone(tls))).call(service.clone())
        };
        let stream = match over(&self.tls).await {
            Err(err) if is_other_protocol_wanted(&*err) => over(&self.tls_http2).await?,
            connected => connected?,
        };
        Ok(ServiceConnection { stream: Box::new(stream), is_proxied: false })
    }
}

/// Whether a service ended the handshake because it does not speak the protocol it was offered.
fn is_other_protocol_wanted(err: &(dyn StdError + 'static)) -> bool {
    let alert = rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol);
    let wrapped = err.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    err.downcast_ref::<rustls::Error>() == Some(&alert)
        || wrapped.is_some_and(|cause| is_other_protocol_wanted(cause))
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
    // The outermost error only names the step that failed.
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
    use std::convert::Infallible;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::sync::mpsc::{Receiver, channel};

    use bytes::Bytes;
    use http_body_util::{BodyExt as _, Empty, Full};
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use hyper_util::server::conn::auto;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::{RootCertStore, ServerConfig};
    use tokio_rustls::TlsAcceptor;

    use super::*;

    /// Starts a proxy that answers 403 to each request. Returns its address, and a channel that
    /// receives the lines of each request's head.
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

    /// Sends a request for `url` through a [`refusing_proxy`]. Returns the outcome, and the head of
    /// the request that this proxy got.
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

    /// Starts a service over TLS that speaks only these protocols. It answers each request with the
    /// version of HTTP, and whether the request has the header `host`. Returns its port.
    fn tls_service(protocols: &[&str]) -> u16 {
        let certificate = include_bytes!("client/localhost.certificate.der").as_slice().into();
        let key = include_bytes!("client/localhost.key.der").as_slice();
        let key = PrivateKeyDer::try_from(key).expect("a key");
        let mut tls = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("a certificate");
        tls.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        listener.set_nonblocking(true).expect("a socket");
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
                while let Ok((stream, _)) = listener.accept().await {
                    let Ok(stream) = acceptor.accept(stream).await else { continue };
                    let service = service_fn(async |request: Request<Incoming>| {
                        let host = request.headers().contains_key("host");
                        let text = format!("{:?} {host}", request.version());
                        Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(text)))
                    });
                    let builder = auto::Builder::new(TokioExecutor::new());
                    builder.serve_connection(TokioIo::new(stream), service).await.ok();
                }
            });
        });
        port
    }

    /// What a [`tls_service`] that speaks these protocols answers to the client.
    fn over_tls(protocols: &[&str]) -> String {
        prepare_tls();
        let port = tls_service(protocols);
        let mut roots = RootCertStore::empty();
        let certificate = include_bytes!("client/localhost.certificate.der").as_slice().into();
        roots.add(certificate).expect("a certificate");
        let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let client = Client::with_tls(tls, Arc::new(Matcher::builder().build()));
        let request = Request::get(format!("https://localhost:{port}/"));
        let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
        let request = request.body(body).expect("a request");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let response = client.send(request).await.expect("a response");
            let body = response.into_body().collect().await.expect("a body").to_bytes();
            String::from_utf8_lossy(&body).into_owned()
        })
    }

    #[test]
    fn a_service_that_refuses_http_1_1_gets_http_2() {
        assert_eq!(over_tls(&["h2"]), "HTTP/2.0 false");
        assert_eq!(over_tls(&["h2", "http/1.1"]), "HTTP/1.1 true");
        assert_eq!(over_tls(&[]), "HTTP/1.1 true");
    }
}
