//! What the APIs refuse: for each invariant, a body that satisfies it and one that violates it.
//!
//! The bodies are written by hand from the providers' documents, and not made by this crate.

use epitome_api::{APIS, BodyFormat};
use epitome_model::Invariant;
use serde_json::{Value, json};

fn named(name: &str) -> Option<&'static BodyFormat> {
    APIS.iter().map(|api| api.format).find(|format| format.name == name)
}

/// The invariants that a body violates, each with its position.
fn broken(format: &str, body: &Value) -> Vec<(Invariant, String)> {
    let bytes = body.to_string().into_bytes();
    let format = named(format).expect("a format");
    let transcript = (format.read)(&bytes, &mut ());
    let found = format.invariants.check(&transcript, &bytes).into_iter();
    found
        .map(|violation| {
            let place = violation.what.split(": ").next().unwrap_or_default().to_owned();
            (violation.invariant, place)
        })
        .collect()
}

/// Checks that `whole` satisfies every invariant, and that in each case it violates the invariant
/// of the case, at the position of the case, once the value at the case's pointer is replaced.
fn check(format: &str, whole: &Value, cases: &[(&str, Value, Invariant, &str)]) {
    assert_eq!(broken(format, whole), [], "{format}: {whole:#}");
    for (pointer, value, invariant, place) in cases {
        let mut body = whole.clone();
        *body.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} in {whole:#}")) =
            value.clone();
        let found = broken(format, &body);
        assert!(
            found.contains(&(*invariant, (*place).to_owned())),
            "{format}: {pointer} = {value}: {found:?} has no {invariant:?} at {place}"
        );
    }
}

/// A request with reasoning, parallel calls, a picture, a failed result, and cache markers.
fn anthropic() -> Value {
    json!({
        "model": "claude-opus-4-5", "max_tokens": 1000,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "system": [{"type": "text", "text": "Be brief.",
            "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "tools": [{"name": "read", "input_schema": {"type": "object"},
            "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Read both.",
                "cache_control": {"type": "ephemeral"}}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Both, then.", "signature": "c2ln"},
                {"type": "text", "text": "I read them."},
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
                {"type": "tool_use", "id": "t2", "name": "read", "input": {"path": "b"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t2", "content": "gone", "is_error": true},
                {"type": "tool_result", "tool_use_id": "t1", "content": [
                    {"type": "text", "text": "words"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                        "data": "iVBORw0KGgo="}},
                ], "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": "And hurry."},
            ]},
            {"role": "assistant", "content": "There is one."},
            {"role": "user", "content": "Thanks."},
        ],
    })
}

#[test]
fn anthropic_refuses() {
    use Invariant::{Pairing, Position, Reasoning, Roles};
    let text = |words: &str| json!({"type": "text", "text": words});
    check(
        "anthropic",
        &anthropic(),
        &[
            // Calls and their results, and the order of both.
            ("/messages/2/content/1", text("x"), Pairing, "messages.1.content.2"),
            ("/messages/1/content/2", text("x"), Pairing, "messages.2.content.1"),
            ("/messages/1/content/3/id", json!("t1"), Pairing, "messages.1.content.3"),
            ("/messages/2/content/0/tool_use_id", json!("t1"), Pairing, "messages.2.content.1"),
            ("/messages/2/content/0", text("x"), Position, "messages.1.content.2"),
            ("/messages/1/content/3", text("x"), Position, "messages.1.content.3"),
            // Reasoning must be complete, and must begin the turn with the calls.
            (
                "/messages/1/content/0",
                json!({"type": "thinking", "thinking": "x"}),
                Reasoning,
                "messages.1.content.0",
            ),
            (
                "/messages/1/content/0",
                json!({"type": "redacted_thinking"}),
                Reasoning,
                "messages.1.content.0",
            ),
            // Roles.
            ("/messages/0/role", json!("assistant"), Roles, "messages.0.content.0"),
            ("/messages/4/role", json!("tool"), Roles, "messages.4"),
            (
                "/messages/4/content",
                json!([{"type": "thinking", "thinking": "x",
                "signature": "c2ln"}]),
                Roles,
                "messages.4.content.0",
            ),
            ("/messages", json!([]), Roles, "messages"),
        ],
    );
}

