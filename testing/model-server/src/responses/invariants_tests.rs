use super::check as invariants;
use crate::sign::sign;
use serde_json::{Value, json};

/// `""` means that the history is accepted; otherwise a part of the refusal.
fn check(name: &str, input: Value, refusal: &str) {
    match (invariants(&json!({ "input": input })), refusal) {
        (Ok(()), "") => {}
        (Ok(()), _) => panic!("{name}: taken, but should be refused: {refusal}"),
        (Err(found), "") => panic!("{name}: refused: {found}"),
        (Err(found), _) => assert!(found.0.contains(refusal), "{name}: {found}"),
    }
}

fn user() -> Value {
    json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "x" }] })
}

fn message(id: &str) -> Value {
    let content = json!([{ "type": "output_text", "text": "x" }]);
    json!({ "type": "message", "id": id, "role": "assistant", "content": content })
}

fn call(id: &str) -> Value {
    json!({ "type": "function_call", "id": format!("fc_{id}"), "name": "exec_command",
        "arguments": "not checked", "call_id": id })
}

fn output(id: &str) -> Value {
    json!({ "type": "function_call_output", "call_id": id, "output": "" })
}

fn patch(id: &str) -> Value {
    json!({ "type": "custom_tool_call", "name": "apply_patch", "input": "x", "call_id": id })
}

fn thought(seal: &str) -> Value {
    json!({ "type": "reasoning", "id": "rs_1", "encrypted_content": seal,
        "summary": [{ "type": "summary_text", "text": "why" }] })
}

#[test]
fn histories_that_are_taken() {
    let image = json!([{ "type": "input_image", "image_url": "data:" }]);
    check("a string", json!("go"), "");
    check("a call", json!([user(), call("a"), output("a")]), "");
    check("parallel calls", json!([user(), call("a"), call("b"), output("b"), output("a")]), "");
    check(
        "a picture",
        json!([user(), call("a"), { "type": "function_call_output", "call_id": "a",
        "output": image }]),
        "",
    );
    let nothing = json!([{ "type": "input_image", "detail": "auto" }]);
    check(
        "a picture without an address",
        json!([user(), call("a"), { "type": "function_call_output", "call_id": "a",
        "output": nothing }]),
        "'image_url'",
    );
    check("reasoning", json!([user(), thought(&sign("why")), call("r_a"), output("r_a")]), "");
    let old = json!([user(), call("r_a"), output("r_a"), message("msg_r_1"), user()]);
    check("reasoning of a turn that is over is gone", old, "");
}

#[test]
fn pairs_that_are_broken() {
    check(
        "no result",
        json!([user(), call("a"), user()]),
        "No tool output found for function call a",
    );
    check("no call", json!([user(), output("a")]), "No tool call found for function call output");
    check(
        "two results",
        json!([user(), call("a"), output("a"), output("a")]),
        "No tool call found",
    );
    check("a result before its call", json!([output("a"), call("a")]), "No tool call found");
    check("another kind", json!([user(), patch("a"), output("a")]), "No tool call found");
}

#[test]
fn items_that_are_malformed() {
    let object = json!({ "type": "function_call", "call_id": "a", "arguments": {} });
    check("arguments", json!([object]), "expected a string");
    check(
        "output",
        json!([call("a"), { "type": "function_call_output", "call_id": "a" }]),
        "'input[1].output'",
    );
    check(
        "a part",
        json!([{ "role": "assistant", "content": [{ "type": "input_text" }] }]),
        "'input_text'",
    );
    check("a role", json!([{ "role": "tool" }]), "'tool'");
    check("a kind", json!([{ "type": "other" }]), "'other'");
    check("a key", json!([{ "role": "user", "ordinal": 1 }]), "input[0].ordinal");
    check("ids", json!([message("m"), message("m")]), "Duplicate item found with id m");
    check("no input", Value::Null, "'input'");
}

#[test]
fn reasoning_that_is_broken() {
    check(
        "altered",
        json!([user(), thought(&sign("because")), message("m")]),
        "could not be verified",
    );
    check(
        "foreign",
        json!([user(), thought("Z2FyYmFnZQ=="), message("m")]),
        "could not be verified",
    );
    check("alone", json!([user(), thought(&sign("why")), user()]), "required following item");
    check("gone within the turn", json!([user(), call("r_a"), output("r_a")]), "'reasoning' item");
}
