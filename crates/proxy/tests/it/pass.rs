//! What need not change passes unchanged, in both directions.

use std::io::Write;
use std::net::TcpStream;

use epitome_passes::built_in;
use epitome_proxy::{Options, Server};
use epitome_tokens::O200k;
use serde_json::{Value, json};

use crate::exchange::{Running, Service, gate, rest, send};

/// A body that a program would change if it parsed it as JSON and wrote it again.
const ODD: &str = "{ \"model\":\"m\", \"temperature\":1.0, \"max_tokens\": 1e3,\n\"messages\":[ \
    {\"role\":\"user\",\"content\":\"a\\/b \\u00e9\"} ], \"x\":{\"b\":1,\"a\":2}, \"x\":3 }";

#[test]
fn a_request_and_its_response_pass_unchanged() {
    let service = Service::start(|_, _, stream| {
        let head = "HTTP/1.1 201 X\r\nX-Request-Id: 7\r\nconnection: keep-alive\r\n\
            set-cookie: a\r\nset-cookie: b\r\ncontent-length: 2\r\n\r\n{}";
        stream.write_all(head.as_bytes()).expect("it is read");
    });
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&service.url(), folder.path(), |options| options);
    let headers = [
        ("x-api-key", "sk-1"),
        ("Anthropic-Beta", "a,b"),
        ("user-agent", "claude-cli/2"),
        ("content-type", "application/json"),
        ("connection", "keep-alive, x-hop"),
        ("x-hop", "1"),
    ];
    let response = proxy.post("/v1/messages?beta=true", &headers, ODD);
    let requests = service.requests();
    let [request] = requests.as_slice() else { panic!("one request: {requests:?}") };
    assert_eq!(request.first, "POST /v1/messages?beta=true HTTP/1.1");
    assert_eq!(request.body, ODD.as_bytes());
    let length = format!("content-length: {}", ODD.len());
    let host = format!("host: {}", service.address);
    let expect = [
        "x-api-key: sk-1",
        "Anthropic-Beta: a,b",
        "user-agent: claude-cli/2",
        "content-type: application/json",
        &length,
        &host,
    ];
    assert_eq!(request.lines, expect);
    assert!(response.first.starts_with("HTTP/1.1 201"), "{}", response.first);
    let lines: Vec<&str> = response
        .lines
        .iter()
        .map(String::as_str)
        .filter(|line| !line.starts_with("date"))
        .collect();
    let expect = ["X-Request-Id: 7", "set-cookie: a", "set-cookie: b", "content-length: 2"];
    assert_eq!((lines.as_slice(), response.body.as_slice()), (&expect[..], b"{}".as_slice()));
}

#[test]
fn a_path_passes_byte_for_byte() {
    let service = Service::answering(200, "{}");
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&format!("{}/base", service.url()), folder.path(), |it| it);
    let path = "/v1/files/../%2e%2E/a%20b//./c|d?x=/../&y='z'";
    proxy.post(path, &[], "");
    assert_eq!(service.requests()[0].first, format!("POST /base{path} HTTP/1.1"));
}

#[test]
fn unknown_paths_and_methods_pass_through() {
    let service = Service::answering(200, "[]");
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&format!("{}/base", service.url()), folder.path(), |it| it);
    let mut client = proxy.connect();
    client.send("GET", "/v1/models?limit=2", &[("accept", "*/*")], b"");
    assert_eq!(client.response().expect("a response").body, b"[]");
    let chunked = [("accept", "*/*"), ("transfer-encoding", "chunked")];
    client.send("PUT", "/v1/files", &chunked, b"3\r\nabc\r\n0\r\n\r\n");
    assert_eq!(client.response().expect("a response").body, b"[]");
    let requests = service.requests();
    let lines: Vec<&str> = requests.iter().map(|request| request.first.as_str()).collect();
    assert_eq!(lines, ["GET /base/v1/models?limit=2 HTTP/1.1", "PUT /base/v1/files HTTP/1.1"]);
    assert_eq!(requests[1].body, b"abc");
}