#[test]
fn anthropic_refuses_what_a_block_may_not_be() {
    use Invariant::{Cache, Empty, Keys, Opaque, Shape};
    let text = |words: &str| json!({"type": "text", "text": words});
    let marked = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
    check(
        "anthropic",
        &anthropic(),
        &[
            // Empty content.
            ("/messages/0/content/0/text", json!(" \n"), Empty, "messages.0.content.0"),
            ("/messages/3/content", json!(""), Empty, "messages.3"),
            ("/messages/3/content", json!([]), Empty, "messages.3"),
            (
                "/messages/2/content/1/content/0/text",
                json!(""),
                Empty,
                "messages.2.content.1.content.0",
            ),
            // The service's own compactions.
            (
                "/messages/3/content",
                json!([text("x"), {"type": "compaction", "content": "y"}]),
                Opaque,
                "messages.3.content.1",
            ),
            (
                "/messages/3/content",
                json!([{"type": "compaction", "content": ""}]),
                Opaque,
                "messages.3.content.0",
            ),
            // Cache markers.
            ("/messages/4/content", json!([marked]), Cache, "messages.4.content.0"),
            ("/tools/0/cache_control/ttl", json!("5m"), Cache, "system.0"),
            (
                "/messages/1/content/0",
                json!({"type": "thinking", "thinking": "x",
                "signature": "c2ln", "cache_control": {"type": "ephemeral"}}),
                Cache,
                "messages.1.content.0",
            ),
            // Keys and shapes.
            (
                "/messages/3",
                json!({"role": "assistant", "content": "x", "id": "m"}),
                Keys,
                "messages.3",
            ),
            (
                "/messages/0/content/0",
                json!({"type": "text", "text": "x", "seen": true}),
                Keys,
                "messages.0.content.0",
            ),
            ("/messages/1/content/2/id", json!("a b"), Shape, "messages.1.content.2"),
            ("/messages/1/content/2/input", json!("{}"), Shape, "messages.1.content.2"),
            ("/messages/3/content", json!(3), Shape, "messages.3"),
            ("/messages/3/content", json!([{"type": "words"}]), Shape, "messages.3.content.0"),
        ],
    );
}

#[test]
fn anthropic_refuses_loops_that_do_not_begin_with_reasoning() {
    let mut body = anthropic();
    let messages = body["messages"].as_array_mut().expect("messages");
    messages.truncate(3);
    assert_eq!(broken("anthropic", &body), []);
    body["messages"][1]["content"].as_array_mut().expect("blocks").remove(0);
    assert_eq!(
        broken("anthropic", &body),
        [(Invariant::Reasoning, "messages.1.content.0".to_owned())]
    );
    body["thinking"]["type"] = json!("disabled");
    assert_eq!(broken("anthropic", &body), []);
}

#[test]
fn anthropic_begins_with_the_user_or_with_its_own_compaction() {
    let mut body = anthropic();
    body["messages"][0] = json!({"role": "assistant", "content": [
        {"type": "compaction", "content": "What was before."}]});
    assert_eq!(broken("anthropic", &body), []);
    body["compaction"] = json!({"type": "summarize"});
    body["context_management"] = json!({"edits": []});
    assert_eq!(broken("anthropic", &body), [(Invariant::Opaque, "compaction".to_owned())]);
}

#[test]
fn anthropic_takes_so_many_bytes() {
    let mut body = anthropic();
    body["messages"][4]["content"] = json!("x".repeat(32_000_000));
    assert_eq!(broken("anthropic", &body), [(Invariant::Limits, "body".to_owned())]);
}

fn chat() -> Value {
    json!({
        "model": "gpt-5", "tools": [{"type": "function", "function": {"name": "read"}}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Read both."},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]},
            {"role": "assistant", "content": null, "reasoning_content": "Both, then.",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "read",
                        "arguments": "{\"path\":\"a\"}"}},
                    {"id": "c2", "type": "function", "function": {"name": "read",
                        "arguments": "{\"path\":\"b\"}"}},
                ]},
            {"role": "tool", "tool_call_id": "c2", "content": "gone"},
            {"role": "tool", "tool_call_id": "c1", "content": ""},
            {"role": "assistant", "content": "There is one."},
            {"role": "user", "content": "Thanks."},
        ],
    })
}

