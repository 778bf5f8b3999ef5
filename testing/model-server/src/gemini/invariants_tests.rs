use super::check as invariants;
use crate::sign::sign;
use serde_json::{Value, json};

/// `""` means that the history is accepted; otherwise a part of the refusal.
fn check(name: &str, contents: Value, refusal: &str) {
    match (invariants("gemini-3-pro", &json!({ "contents": contents })), refusal) {
        (Ok(()), "") => {}
        (Ok(()), _) => panic!("{name}: taken, but should be refused: {refusal}"),
        (Err(found), "") => panic!("{name}: refused: {found}"),
        (Err(found), _) => assert!(found.0.contains(refusal), "{name}: {found}"),
    }
}

fn user() -> Value {
    json!({ "role": "user", "parts": [{ "text": "go" }] })
}

fn calls(names: &[&str]) -> Value {
    let mut parts: Vec<Value> =
        names.iter().map(|name| json!({ "functionCall": { "name": name, "args": {} } })).collect();
    parts[0]["thoughtSignature"] = json!(sign("x"));
    json!({ "role": "model", "parts": parts })
}

fn results(names: &[&str]) -> Value {
    let part = |(id, name): (usize, &&str)| {
        let id = id.to_string();
        json!({ "functionResponse": { "id": id, "name": name, "response": {} } })
    };
    json!({ "role": "user", "parts": names.iter().enumerate().map(part).collect::<Vec<_>>() })
}

#[test]
fn calls_and_results_are_closed() {
    check("pair", json!([user(), calls(&["a"]), results(&["a"])]), "");
    check("parallel", json!([user(), calls(&["a", "b"]), results(&["a", "b"])]), "");
    check("one of two", json!([user(), calls(&["a", "b"]), results(&["a"])]), "number of function");
    check("too many", json!([user(), calls(&["a"]), results(&["a", "a"])]), "number of function");
    check("no result", json!([user(), calls(&["a"]), user()]), "number of function response");
    check("open at the end", json!([user(), calls(&["a"])]), "immediately after a function call");
    check("no call", json!([user(), results(&["a"])]), "immediately after a function call");
    check("another", json!([user(), calls(&["a"]), results(&["b"])]), "names match");
    check("no user before", json!([calls(&["a"]), results(&["a"])]), "after a user turn");
    let mut twice = results(&["a", "a"]);
    twice["parts"][1]["functionResponse"]["id"] = json!("0");
    check("the same once more", json!([user(), calls(&["a"]), twice]), "");
}

#[test]
fn every_part_has_its_form() {
    let part = |part: Value| json!([{ "role": "user", "parts": [part] }]);
    check("plain", json!([user()]), "");
    check("nothing", json!([]), "contents is not specified");
    check("role", json!([{ "role": "tool", "parts": [{ "text": "x" }] }]), "valid role");
    check("no parts", json!([{ "role": "user", "parts": [] }]), "must not be empty");
    check("no data", part(json!({ "thought": true })), "one initialized field");
    check("two", part(json!({ "text": "x", "inlineData": {} })), "already set");
    check("key", part(json!({ "text": "x", "_k": 1 })), "Unknown name \"_k\"");
    let picture = json!({ "mimeType": "image/png", "data": "iVBORw==" });
    check("picture", part(json!({ "inlineData": picture })), "");
    check("no type", part(json!({ "inlineData": { "data": "x" } })), "input image");
    let call = json!({ "functionCall": { "name": "a", "_k": 1 } });
    check("call's key", part(call), "function_call");
}

#[test]
fn the_current_turn_is_signed() {
    let mut unsigned = calls(&["a"]);
    unsigned["parts"][0].as_object_mut().unwrap().remove("thoughtSignature");
    let done = json!([user(), unsigned, results(&["a"])]);
    check("current", done.clone(), "missing a thought_signature");
    let older = [done.as_array().unwrap().as_slice(), &[calls(&["b"]), results(&["b"]), user()]];
    check("an older turn", json!(older.concat()), "");
    unsigned["parts"][0]["thoughtSignature"] = json!("skip_thought_signature_validator");
    check("skipped", json!([user(), unsigned, results(&["a"])]), "");
    unsigned["parts"][0]["thoughtSignature"] = json!("c2lnbmF0dXJl");
    check("foreign", json!([user(), unsigned, results(&["a"])]), "not valid");
}
