use super::check as invariants;
use crate::sign::sign;
use serde_json::{Value, json};

/// `""` means that the history is accepted; otherwise a part of the refusal.
fn check(name: &str, messages: Value, refusal: &str) {
    check_body(name, json!({ "messages": messages }), refusal);
}

fn check_body(name: &str, body: Value, refusal: &str) {
    match (invariants(&body), refusal) {
        (Ok(()), "") => {}
        (Ok(()), _) => panic!("{name}: taken, but should be refused: {refusal}"),
        (Err(found), "") => panic!("{name}: refused: {found}"),
        (Err(found), _) => assert!(found.0.contains(refusal), "{name}: {found}"),
    }
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn calls(ids: &[&str]) -> Value {
    let call = |id: &&str| json!({ "type": "tool_use", "id": id, "name": "Bash", "input": {} });
    json!({ "role": "assistant", "content": ids.iter().map(call).collect::<Vec<_>>() })
}

fn results(ids: &[&str]) -> Value {
    let result = |id: &&str| json!({ "type": "tool_result", "tool_use_id": id, "content": "x" });
    json!({ "role": "user", "content": ids.iter().map(result).collect::<Vec<_>>() })
}

fn thinks(text: &str, signature: Value) -> Value {
    let block = json!({ "type": "thinking", "thinking": text, "signature": signature });
    json!({ "role": "assistant", "content": [block, { "type": "text", "text": "So." }] })
}

fn assistant(block: Value) -> Value {
    json!({ "role": "assistant", "content": [block] })
}

#[test]
fn calls_and_results_are_closed() {
    let go = || user("go");
    check("pair", json!([go(), calls(&["a"]), results(&["a"])]), "");
    check("parallel", json!([go(), calls(&["a", "b"]), results(&["b", "a"])]), "");
    check(
        "in two messages",
        json!([go(), calls(&["a", "b"]), results(&["a"]), results(&["b"])]),
        "",
    );
    check("no result", json!([go(), calls(&["a"]), go()]), "without `tool_result`");
    check("no result at the end", json!([go(), calls(&["a"])]), "without `tool_result`");
    check("one of two", json!([go(), calls(&["a", "b"]), results(&["a"])]), "immediately after: b");
    check("no call", json!([go(), results(&["a"])]), "unexpected `tool_use_id`");
    check("no call before", json!([results(&["a"])]), "unexpected `tool_use_id`");
    check(
        "result one turn late",
        json!([go(), calls(&["a"]), results(&["a"]), calls(&["b"]), results(&["b", "a"])]),
        "unexpected `tool_use_id`",
    );
    check("two results", json!([go(), calls(&["a"]), results(&["a", "a"])]), "single result");
    check(
        "an id twice",
        json!([go(), calls(&["a"]), results(&["a"]), calls(&["a"]), results(&["a"])]),
        "ids must be unique",
    );
    check("text after", json!([go(), calls(&["a"]), results(&["a"]), go()]), "");
    let text_first = json!({ "role": "user", "content": [
        { "type": "text", "text": "wait" },
        { "type": "tool_result", "tool_use_id": "a", "content": "x" },
    ] });
    check("hidden result", json!([go(), calls(&["a"]), text_first]), "without `tool_result`");
}

#[test]
fn every_block_has_its_form() {
    let go = || user("go");
    check("plain", json!([go(), assistant(json!({ "type": "text", "text": "Hi." })), go()]), "");
    check("empty", json!([]), "at least one message");
    check("assistant first", json!([calls(&["a"]), results(&["a"])]), "first message");
    check("empty text", json!([{ "role": "user", "content": "" }]), "non-empty content");
    check("empty list", json!([{ "role": "user", "content": [] }]), "non-empty content");
    check("blank", json!([user(" \n")]), "non-whitespace");
    check(
        "empty block",
        json!([go(), assistant(json!({ "type": "text", "text": "" })), go()]),
        "non-empty",
    );
    check("no list", json!([{ "role": "user", "content": 1 }]), "valid list");
    let blank = json!({ "type": "text", "text": "\n" });
    check("blank block", json!([go(), assistant(blank), go()]), "non-whitespace");
    check("role", json!([{ "role": "tool", "content": "x" }]), "Input should be 'user'");
    check("key", json!([{ "role": "user", "content": "x", "id": 1 }]), "messages.0.id: Extra");
    let marked = json!({ "type": "text", "text": "x", "_epitome": true });
    check("foreign key", json!([go(), assistant(marked), go()]), "content.0.text._epitome: Extra");
    let unknown = json!({ "type": "stub", "text": "x" });
    check("foreign block", json!([go(), assistant(unknown), go()]), "Input tag 'stub'");
    let call = json!({ "type": "tool_use", "id": "a", "name": "Bash", "input": "ls" });
    check("input", json!([go(), assistant(call), results(&["a"])]), "valid dictionary");
    check("empty id", json!([go(), calls(&[""]), results(&[""])]), "should match pattern");
    let inner = json!([{ "type": "text", "text": "" }]);
    let result = |content: Value| {
        let block = json!({ "type": "tool_result", "tool_use_id": "a", "content": content });
        json!([user("go"), calls(&["a"]), { "role": "user", "content": [block] }])
    };
    check("empty text in a result", result(inner), "non-empty");
    check("empty result", result(json!("")), "");
    check("result that is no list", result(json!({})), "tool_result.content: Input should be");
    check("absent result", result(Value::Null), "");
    check(
        "marked result",
        result(json!([{ "type": "text", "text": "x", "_k": 1 }])),
        "Extra inputs",
    );
    let misplaced = json!([{ "role": "user", "content": calls(&["a"])["content"] }]);
    check("call by the user", misplaced, "can only be in `assistant`");
}

#[test]
fn every_picture_has_its_form() {
    let image = |source: Value| json!({ "type": "image", "source": source });
    let png =
        |data: &str| image(json!({ "type": "base64", "media_type": "image/png", "data": data }));
    let sent = |picture: Value| json!([{ "role": "user", "content": [picture] }]);
    let result = |picture: Value| {
        let block = json!({ "type": "tool_result", "tool_use_id": "a", "content": [picture] });
        json!([user("go"), calls(&["a"]), { "role": "user", "content": [block] }])
    };
    check("of the user", sent(png("iVBORw==")), "");
    check("in a result", result(png("iVBORw==")), "");
    check("of an address", sent(image(json!({ "type": "url", "url": "https://a/b.png" }))), "");
    check("of the model", json!([user("go"), assistant(png("iVBORw=="))]), "only be in `user`");
    check("without bytes", result(png("")), "image cannot be empty");
    check("without a source", sent(json!({ "type": "image" })), "source: Field required");
    let of_type = json!({ "type": "base64", "media_type": "image/bmp", "data": "Qk0=" });
    check("of another type", sent(image(of_type)), "Input should be 'image/jpeg'");
    let path = json!({ "type": "path", "path": "a.png" });
    check("of another source", sent(image(path)), "Input tag 'path'");
}

#[test]
fn thinking_is_exact_or_absent() {
    let signed = || thinks("why", json!(sign("why")));
    let altered = || thinks("other", json!(sign("why")));
    check("signed", json!([user("go"), signed(), user("go")]), "");
    check("altered", json!([user("go"), altered(), user("go")]), "cannot be modified");
    check(
        "altered before",
        json!([user("go"), altered(), user("go"), signed(), user("go")]),
        "Invalid `signature`",
    );
    check(
        "foreign",
        json!([user("go"), thinks("why", json!("AbC=")), user("go")]),
        "Invalid `signature`",
    );
    check(
        "emptied",
        json!([user("go"), thinks("why", json!("")), user("go")]),
        "Invalid `signature`",
    );
    check(
        "unsigned",
        json!([user("go"), thinks("why", Value::Null), user("go")]),
        "Field required",
    );
}

#[test]
fn an_open_loop_keeps_its_thinking() {
    let opened = |first: Value| {
        let call = json!({ "type": "tool_use", "id": "a", "name": "Bash", "input": {} });
        json!({
            "thinking": { "type": "enabled" },
            "messages": [
                user("go"), { "role": "assistant", "content": [first, call] }, results(&["a"]),
            ],
        })
    };
    let thought = json!({ "type": "thinking", "thinking": "why", "signature": sign("why") });
    check_body("kept", opened(thought), "");
    check_body("dropped", opened(json!({ "type": "text", "text": "So." })), "Expected `thinking`");
}

#[test]
fn four_cache_marks_are_enough() {
    let marked = |count: usize| {
        let block =
            json!({ "type": "text", "text": "x", "cache_control": { "type": "ephemeral" } });
        json!({ "messages": [{ "role": "user", "content": vec![block; count] }] })
    };
    check_body("four", marked(4), "");
    check_body("five", marked(5), "maximum of 4");
}