#[test]
fn chat_refuses() {
    use Invariant::{Empty, Keys, Pairing, Roles, Shape};
    check(
        "openai-chat",
        &chat(),
        &[
            // Calls and results, which must directly follow the calls.
            (
                "/messages/3",
                json!({"role": "user", "content": "x"}),
                Pairing,
                "messages.2.tool_calls.1",
            ),
            ("/messages/5/role", json!("tool"), Pairing, "messages.5"),
            ("/messages/3/tool_call_id", json!("c1"), Pairing, "messages.4"),
            ("/messages/3/tool_call_id", json!("c9"), Pairing, "messages.3"),
            ("/messages/2/tool_calls/1/id", json!("c1"), Pairing, "messages.2.tool_calls.1"),
            // Roles.
            ("/messages/6/role", json!("model"), Roles, "messages.6"),
            ("/messages/6/role", json!("developer"), Roles, "messages.6"),
            ("/messages", json!([]), Roles, "messages"),
            // Empty content.
            ("/messages/5/content", json!(null), Empty, "messages.5"),
            ("/messages/1/content", json!([]), Empty, "messages.1"),
            ("/messages/2/tool_calls", json!([]), Empty, "messages.2"),
            // Keys and shapes.
            (
                "/messages/5",
                json!({"role": "assistant", "content": "x", "time": 1}),
                Keys,
                "messages.5",
            ),
            (
                "/messages/2/tool_calls/0/id",
                json!("c".repeat(41)),
                Shape,
                "messages.2.tool_calls.0",
            ),
            (
                "/messages/2/tool_calls/0/function/name",
                json!("a.b"),
                Shape,
                "messages.2.tool_calls.0",
            ),
            (
                "/messages/2/tool_calls/0/function/arguments",
                json!({}),
                Shape,
                "messages.2.tool_calls.0",
            ),
            ("/messages/5/content", json!([{"type": "image_url"}]), Shape, "messages.5.content.0"),
            ("/messages/1/content/1/image_url", json!({}), Shape, "messages.1.content.1"),
        ],
    );
}

fn responses() -> Value {
    json!({
        "model": "gpt-5", "store": false, "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Read it."}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2Vh"},
            {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** Begin"},
            {"type": "function_call_output", "call_id": "c1", "output": "words"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": [
                {"type": "input_text", "text": "done"},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}]},
            {"type": "reasoning", "summary": [], "encrypted_content": "c2Vh"},
            {"type": "message", "role": "assistant",
                "content": [{"type": "output_text", "text": "It is done."}]},
            {"role": "user", "content": "Thanks."},
        ],
    })
}

#[test]
fn responses_refuse() {
    use Invariant::{Empty, Keys, Opaque, Pairing, Reasoning, Roles, Shape};
    let message = json!({"role": "user", "content": "x"});
    check(
        "openai-responses",
        &responses(),
        &[
            // Calls and results, whose kinds must match.
            ("/input/4", message.clone(), Pairing, "input.2"),
            ("/input/2", message.clone(), Pairing, "input.4"),
            ("/input/4/call_id", json!("c2"), Pairing, "input.4"),
            ("/input/3/call_id", json!("c1"), Pairing, "input.3"),
            (
                "/input/8",
                json!({"type": "function_call_output", "call_id": "c1", "output": ""}),
                Pairing,
                "input.8",
            ),
            // Reasoning must be complete, and must come before the item that it led to.
            ("/input/7", message.clone(), Reasoning, "input.6"),
            ("/input/1/encrypted_content", json!(null), Reasoning, "input.1"),
            (
                "/input/6",
                json!({"type": "reasoning", "encrypted_content": "c2Vh"}),
                Reasoning,
                "input.6",
            ),
            (
                "/input/8",
                json!({"type": "reasoning", "summary": [], "encrypted_content": "c2Vh"}),
                Reasoning,
                "input.8",
            ),
            // Roles.
            ("/input/8/role", json!("tool"), Roles, "input.8"),
            ("/input", json!([]), Roles, "input"),
            ("/input", json!(null), Roles, "input"),
            // Empty content.
            ("/input/8/content", json!(null), Empty, "input.8"),
            ("/input/4/output", json!(null), Empty, "input.4"),
            // The service's own compactions.
            ("/input/0", json!({"type": "compaction", "id": "cmp"}), Opaque, "input.0"),
            ("/input/0", json!({"type": "compaction_trigger"}), Opaque, "input.0"),
            // Keys and shapes.
            ("/input/0", json!({"role": "user", "content": "x", "uuid": "u"}), Keys, "input.0"),
            ("/input/2/call_id", json!(""), Shape, "input.2"),
            ("/input/2/name", json!("a b"), Shape, "input.2"),
            ("/input/2/arguments", json!({}), Shape, "input.2"),
            ("/input/0/content/0/type", json!("text"), Shape, "input.0.content.0"),
            ("/input/7/content/0/type", json!("input_text"), Shape, "input.7.content.0"),
            ("/input/8", json!({"type": "words"}), Shape, "input.8"),
        ],
    );
}

