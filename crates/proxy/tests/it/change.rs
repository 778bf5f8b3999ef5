//! Requests that are shortened on their way, and what happens when that fails.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use epitome::ops::archived_text;
use epitome::{Config, ErrorKind};
use epitome_model::Stub;
use serde_json::{Value, json};

use crate::exchange::{Running, Service};

/// A request whose last message is a long result.
pub fn request() -> (String, String) {
    let log: String = (0..3_000).map(|n| format!("line {n} of the log of a build\n")).collect();
    let call =
        json!({"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "make"}});
    let result = json!({"type": "tool_result", "tool_use_id": "c1", "content": log});
    let body = json!({"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": [
        {"role": "user", "content": "Build it."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]});
    (body.to_string(), log)
}

pub fn last_result(body: &str) -> String {
    let body: Value = serde_json::from_str(body).expect("JSON");
    let text = body["messages"][2]["content"][0]["content"].as_str();
    text.expect("a text").to_owned()
}

#[test]
fn a_long_result_is_sent_short_and_comes_back_by_its_reference() {
    let service = Service::answering(200, "{}");
    let home = tempfile::tempdir().expect("a folder");
    let config = Config::from_home(home.path());
    let (body, log) = request();
    for _ in 0..2 {
        // The second proxy knows only what is on disk.
        let proxy = Running::start(&service.url(), &config.wire_memo(), |options| options);
        proxy.post("/v1/messages", &[], &body);
        proxy.post("/v1/messages/count_tokens", &[], &body);
    }
    let bodies = service.bodies();
    assert_eq!(bodies.len(), 4);
    assert!(bodies.iter().all(|sent| *sent == bodies[0]), "each time the same");
    assert!(bodies[0].len() < body.len() / 2);
    let length = |n: usize| service.requests()[n].header("content-length").map(str::to_owned);
    assert_eq!(length(0), Some(bodies[0].len().to_string()));
    let stub = Stub::parse(&last_result(&bodies[0])).expect("a stub");
    let shown = archived_text(&config, stub.reference()).expect("it is kept");
    assert_eq!(shown.bytes, log.as_bytes());
    assert_eq!(shown.found.about.what, "Bash make");
    let other = "k0000000".parse().expect("a reference");
    let err = archived_text(&config, &other).expect_err("there is none");
    assert_eq!(err.kind(), ErrorKind::NotFound);
}

/// The body that arrives at the service.
fn arrived(folder: &Path, headers: &[(&str, &str)], is_dry_run: bool, body: &str) -> String {
    let service = Service::answering(200, "{}");
    let dry = |options| epitome_proxy::Options { dry_run: is_dry_run, ..options };
    let proxy = Running::start(&service.url(), folder, dry);
    proxy.post("/v1/messages", headers, body);
    service.bodies().remove(0)
}

#[test]
fn what_is_not_to_be_changed_arrives_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let (body, _) = request();
    let bypass = [("x-epitome-bypass", "1")];
    assert!(arrived(folder.path(), &bypass, false, &body) == body, "bypass");
    let gzip = [("content-encoding", "gzip")];
    assert!(arrived(folder.path(), &gzip, false, &body) == body, "compressed");
    let memo = folder.path().join("dry");
    assert!(arrived(&memo, &[], true, &body) == body, "dry run");
    assert!(!memo.exists(), "a dry run leaves nothing behind");
    assert!(arrived(folder.path(), &[], false, &body).len() < body.len() / 2);
}

#[test]
fn an_error_of_ours_passes_the_original_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (body, _) = request();
    // A file where the folder of the memo should be.
    let memo = folder.path().join("memo");
    std::fs::write(&memo, "").expect("a disk");
    assert!(arrived(&memo, &[], false, &body) == body);
    // A body that is not JSON.
    let torn = &body[..body.len() - 9];
    assert!(arrived(folder.path(), &[], false, torn) == torn);
}

#[test]
fn what_the_service_counted_is_added_up() {
    let answer = r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"Hi"}],
        "usage":{"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":5}}"#;
    let service = Service::answering(200, answer);
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&service.url(), folder.path(), |options| options);
    let (body, _) = request();
    proxy.post("/v1/messages", &[], &body);
    proxy.post("/v1/messages", &[], &body);
    proxy.post("/v1/messages/count_tokens", &[], &body);
    let totals = proxy.proxy.totals();
    assert_eq!((totals.requests, totals.metered, totals.shortened), (2, 2, 1));
    assert_eq!((totals.usage.input.0, totals.usage.cached.0), (20, 200));
    assert!(totals.saved.0 > 20_000, "{totals:?}");
    assert!(totals.unchanged_cost > totals.cost, "{totals:?}");
    assert_eq!(totals.failures, 0);
}

#[test]
fn a_proxy_that_starts_removes_memos_of_more_than_thirty_days_ago() {
    let service = Service::answering(200, "{}");
    let folder = tempfile::tempdir().expect("a folder");
    let (body, _) = request();
    let send = || {
        Running::start(&service.url(), folder.path(), |options| options).post(
            "/v1/messages",
            &[],
            &body,
        )
    };
    let memos = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder.path()).expect("a folder").flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
        paths
    };
    let day = Duration::from_secs(24 * 60 * 60);
    send();
    for (days, is_kept) in [(29, true), (31, false)] {
        let path = memos().pop().expect("a memo");
        let file = File::options().write(true).open(&path).expect("it exists");
        file.set_modified(SystemTime::now() - days * day).expect("a disk");
        drop(Running::start(&service.url(), folder.path(), |options| options));
        assert_eq!(memos().len(), usize::from(is_kept), "{days} days");
    }
    // The conversation begins again.
    send();
    let bodies = service.bodies();
    assert!(bodies.len() == 2 && bodies[0] == bodies[1]);
}
