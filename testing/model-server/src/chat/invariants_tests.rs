use super::check as invariants;
use serde_json::{Value, json};

/// `""` means that the history is accepted; otherwise a part of the refusal.
fn check(name: &str, messages: Value, refusal: &str) {
    match (invariants(&json!({ "messages": messages })), refusal) {
        (Ok(()), "") => {}
        (Ok(()), _) => panic!("{name}: taken, but should be refused: {refusal}"),
        (Err(found), "") => panic!("{name}: refused: {found}"),
        (Err(found), _) => assert!(found.0.contains(refusal), "{name}: {found}"),
    }
}

fn user() -> Value {
    json!({ "role": "user", "content": "go" })
}

fn calls(ids: &[&str]) -> Value {
    let call = |id: &&str| {
        let function = json!({ "name": "bash", "arguments": "{}" });
        json!({ "id": id, "type": "function", "function": function })
    };
    let calls: Vec<Value> = ids.iter().map(call).collect();
    json!({ "role": "assistant", "content": null, "tool_calls": calls })
}

fn result(id: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": "x" })
}

#[test]
fn calls_and_results_are_closed() {
    check("pair", json!([user(), calls(&["a"]), result("a")]), "");
    check("parallel", json!([user(), calls(&["a", "b"]), result("b"), result("a"), user()]), "");
    check("no call", json!([user(), result("a")]), "must be a response to a preceeding");
    check("twice", json!([user(), calls(&["a"]), result("a"), result("a")]), "must be a response");
    check("wrong id", json!([user(), calls(&["a"]), result("b")]), "must be a response");
    check("late", json!([user(), calls(&["a"]), user(), result("a")]), "response messages: a");
    check("open at the end", json!([user(), calls(&["a"])]), "did not have response messages: a");
    check("one of two", json!([user(), calls(&["a", "b"]), result("a")]), "messages: b");
    check("empty id", json!([user(), calls(&[""]), result("")]), "empty string");
    let again = json!([user(), calls(&["a"]), result("a"), calls(&["a"]), result("a")]);
    check("an id twice", again, "Duplicate value");
}

#[test]
fn every_message_has_its_form() {
    check("plain", json!([{ "role": "system", "content": "x" }, user()]), "");
    check("empty", json!([]), "empty array");
    check("role", json!([{ "role": "model", "content": "x" }]), "Supported values");
    check("no content", json!([{ "role": "user" }]), "got null");
    check("no list", json!([{ "role": "user", "content": 1 }]), "expected one of a string");
    check("empty list", json!([{ "role": "user", "content": [] }]), "empty array");
    check("no calls", json!([{ "role": "assistant", "tool_calls": [] }]), "empty array");
    check("key", json!([{ "role": "user", "content": "x", "_k": 1 }]), "messages[0]._k");
    let part = json!({ "type": "text", "text": "x", "_k": 1 });
    check("part's key", json!([{ "role": "user", "content": [part] }]), "content[0]._k");
    let image = |url: &str| json!([{ "type": "image_url", "image_url": { "url": url } }]);
    check("picture", json!([{ "role": "user", "content": image("data:") }]), "");
    check("no address", json!([{ "role": "user", "content": image("") }]), "image_url.url");
    let drawn = json!([user(), { "role": "assistant", "content": image("data:") }]);
    check("a picture of the model", drawn, "only allowed for messages with role 'user'");
    let mut call = calls(&["a"]);
    call["tool_calls"][0]["function"]["arguments"] = json!({});
    check("arguments", json!([user(), call, result("a")]), "expected a string");
}
