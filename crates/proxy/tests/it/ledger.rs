//! What is written about each request.

use std::io::Write as _;
use std::path::Path;

use epitome::wire::ledger::{End, Group, Ledger, LedgerLine, Treatment};
use epitome_model::{Stub, TokenUsage, Tokens};
use epitome_proxy::{Holdout, Options};
use serde_json::json;

use crate::change::{last_result, request};
use crate::exchange::{Running, Service, gate, rest, send};

const ANSWER: &str = r#"{"type":"message","role":"assistant","content":[{"type":"text",
    "text":"Hi"}],"usage":{"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":5}}"#;

fn lines(folder: &Path) -> Vec<LedgerLine> {
    let read = Ledger::new(folder).read(None).expect("a ledger");
    assert_eq!(read.skipped, 0);
    read.lines
}

#[test]
fn each_request_is_a_line_without_texts_and_keys() {
    let service = Service::start(|number, _, stream| match number {
        2 => send(stream, 529, "application/json", r#"{"type":"error"}"#),
        _ => send(stream, 200, "application/json", ANSWER),
    });
    let folder = tempfile::tempdir().expect("a folder");
    let named = |options| Options { agent: Some("claude".into()), run: "7".into(), ..options };
    let proxy = Running::start(&service.url(), folder.path(), named);
    let (body, _) = request();
    let headers = [("x-api-key", "sk-secret"), ("user-agent", "claude-cli/2")];
    for _ in 0..3 {
        proxy.post("/v1/messages", &headers, &body);
    }
    proxy.post("/v1/messages/count_tokens", &headers, &body);
    drop(proxy);
    let lines = lines(folder.path());
    let [first, again, refused] = lines.as_slice() else { panic!("three lines: {lines:?}") };
    let usage = TokenUsage { input: Tokens(10), cached: Tokens(100), ..TokenUsage::default() };
    let usage = TokenUsage { output: Tokens(5), ..usage };
    assert_eq!((first.agent.as_deref(), first.run.as_str()), (Some("claude"), "7"));
    assert_eq!((first.usage, first.status, first.end), (Some(usage), Some(200), End::Complete));
    assert_eq!((first.treatment, first.shortened, first.turn), (Treatment::Shortened, 1, false));
    assert_eq!((again.treatment, again.shortened), (Treatment::Known, 0));
    assert_eq!((again.session, again.saved), (first.session, first.saved));
    assert!(first.saved > Tokens(20_000), "{first:?}");
    // New tokens are more expensive than those that the cache has.
    let saved = |line: &LedgerLine| line.unchanged_cost.zip(line.cost).map(|(one, two)| one - two);
    assert!(saved(first) > saved(again) && saved(again) > Some(epitome_model::MicroDollars(0)));
    assert_eq!((refused.status, refused.usage, refused.cost), (Some(529), None, None));
    let files = std::fs::read_dir(folder.path().join("requests")).expect("a folder");
    for file in files.flatten() {
        let text = std::fs::read_to_string(file.path()).expect("text");
        for secret in ["sk-secret", "Build it", "make", "log of a build"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
}

#[test]
fn how_a_request_ended_is_in_its_line() {
    let service = Service::start(|_, _, stream| {
        let head = "HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n7\r\ndata: 1\r\n";
        stream.write_all(head.as_bytes()).expect("it is read");
        stream.shutdown(std::net::Shutdown::Both).expect("it is open");
    });
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&service.url(), folder.path(), |options| options);
    let (body, _) = request();
    let mut client = proxy.connect();
    client.send("POST", "/v1/messages", &[("user-agent", "sdk/1")], body.as_bytes());
    rest(&mut client);
    drop(proxy);
    let unreachable = "http://127.0.0.1:1";
    Running::start(unreachable, folder.path(), |options| options).post("/v1/messages", &[], &body);
    let ends: Vec<_> =
        lines(folder.path()).into_iter().map(|line| (line.end, line.agent, line.status)).collect();
    let expect =
        [(End::Interrupted, Some("sdk".to_owned()), Some(200)), (End::Unreachable, None, None)];
    assert_eq!(ends, expect);
}

#[test]
fn a_request_that_the_end_of_the_proxy_cuts_off_is_in_the_ledger() {
    let (_open, opened) = gate();
    let service = Service::start(move |_, _, stream| {
        let head = "HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n7\r\ndata: 1\r\n";
        stream.write_all(head.as_bytes()).expect("it is read");
        opened.lock().expect("no test panicked").recv().ok();
    });
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&service.url(), folder.path(), |options| options);
    let mut client = proxy.connect();
    client.send("POST", "/v1/messages", &[], request().0.as_bytes());
    client.head();
    assert_eq!(client.chunk().as_deref(), Some(b"data: 1".as_slice()));
    drop(proxy);
    let ends: Vec<End> = lines(folder.path()).iter().map(|line| line.end).collect();
    assert_eq!(ends, [End::Interrupted]);
}

#[test]
fn conversations_that_are_held_out_arrive_unchanged_and_are_counted() {
    let service = Service::answering(200, ANSWER);
    let folder = tempfile::tempdir().expect("a folder");
    let all = Holdout::from_percent(100).expect("a share");
    let held_out = |options| Options { holdout: all, ..options };
    let (body, _) = request();
    for _ in 0..2 {
        let proxy = Running::start(&service.url(), folder.path(), held_out);
        proxy.post("/v1/messages", &[], &body);
    }
    assert!(service.bodies().iter().all(|sent| *sent == body));
    for line in lines(folder.path()) {
        assert_eq!((line.group, line.treatment), (Group::Holdout, Treatment::Passed));
        assert_eq!((line.saved, line.cost), (Tokens(0), line.unchanged_cost));
        assert!(line.cost.is_some());
    }
}

#[test]
fn a_text_that_the_model_asks_back_is_counted() {
    let (body, _) = request();
    let service = Service::start(|_, message, stream| {
        let sent = String::from_utf8(message.body.clone()).expect("text");
        let stub = Stub::parse(&last_result(&sent)).expect("a stub");
        let command = format!("epitome show {} | head", stub.reference());
        let call = json!({"type": "tool_use", "id": "b", "name": "Bash",
            "input": {"command": command}});
        let answer = json!({"type": "message", "role": "assistant", "content": [call],
            "usage": {"input_tokens": 1, "output_tokens": 1}});
        send(stream, 200, "application/json", &answer.to_string());
    });
    let folder = tempfile::tempdir().expect("a folder");
    Running::start(&service.url(), folder.path(), |options| options).post(
        "/v1/messages",
        &[],
        &body,
    );
    let lines = lines(folder.path());
    assert_eq!(lines.iter().map(|line| line.recalled.len()).collect::<Vec<_>>(), [1]);
}
