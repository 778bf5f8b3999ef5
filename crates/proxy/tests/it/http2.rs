//! A client that speaks HTTP/2, on one connection.

use std::io::Write as _;
use std::path::Path;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::{Request, Response, StatusCode, body::Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::exchange::{Running, Service, gate, send};

/// Runs `work` with a connection of HTTP/2 to a proxy before `service`.
fn connected<T>(
    service: &Service,
    folder: &Path,
    work: impl AsyncFnOnce(SendRequest<Full<Bytes>>) -> T,
) -> T {
    let proxy = Running::start(&service.url(), folder, |options| options);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let address = proxy.address.trim_start_matches("http://");
        let stream = tokio::net::TcpStream::connect(address).await.expect("a connection");
        let shaken = handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = shaken.expect("HTTP/2");
        let connection = tokio::spawn(connection);
        let done = work(sender).await;
        connection.abort();
        done
    })
}

fn post(headers: &[(&str, &str)], body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let mut request = Request::post("http://model.example/v1/messages?beta=true");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(body.into())).expect("a request")
}

async fn whole(response: Response<Incoming>) -> (StatusCode, Bytes) {
    let status = response.status();
    (status, response.into_body().collect().await.expect("a body").to_bytes())
}

#[test]
fn a_request_and_its_response_pass() {
    let service = Service::answering(201, "{}");
    let folder = tempfile::tempdir().expect("a folder");
    let headers = [("x-api-key", "sk-1"), ("cookie", "a=1"), ("cookie", "b=2")];
    let large = "x".repeat(32 * 1024 * 1024);
    let answered = connected(&service, folder.path(), async |mut sender| {
        let first = sender.send_request(post(&headers, "{ \"a\": 1.0 }")).await;
        let large = sender.send_request(post(&[], large.clone())).await;
        [whole(first.expect("a response")).await, whole(large.expect("a response")).await]
    });
    let created = (StatusCode::CREATED, Bytes::from_static(b"{}"));
    assert_eq!(answered, [created.clone(), created]);
    let requests = service.requests();
    assert_eq!(requests[0].first, "POST /v1/messages?beta=true HTTP/1.1");
    let host = format!("host: {}", service.address);
    assert_eq!(
        requests[0].lines,
        ["x-api-key: sk-1", "cookie: a=1; b=2", "content-length: 12", &host]
    );
    assert_eq!(requests[0].body, b"{ \"a\": 1.0 }");
    assert_eq!(requests[1].body, large.as_bytes());
}

#[test]
fn responses_on_one_connection_do_not_wait_for_each_other() {
    let (open, opened) = gate();
    let service = Service::start(move |_, request, stream| {
        if request.body == b"slow" {
            let head = "HTTP/1.1 200 X\r\ncontent-length: 8\r\n\r\nhalf";
            stream.write_all(head.as_bytes()).expect("it is read");
            opened.lock().expect("no test panicked").recv().expect("the test opens it");
            stream.write_all(b"rest").expect("it is read");
        } else {
            send(stream, 200, "text/plain", "quick");
        }
    });
    let folder = tempfile::tempdir().expect("a folder");
    let answered = connected(&service, folder.path(), async |mut sender| {
        let mut slow = sender.send_request(post(&[], "slow")).await.expect("a response");
        let half = slow.frame().await.expect("a frame").expect("data").into_data().expect("data");
        let quick = sender.send_request(post(&[], "quick")).await.expect("a response");
        let quick = whole(quick).await.1;
        // Only now does the service send the rest of the first response.
        open.send(()).expect("the service waits");
        [half, quick, whole(slow).await.1]
    });
    assert_eq!(answered, ["half", "quick", "rest"]);
}
