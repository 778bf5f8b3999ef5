//! What is explained about each changed request.

use std::path::Path;
use std::sync::{Arc, Mutex};

use epitome::wire::ledger::Treatment;
use epitome_model::Tokens;
use epitome_proxy::{Explanation, Options, Reason};
use serde_json::{Value, json};

use crate::change::request;
use crate::exchange::{Running, Service};

/// A proxy, and what it explains.
fn explaining(service: &Service, folder: &Path) -> (Running, Arc<Mutex<Vec<Explanation>>>) {
    let explained: Arc<Mutex<Vec<Explanation>>> = Arc::default();
    let all = Arc::clone(&explained);
    let explainer = move |explanation: &Explanation| {
        all.lock().expect("no test panicked").push(explanation.clone());
    };
    let proxy = Running::start(&service.url(), folder, |options| Options {
        explainer: Some(Arc::new(explainer)),
        ..options
    });
    (proxy, explained)
}

#[test]
fn each_new_block_of_a_changed_request_is_explained() {
    let service = Service::answering(200, "{}");
    let folder = tempfile::tempdir().expect("a folder");
    let (proxy, explained) = explaining(&service, folder.path());
    let (body, _) = request();
    proxy.post("/v1/messages", &[], &body);
    proxy.post("/v1/messages", &[], &body);
    proxy.post("/v1/messages/count_tokens", &[], &body);
    let short = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    proxy.post("/v1/messages", &[], &short.to_string());
    drop(proxy);
    let explained = explained.lock().expect("no test panicked");
    let [first, again] = explained.as_slice() else { panic!("two: {explained:?}") };
    let blocks: Vec<_> =
        first.blocks.iter().map(|it| (it.message, it.what.as_str(), it.reason)).collect();
    let expect = [
        (1, "text of the user", Reason::OfUser),
        (2, "call of Bash make", Reason::Call),
        (3, "result of Bash make", Reason::Ingest),
    ];
    assert_eq!(blocks, expect);
    assert_eq!((first.treatment, first.known), (Treatment::Shortened, 0));
    let result = &first.blocks[2];
    let stub = result.stub.as_deref().expect("a stub");
    assert!(stub.starts_with("[epitome k") && stub.ends_with("3000 lines]"), "{stub}");
    // The hint in the stub has some tokens.
    let saved = (result.before - result.after).0;
    assert!(saved.abs_diff(first.saved_now.0) < 20, "{first:?}");
    assert!(first.saved_now > Tokens(20_000), "{first:?}");
    assert_eq!((again.treatment, again.known, again.blocks.len()), (Treatment::Known, 3, 0));
    assert_eq!((again.saved_before, again.saved_now), (first.saved_now, Tokens(0)));
}

/// A call of Bash and its long result.
fn exchange(id: &str, command: &str) -> [Value; 2] {
    let log: String = (0..3_000).map(|n| format!("line {n} of {command}\n")).collect();
    let input = json!({"command": command});
    let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": input});
    let result = json!({"type": "tool_result", "tool_use_id": id, "content": log});
    [json!({"role": "assistant", "content": [call]}), json!({"role": "user", "content": [result]})]
}

#[test]
fn a_result_that_the_model_has_seen_is_not_called_new() {
    let service = Service::answering(200, "{}");
    let folder = tempfile::tempdir().expect("a folder");
    let (proxy, explained) = explaining(&service, folder.path());
    let [first, first_result] = exchange("c1", "make");
    let [second, second_result] = exchange("c2", "ls");
    let post = |start: &str, rest: &[&Value]| {
        let mut messages = vec![json!({"role": "user", "content": start})];
        messages.extend(rest.iter().copied().cloned());
        let body = json!({"model": "m", "messages": messages}).to_string();
        proxy.post("/v1/messages", &[], &body);
    };
    // The proxy has not seen the beginning of this conversation, but the model has.
    post("Build it.", &[&first, &first_result, &second, &second_result]);
    // In this conversation, the agent changes a message before a result that was shortened.
    post("Do it.", &[&first, &first_result]);
    let mut changed = first.clone();
    changed["content"][0]["input"]["command"] = json!("make all");
    post("Do it.", &[&changed, &first_result, &second, &second_result]);
    drop(proxy);
    let explained = explained.lock().expect("no test panicked");
    let results = explained.iter().map(|it| {
        let results = it.blocks.iter().filter(|block| block.what.starts_with("result"));
        results.map(|block| block.reason).collect::<Vec<_>>()
    });
    let expect = [
        vec![Reason::Seen, Reason::Ingest],
        vec![Reason::Ingest],
        vec![Reason::AsBefore, Reason::Ingest],
    ];
    assert_eq!(results.collect::<Vec<_>>(), expect);
}
