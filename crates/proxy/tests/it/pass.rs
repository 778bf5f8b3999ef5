//! What need not change passes unchanged, in both directions.

use std::io::Write;

use crate::exchange::{Running, Service, gate, rest, send};

/// A body with what a program that parses and writes JSON again would change.
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
        ("accept", "application/json"),
        ("anthropic-beta", "a,b"),
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
    let mut names = request.names();
    names.sort_unstable();
    let expect = [
        "accept",
        "anthropic-beta",
        "content-length",
        "content-type",
        "host",
        "user-agent",
        "x-api-key",
    ];
    assert_eq!(names, expect);
    for (name, value) in &headers[..5] {
        assert_eq!(request.header(name), Some(*value), "{name}");
    }
    assert_eq!(request.header("host"), Some(service.address.to_string().as_str()));
    assert!(response.first.starts_with("HTTP/1.1 201"), "{}", response.first);
    assert_eq!(response.header("x-request-id"), Some("7"));
    let cookies = response.headers.iter().filter(|(name, _)| name == "set-cookie").count();
    assert_eq!((cookies, response.body.as_slice()), (2, b"{}".as_slice()));
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
    let nobody = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let proxy = Running::start(&nobody, folder.path(), |options| options);
    let response = proxy.post("/v1/messages?key=secret", &[("x-api-key", "secret")], ODD);
    assert!(response.first.starts_with("HTTP/1.1 502"), "{}", response.first);
    let body = String::from_utf8(response.body).expect("text");
    assert!(body.contains("cannot reach the model service"), "{body}");
    assert!(!body.contains("secret"), "{body}");
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
    // The end of a whole body would be here.
    assert_eq!(client.chunk(), None);
    assert!(rest(&mut client).is_empty());
}

#[test]
fn a_token_is_required_where_one_is_set() {
    let service = Service::start(|_, _, stream| send(stream, 200, "application/json", "{}"));
    let folder = tempfile::tempdir().expect("a folder");
    let with_token = |options| epitome_proxy::Options { token: Some("00ff".into()), ..options };
    let proxy = Running::start(&service.url(), folder.path(), with_token);
    assert!(proxy.address.ends_with("/00ff"), "{}", proxy.address);
    assert!(proxy.post("/v1/messages", &[], ODD).first.starts_with("HTTP/1.1 200"));
    assert_eq!(service.requests()[0].first, "POST /v1/messages HTTP/1.1");
    let address = proxy.address.trim_end_matches("/00ff").to_owned();
    let other = Running::start(&service.url(), folder.path(), with_token);
    drop(other);
    let mut stream = std::net::TcpStream::connect(&address["http://".len()..]).expect("it listens");
    stream
        .write_all(b"POST /v1/messages HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .expect("sent");
    let mut response = String::new();
    std::io::Read::read_to_string(&mut stream, &mut response).expect("a response");
    assert!(response.starts_with("HTTP/1.1 403"), "{response}");
    assert_eq!(service.requests().len(), 1);
}

#[test]
fn a_websocket_is_refused_with_a_reason() {
    let service = Service::answering(200, "{}");
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&service.url(), folder.path(), |options| options);
    let mut client = proxy.connect();
    let upgrade = [("connection", "Upgrade"), ("upgrade", "websocket")];
    client.send("GET", "/v1/responses", &upgrade, b"");
    let response = client.response().expect("a response");
    assert!(response.first.starts_with("HTTP/1.1 426"), "{}", response.first);
    assert!(service.requests().is_empty());
}