#[test]
fn a_stream_arrives_event_by_event() {
    let (open, opened) = gate();
    let service = Service::start(move |_, _, stream| {
        let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\
            transfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).expect("it is read");
        for event in ["data: 1\n\n", "data: 2\n\n"] {
            let chunk = format!("{:x}\r\n{event}\r\n", event.len());
            stream.write_all(chunk.as_bytes()).expect("it is read");
            opened.lock().expect("no test panicked").recv().expect("the test opens it");
        }
        stream.write_all(b"0\r\n\r\n").expect("it is read");
    });
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&service.url(), folder.path(), |options| options);
    let mut client = proxy.connect();
    client.send("POST", "/v1/messages", &[], ODD.as_bytes());
    assert_eq!(client.head().header("content-type"), Some("text/event-stream"));
    for event in ["data: 1\n\n", "data: 2\n\n"] {
        // The service sends nothing more until this event has arrived.
        assert_eq!(client.chunk().as_deref(), Some(event.as_bytes()));
        open.send(()).expect("the service waits");
    }
    assert_eq!(client.chunk().as_deref(), Some(b"".as_slice()));
}

#[test]
fn errors_of_the_service_pass_through_and_its_absence_is_reported() {
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let service = Service::answering(529, error);
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&service.url(), folder.path(), |options| options);
    let response = proxy.post("/v1/messages", &[], ODD);
    assert!(response.first.starts_with("HTTP/1.1 529"), "{}", response.first);
    assert_eq!(response.body, error.as_bytes());

    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let unreachable = format!("http://{address}");
    drop(listener);
    let proxy = Running::start(&unreachable, folder.path(), |options| options);
    let response = proxy.post("/v1/messages?key=secret", &[("x-api-key", "secret")], ODD);
    assert!(response.first.starts_with("HTTP/1.1 502"), "{}", response.first);
    let refused = TcpStream::connect(address).expect_err("no service listens there");
    let message = format!(
        "epitome proxy cannot reach the model service {unreachable}: tcp connect error: {refused}"
    );
    let error = json!({"type": "epitome_proxy", "message": message, "code": 502});
    let body: Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!(body, json!({"type": "error", "error": error}));
}

#[test]
fn a_response_that_breaks_off_breaks_off() {
    let service = Service::start(|_, _, stream| {
        let head = "HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n7\r\ndata: 1\r\n";
        stream.write_all(head.as_bytes()).expect("it is read");
        stream.shutdown(std::net::Shutdown::Both).expect("it is open");
    });
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&service.url(), folder.path(), |options| options);
    let mut client = proxy.connect();
    client.send("POST", "/v1/messages", &[], ODD.as_bytes());
    client.head();
    assert_eq!(client.chunk().as_deref(), Some(b"data: 1".as_slice()));
    // A whole body would end here with an empty chunk.
    assert_eq!(client.chunk(), None);
    assert!(rest(&mut client).is_empty());
}

#[test]
fn a_token_is_required_where_one_is_set() {
    let service = Service::start(|_, _, stream| send(stream, 200, "application/json", "{}"));
    let folder = tempfile::tempdir().expect("a folder");
    let with_token = |options| Options { token: Some("00ff".into()), ..options };
    let proxy = Running::start(&service.url(), folder.path(), with_token);
    assert!(proxy.address.ends_with("/00ff"), "{}", proxy.address);
    assert!(proxy.post("/v1/messages", &[], ODD).first.starts_with("HTTP/1.1 200"));
    assert_eq!(service.requests()[0].first, "POST /v1/messages HTTP/1.1");
    let address = proxy.address.trim_end_matches("/00ff").to_owned();
    let other = Running::start(&service.url(), folder.path(), with_token);
    drop(other);
    let mut stream = TcpStream::connect(&address["http://".len()..]).expect("it listens");
    stream
        .write_all(b"POST /v1/messages HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .expect("sent");
    let mut response = String::new();
    std::io::Read::read_to_string(&mut stream, &mut response).expect("a response");
    assert!(response.starts_with("HTTP/1.1 403"), "{response}");
    assert_eq!(service.requests().len(), 1);
}

#[test]
fn an_address_that_others_reach_needs_a_long_token() {
    let folder = tempfile::tempdir().expect("a folder");
    for token in [None, Some(""), Some("0123456789abcde")] {
        let recipe = built_in("epitome").expect("a recipe of the program");
        let options = Options {
            token: token.map(str::to_owned),
            ..Options::new(recipe, &const { O200k::new() }, folder.path().to_owned())
        };
        let bound = Server::bind("0.0.0.0:0".parse().expect("an address"), options);
        let err = bound.err().map(|err| err.to_string());
        let expect = "other machines can reach 0.0.0.0:0: it needs a token of at least 16 bytes";
        assert_eq!(err.as_deref(), Some(expect), "{token:?}");
    }
}

#[test]
fn a_compressed_response_passes_unchanged() {
    let answer = r#"{"usage":{"input_tokens":3,"output_tokens":1},"type":"message","content":[]}"#;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(answer.as_bytes()).expect("memory");
    let gzip = gzip.finish().expect("memory");
    let expect = gzip.clone();
    let service = Service::start(move |_, _, stream| {
        let head = format!(
            "HTTP/1.1 200 X\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
            gzip.len()
        );
        stream.write_all(&[head.as_bytes(), &gzip].concat()).expect("it is read");
    });
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&service.url(), folder.path(), |options| options);
    let response = proxy.post("/v1/messages", &[("accept-encoding", "gzip")], ODD);
    assert_eq!(response.header("content-encoding"), Some("gzip"));
    assert!(response.body == expect, "{:?}", response.body);
    assert_eq!(service.requests()[0].header("accept-encoding"), Some("gzip"));
}

