//! WebSockets, which pass unread or are refused.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use epitome::wire::ledger::{End, Ledger, Treatment};
use epitome_model::MicroDollars;
use epitome_proxy::Options;
use tungstenite::client::IntoClientRequest as _;
use tungstenite::handshake::server::{Request, Response};
use tungstenite::{Message, WebSocket, accept_hdr, client};

use crate::exchange::{Running, Service};

/// The path and the headers of the requests that a service got.
type Heads = Arc<Mutex<Vec<(String, Vec<(String, String)>)>>>;

/// A service that takes WebSockets, and sends each message back twice.
#[expect(clippy::result_large_err, reason = "the error is that of the library")]
fn echo() -> (SocketAddr, Heads) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let heads = Heads::default();
    let known = Arc::clone(&heads);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let note = |request: &Request, response: Response| {
                let headers = request.headers().iter().map(|(name, value)| {
                    (name.to_string(), value.to_str().expect("text").to_owned())
                });
                let path = request.uri().to_string();
                known.lock().expect("no test panicked").push((path, headers.collect()));
                Ok(response)
            };
            let mut socket = accept_hdr(stream, note).expect("a handshake");
            while let Ok(message) = socket.read() {
                if message.is_text() || message.is_binary() {
                    socket.send(message.clone()).expect("it is read");
                    socket.send(message).expect("it is read");
                }
            }
        }
    });
    (address, heads)
}

/// Opens a WebSocket through a proxy.
fn open(
    proxy: &Running,
    path: &str,
    headers: &[(&'static str, &str)],
) -> Result<WebSocket<TcpStream>, u16> {
    let url = format!("{}{path}", proxy.address.replace("http://", "ws://"));
    let mut request = url.into_client_request().expect("a URL");
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().expect("a value"));
    }
    let host = request.uri().authority().expect("a host").to_string();
    let stream = TcpStream::connect(host).expect("it listens");
    match client(request, stream) {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => {
            Err(response.status().as_u16())
        }
        Err(err) => panic!("{err}"),
    }
}

/// Sends a text and some bytes through a WebSocket, reads the answers, and closes it.
fn converse(mut socket: WebSocket<TcpStream>) {
    let long = Message::binary(vec![7; 3 << 20]);
    for message in [Message::text("Hi"), long] {
        socket.send(message.clone()).expect("it is read");
        for _ in 0..2 {
            assert!(socket.read().expect("an answer") == message);
        }
    }
    socket.close(None).expect("it is open");
    while socket.read().is_ok() {}
}

fn with_websockets(options: Options) -> Options {
    Options { websockets: true, ..options }
}

#[test]
fn a_websocket_passes_in_both_directions_and_is_counted() {
    let (address, heads) = echo();
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&format!("http://{address}"), folder.path(), with_websockets);
    let headers = [("authorization", "Bearer k"), ("openai-beta", "responses_websockets=v2")];
    converse(open(&proxy, "/v1/responses?a=b", &headers).expect("a WebSocket"));
    converse(open(&proxy, "/v1/realtime", &headers).expect("a WebSocket"));
    let totals = proxy.proxy.totals();
    assert_eq!((totals.websockets, totals.requests, totals.metered), (2, 1, 0));
    drop(proxy);
    let heads = heads.lock().expect("no test panicked");
    let paths: Vec<&str> = heads.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["/v1/responses?a=b", "/v1/realtime"]);
    for (name, value) in [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("authorization", "Bearer k"),
        ("openai-beta", "responses_websockets=v2"),
        ("host", &address.to_string()),
    ] {
        assert!(heads[0].1.contains(&(name.to_owned(), value.to_owned())), "{name}: {heads:?}");
    }
    let lines = Ledger::new(folder.path()).read(None).expect("a ledger").lines;
    let counted: Vec<_> =
        lines.iter().map(|it| (it.api.as_str(), it.treatment, it.status, it.end)).collect();
    assert_eq!(counted, [("openai-responses", Treatment::Passed, Some(101), End::Complete)]);
}

/// What becomes of a WebSocket of a model API.
fn outcome(
    folder: &Path,
    headers: &[(&'static str, &str)],
    change: impl FnOnce(Options) -> Options,
) -> Result<(), u16> {
    let (address, _) = echo();
    let proxy = Running::start(&format!("http://{address}"), folder, change);
    open(&proxy, "/v1/responses", headers).map(converse)
}

#[test]
fn a_websocket_of_a_model_api_is_refused_unless_it_is_wanted() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(outcome(folder.path(), &[], |options| options), Err(426));
    assert_eq!(outcome(folder.path(), &[], with_websockets), Ok(()));
    let bypass = [("x-epitome-bypass", "1")];
    assert_eq!(outcome(folder.path(), &bypass, |options| options), Ok(()));
    // What is not counted cannot be in a budget.
    let with_budget = |options| Options { budget: Some(MicroDollars(1)), ..options };
    let both = |options| with_budget(with_websockets(options));
    assert_eq!(outcome(folder.path(), &bypass, both), Err(426));
}

#[test]
fn a_websocket_needs_the_token() {
    let (address, heads) = echo();
    let folder = tempfile::tempdir().expect("a folder");
    let with_token = |options| Options { token: Some("00ff".into()), ..with_websockets(options) };
    let mut proxy = Running::start(&format!("http://{address}"), folder.path(), with_token);
    converse(open(&proxy, "/v1/responses", &[]).expect("a WebSocket"));
    proxy.address = proxy.address.replace("/00ff", "");
    assert_eq!(open(&proxy, "/v1/responses", &[]).map(drop), Err(403));
    assert_eq!(heads.lock().expect("no test panicked").len(), 1);
}

#[test]
fn a_service_without_websockets_and_other_protocols_are_answered_over_http() {
    let service = Service::answering(404, "{}");
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&service.url(), folder.path(), with_websockets);
    assert_eq!(open(&proxy, "/v1/responses", &[]).map(drop), Err(404));
    let h2c = [("connection", "Upgrade, HTTP2-Settings"), ("upgrade", "h2c")];
    let response = proxy.post("/v1/messages", &h2c, "{}");
    assert!(response.first.starts_with("HTTP/1.1 404"), "{}", response.first);
    let sent = &service.requests()[1];
    assert_eq!((sent.header("upgrade"), sent.body.as_slice()), (None, b"{}".as_slice()));
}
