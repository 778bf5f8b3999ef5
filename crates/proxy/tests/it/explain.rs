//! What is explained about each changed request.

use std::sync::{Arc, Mutex};

use epitome::wire::ledger::Treatment;
use epitome_model::Tokens;
use epitome_proxy::{Explanation, Options, Reason};
use serde_json::json;

use crate::change::request;
use crate::exchange::{Running, Service};

#[test]
fn each_new_block_of_a_changed_request_is_explained() {
    let service = Service::answering(200, "{}");
    let folder = tempfile::tempdir().expect("a folder");
    let explained: Arc<Mutex<Vec<Explanation>>> = Arc::default();
    let all = Arc::clone(&explained);
    let explainer = move |explanation: &Explanation| {
        all.lock().expect("no test panicked").push(explanation.clone());
    };
    let proxy = Running::start(&service.url(), folder.path(), |options| Options {
        explainer: Some(Arc::new(explainer)),
        ..options
    });
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