#[test]
fn two_hundred_sessions_at_once_do_not_mix() {
    const SESSIONS: usize = 200;
    const REQUESTS: usize = 3;
    // The service answers with the body of the request.
    let service = Service::start(|_, message, stream| {
        let body = String::from_utf8(message.body.clone()).expect("text");
        send(stream, 200, "application/json", &body);
    });
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&service.url(), folder.path(), |options| options);
    std::thread::scope(|scope| {
        for session in 0..SESSIONS {
            let proxy = &proxy;
            scope.spawn(move || {
                let mut client = proxy.connect();
                let mut messages = format!(r#"{{"role":"user","content":"session {session}"}}"#);
                for request in 0..REQUESTS {
                    messages.push_str(&format!(r#",{{"role":"assistant","content":"{request}"}}"#));
                    let body = format!(r#"{{"model":"m","messages":[{messages}]}}"#);
                    client.send("POST", "/v1/messages", &[], body.as_bytes());
                    let response = client.response().expect("a response");
                    assert_eq!(String::from_utf8_lossy(&response.body), body);
                }
            });
        }
    });
    let totals = proxy.proxy.totals();
    assert_eq!((totals.requests, totals.failures), ((SESSIONS * REQUESTS) as u64, 0));
}

#[test]
fn a_slow_reader_holds_up_no_one_and_gets_everything() {
    const CHUNKS: usize = 1_000;
    const CHUNK: usize = 64 << 10;
    let written = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&written);
    let service = Service::start(move |_, message, stream| {
        if message.header("x-long").is_none() {
            return send(stream, 200, "application/json", "{}");
        }
        let head = "HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).expect("it is read");
        let chunk = format!("{CHUNK:x}\r\n{}\r\n", "x".repeat(CHUNK));
        for _ in 0..CHUNKS {
            stream.write_all(chunk.as_bytes()).expect("it is read");
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        stream.write_all(b"0\r\n\r\n").expect("it is read");
    });
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&service.url(), folder.path(), |options| options);
    let mut slow = proxy.connect();
    slow.send("POST", "/v1/messages", &[("x-long", "1")], ODD.as_bytes());
    slow.head();
    for _ in 0..20 {
        let response = proxy.post("/v1/messages", &[], ODD);
        assert_eq!(response.body, b"{}");
    }
    // Bytes that the client does not read are not collected in memory: the service waits.
    let written = written.load(std::sync::atomic::Ordering::Relaxed);
    assert!(written < CHUNKS / 2, "{written} chunks were taken from the service");
    let mut length = 0;
    while let Some(chunk) = slow.chunk().filter(|chunk| !chunk.is_empty()) {
        length += chunk.len();
    }
    assert_eq!(length, CHUNKS * CHUNK);
}

#[test]
fn a_client_that_goes_ends_the_request_to_the_service() {
    let (broken, is_broken) = std::sync::mpsc::channel();
    let broken = std::sync::Mutex::new(broken);
    let service = Service::start(move |_, _, stream| {
        let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\
            transfer-encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n";
        stream.write_all(head.as_bytes()).expect("it is read");
        // A stream without an end, unless the other side has gone.
        while stream.write_all(b"9\r\ndata: 2\n\n\r\n").is_ok() {}
        broken.lock().expect("no test panicked").send(()).expect("the test waits");
    });
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&service.url(), folder.path(), |options| options);
    let mut client = proxy.connect();
    client.send("POST", "/v1/messages", &[], ODD.as_bytes());
    client.head();
    assert_eq!(client.chunk().as_deref(), Some(b"data: 1\n\n".as_slice()));
    drop(client);
    is_broken.recv_timeout(std::time::Duration::from_secs(60)).expect("the service sees the end");
}