#[test]
fn responses_may_continue_what_the_service_has_stored() {
    let results = json!([{"type": "function_call_output", "call_id": "c1", "output": "x"}]);
    let alone = json!({"model": "gpt-5", "input": results});
    assert_eq!(broken("openai-responses", &alone), [(Invariant::Pairing, "input.0".to_owned())]);
    let mut continued = alone;
    continued["previous_response_id"] = json!("resp_1");
    assert_eq!(broken("openai-responses", &continued), []);
    continued["conversation"] = json!("conv_1");
    let found = broken("openai-responses", &continued);
    assert_eq!(found, [(Invariant::Opaque, "previous_response_id".to_owned())]);
}

fn gemini() -> Value {
    json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [{"name": "read"}]}],
        "contents": [
            {"role": "user", "parts": [{"text": "Read both."}]},
            {"role": "model", "parts": [
                {"text": "Both, then.", "thought": true},
                {"functionCall": {"name": "read", "args": {"path": "a"}},
                    "thoughtSignature": "c2ln"},
                {"functionCall": {"name": "list", "args": {}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "read", "response": {"output": "words"}}},
                {"functionResponse": {"name": "list", "response": {"error": "gone"}}},
            ]},
            {"role": "model", "parts": [
                {"functionCall": {"id": "f3", "name": "read", "args": {}},
                    "thoughtSignature": "c2ln"}]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "f3", "name": "read", "response": {"output": ""}}}]},
        ],
    })
}

#[test]
fn gemini_refuses() {
    use Invariant::{Cache, Empty, Keys, Pairing, Position, Reasoning, Roles, Shape};
    let mut cached = gemini();
    let response = |name: &str| json!({"functionResponse": {"name": name, "response": {}}});
    check(
        "gemini-request",
        &gemini(),
        &[
            // A turn with calls must be followed by as many results, of the same functions.
            ("/contents/2/parts", json!([response("read")]), Pairing, "contents.1"),
            (
                "/contents/2/parts/1/functionResponse/name",
                json!("grep"),
                Pairing,
                "contents.1.parts.2",
            ),
            ("/contents/4/parts/0/functionResponse/id", json!("f4"), Pairing, "contents.3.parts.0"),
            ("/contents/0/parts", json!([response("read")]), Pairing, "contents.0.parts.0"),
            (
                "/contents/2",
                json!({"role": "model", "parts": [{"text": "x"}]}),
                Position,
                "contents.3.parts.0",
            ),
            // Signatures of calls after the last message of the user.
            (
                "/contents/1/parts/1",
                json!({"functionCall": {"name": "read", "args": {}}}),
                Reasoning,
                "contents.1.parts.1",
            ),
            // Roles.
            ("/contents/0/role", json!("model"), Roles, "contents.0"),
            ("/contents/0/role", json!("system"), Roles, "contents.0"),
            ("/contents/2/role", json!("model"), Roles, "contents.2.parts.0"),
            ("/contents", json!([]), Roles, "contents"),
            // Empty content.
            ("/contents/0/parts", json!([]), Empty, "contents.0"),
            ("/contents/0/parts/0", json!({}), Empty, "contents.0.parts.0"),
            // Keys and shapes.
            ("/contents/0/parts/0", json!({"text": "x", "seen": true}), Keys, "contents.0.parts.0"),
            (
                "/contents/0/parts/0",
                json!({"text": "x", "fileData": {}}),
                Shape,
                "contents.0.parts.0",
            ),
            ("/contents/1/parts/1/functionCall/args", json!("{}"), Shape, "contents.1.parts.1"),
            (
                "/contents/2/parts/0/functionResponse/response",
                json!("x"),
                Shape,
                "contents.2.parts.0",
            ),
        ],
    );
    cached["cachedContent"] = json!("cachedContents/1");
    let found = broken("gemini-request", &cached);
    assert_eq!(found, [(Cache, "systemInstruction".to_owned()), (Cache, "tools".to_owned())]);
}

#[test]
fn what_is_no_body_is_said_to_be_none() {
    for format in ["anthropic", "openai-chat", "openai-responses", "gemini-request"] {
        for bytes in [&b"{\"messages\": ["[..], b"[]", b"3"] {
            let format = named(format).expect("a format");
            let transcript = (format.read)(&bytes, &mut ());
            let found = format.invariants.check(&transcript, &bytes);
            let invariants: Vec<Invariant> =
                found.iter().map(|violation| violation.invariant).collect();
            assert_eq!(invariants, [Invariant::Shape], "{}", format.name);
        }
    }
}
