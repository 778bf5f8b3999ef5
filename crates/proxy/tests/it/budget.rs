//! What a run may cost.

use epitome_model::MicroDollars;
use epitome_proxy::Options;
use serde_json::{Value, json};

use crate::exchange::{Message, Running, Service};

/// An answer that cost a cent with Claude Haiku 4.5.
const ANSWER: &str = r#"{"type":"message","role":"assistant","content":[{"type":"text",
    "text":"Hi"}],"usage":{"input_tokens":5000,"output_tokens":1000}}"#;

fn body(model: &str) -> String {
    json!({"model": model, "messages": [{"role": "user", "content": "Hi"}]}).to_string()
}

fn refusal(response: &Message) -> String {
    assert!(response.first.starts_with("HTTP/1.1 402"), "{}", response.first);
    let body: Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!((&body["type"], &body["error"]["code"]), (&json!("error"), &json!(402)));
    body["error"]["message"].as_str().expect("a message").to_owned()
}

#[test]
fn no_request_starts_once_the_budget_is_spent() {
    let service = Service::answering(200, ANSWER);
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&service.url(), folder.path(), |options| Options {
        budget: Some(MicroDollars(20_000)),
        ..options
    });
    let body = body("claude-haiku-4-5");
    for _ in 0..2 {
        let response = proxy.post("/v1/messages", &[], &body);
        assert!(response.first.starts_with("HTTP/1.1 200"), "{}", response.first);
    }
    let message = refusal(&proxy.post("/v1/messages", &[], &body));
    assert_eq!(
        message,
        "epitome proxy: the budget of this run is spent: $0.02 of $0.02 at list prices. To go on, \
         end the agent and continue the conversation with a larger --budget, or with none"
    );
    // The bypass header does not help. A request to count tokens, which costs nothing, still
    // passes.
    refusal(&proxy.post("/v1/messages", &[("x-epitome-bypass", "1")], &body));
    let count = proxy.post("/v1/messages/count_tokens", &[], &body);
    assert!(count.first.starts_with("HTTP/1.1 200"), "{}", count.first);
    assert_eq!(service.requests().len(), 3);
    let totals = proxy.proxy.totals();
    assert_eq!((totals.requests, totals.refused), (2, 2));
}

#[test]
fn a_budget_counts_what_the_service_did_not() {
    let service = Service::answering(200, "{}");
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&service.url(), folder.path(), |options| Options {
        budget: Some(MicroDollars(1)),
        ..options
    });
    proxy.post("/v1/messages", &[], &body("claude-haiku-4-5"));
    let message = refusal(&proxy.post("/v1/messages", &[], &body("claude-haiku-4-5")));
    assert!(message.contains("of it estimated"), "{message}");
    assert_eq!(proxy.proxy.totals().cost, MicroDollars(0));
}

#[test]
fn a_budget_needs_prices() {
    let service = Service::answering(200, ANSWER);
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Running::start(&service.url(), folder.path(), |options| Options {
        budget: Some(MicroDollars(20_000)),
        ..options
    });
    let message = refusal(&proxy.post("/v1/messages", &[], &body("a model of tomorrow")));
    assert!(message.contains("the price of a model of tomorrow is not known"), "{message}");
    assert!(message.contains("models.toml"), "{message}");
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}).to_string();
    let path = "/v1beta/models/gemini-3.5-flash:generateContent";
    let response = proxy.post(path, &[], &gemini);
    assert!(response.first.starts_with("HTTP/1.1 200"), "{}", response.first);
    assert_eq!(service.requests().len(), 1);
    // Without a budget, a request to a model without a known price is counted, and has no cost.
    let other = Running::start(&service.url(), folder.path(), |options| options);
    other.post("/v1/messages", &[], &body("a model of tomorrow"));
    assert_eq!(other.proxy.totals().without_price, 1);
}
