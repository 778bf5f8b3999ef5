//! What is served for Prometheus.

use epitome_proxy::Options;
use serde_json::json;

use crate::exchange::{Message, Running, Service};

fn text(response: Message) -> String {
    String::from_utf8(response.body).expect("text")
}

#[test]
fn what_was_sent_is_served_for_prometheus() {
    let answer = r#"{"type":"message","role":"assistant","content":[],
        "usage":{"input_tokens":10,"output_tokens":5}}"#;
    let service = Service::answering(200, answer);
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&service.url(), folder.path(), |options| Options {
        agent: Some("claude".into()),
        ..options
    });
    let body = json!({"model": "claude-haiku-4-5", "messages": [{"role": "user", "content": "a"}]});
    proxy.post("/v1/messages", &[], &body.to_string());
    let mut client = proxy.connect();
    client.send("GET", "/metrics", &[], b"");
    // The client of the tests names another machine.
    assert!(client.response().expect("a response").first.starts_with("HTTP/1.1 403"));
    let mut client = proxy.connect();
    client.send_to("127.0.0.1", "GET", "/metrics", &[], b"");
    let response = client.response().expect("a response");
    assert!(response.first.starts_with("HTTP/1.1 200"), "{}", response.first);
    let kind = response.header("content-type").map(str::to_owned);
    assert_eq!(kind.as_deref(), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = text(response);
    let labels = r#"agent="claude",api="anthropic",model="claude-haiku-4-5",group="treated""#;
    for expect in [
        format!("epitome_proxy_requests_total{{{labels},treatment=\"passed\"}} 1"),
        format!("epitome_proxy_tokens_total{{{labels},kind=\"output\"}} 5"),
    ] {
        assert!(text.lines().any(|line| line == expect), "{expect}\n{text}");
    }
    assert_eq!(service.requests().len(), 1);
}

#[test]
fn metrics_need_the_token() {
    let service = Service::answering(200, "{}");
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&service.url(), folder.path(), |options| Options {
        token: Some("00ff".into()),
        ..options
    });
    let mut client = proxy.connect();
    client.send("GET", "/metrics", &[], b"");
    assert!(text(client.response().expect("a response")).contains("# TYPE"));
    let address = proxy.address.trim_end_matches("/00ff");
    let mut client = crate::exchange::Client::to(address);
    client.send("GET", "/metrics", &[], b"");
    assert!(client.response().expect("a response").first.starts_with("HTTP/1.1 403"));
}
