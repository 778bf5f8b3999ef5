use epitome_model::{StopReason, TokenUsage, Tokens};
use serde_json::{Value as Json, json};

use super::*;
use crate::{Response, anthropic, find_api, gemini_api, ollama, openai_chat, openai_responses};

/// Receives a stream in pieces of several lengths, and checks that the length makes no difference.
fn received(api: &Api, bytes: &str) -> (Result<Response, BadResponse>, String) {
    let whole = in_pieces(api, bytes.as_bytes(), bytes.len().max(1));
    for length in [1, 2, 7, 64] {
        assert_eq!(in_pieces(api, bytes.as_bytes(), length), whole, "{length}: {bytes}");
    }
    whole
}

fn in_pieces(api: &Api, bytes: &[u8], length: usize) -> (Result<Response, BadResponse>, String) {
    let mut seen = String::new();
    let mut on = |delta: Delta<'_>| match delta {
        Delta::Text(text) => seen.push_str(text),
        Delta::Thinking(text) => seen.push_str(&format!("({text})")),
        Delta::Call(name) => seen.push_str(&format!("<{name}>")),
        Delta::Restart | Delta::Retry(_) => seen.push_str("<again>"),
    };
    let mut stream = Stream::new(api, api.endpoint.framing);
    let pushed = bytes.chunks(length).try_for_each(|piece| stream.push(piece, &mut on));
    let body = pushed.and_then(|()| stream.finish(&mut on));
    (body.and_then(|body| api.response(body.as_bytes())), seen)
}

/// Events as a service sends them.
fn events(events: &[Json]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// The error of a stream as text; `Ok` and the response if there is no error.
fn refused(api: &Api, bytes: &str) -> String {
    match received(api, bytes).0 {
        Ok(response) => format!("Ok {response:?}"),
        Err(BadResponse::Cut(why)) => format!("cut: {why}"),
        Err(BadResponse::Unreadable(why)) => format!("unreadable: {why}"),
        Err(BadResponse::Error(json)) => format!("error: {json}"),
    }
}

const TOO_SHORT: &str = "cut: the stream ends before the response does";

fn message_start() -> Json {
    json!({ "type": "message_start", "message": {
        "model": "claude", "content": [], "stop_reason": null,
        "usage": { "input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 1 } } })
}

fn block(index: u64, block: Json, deltas: &[Json]) -> Vec<Json> {
    let deltas = deltas.iter();
    let mut all =
        vec![json!({ "type": "content_block_start", "index": index, "content_block": block })];
    all.extend(
        deltas.map(|it| json!({ "type": "content_block_delta", "index": index, "delta": it })),
    );
    all.push(json!({ "type": "content_block_stop", "index": index }));
    all
}

fn message_end(reason: &str) -> [Json; 2] {
    let delta = json!({ "stop_reason": reason, "stop_sequence": null });
    let usage = json!({ "output_tokens": 7, "cache_read_input_tokens": null });
    [
        json!({ "type": "message_delta", "delta": delta, "usage": usage }),
        json!({"type": "message_stop"}),
    ]
}

#[test]
fn a_message_of_anthropic_is_put_together_exactly() {
    let mut all = vec![message_start(), json!({ "type": "ping" })];
    let thinking = json!({ "type": "thinking", "thinking": "", "signature": "" });
    let thought = [
        json!({ "type": "thinking_delta", "thinking": "Let me " }),
        json!({ "type": "thinking_delta", "thinking": "see" }),
        json!({ "type": "signature_delta", "signature": "c2ln" }),
    ];
    all.extend(block(0, thinking, &thought));
    all.extend(block(1, json!({ "type": "redacted_thinking", "data": "Zm9v" }), &[]));
    let citation = json!({ "type": "citations_delta", "citation": { "cited_text": "a" } });
    let text = [json!({ "type": "text_delta", "text": "H\u{e4}" }), citation];
    all.extend(block(2, json!({ "type": "text", "text": "" }), &text));
    all.push(json!({ "type": "of_tomorrow", "index": 5 }));
    all.push(json!({ "type": "message_of_tomorrow" }));
    let call = json!({ "type": "tool_use", "id": "t1", "name": "Read", "input": {} });
    let input = [r#"{"path""#, r#": "a","n":1.50}"#];
    let input = input.map(|it| json!({ "type": "input_json_delta", "partial_json": it }));
    all.extend(block(3, call.clone(), &input));
    all.extend(block(4, call, &[]));
    let search =
        json!({ "type": "server_tool_use", "id": "t2", "name": "web_search", "input": {} });
    let query = json!({ "type": "input_json_delta", "partial_json": r#"{"query":"a"}"# });
    all.extend(block(5, search, &[query]));
    all.extend(message_end("tool_use"));
    let (response, seen) = received(&anthropic::API, &events(&all));
    let response = response.expect("a response");
    assert_eq!(seen, "(Let me )(see)H\u{e4}<Read><Read><web_search>");
    let expect = concat!(
        r#"{"role":"assistant","content":["#,
        r#"{"type":"thinking","signature":"c2ln","thinking":"Let me see"},"#,
        r#"{"data":"Zm9v","type":"redacted_thinking"},"#,
        r#"{"type":"text","text":"Hä","citations":[{"cited_text":"a"}]},"#,
        r#"{"id":"t1","name":"Read","type":"tool_use","input":{"path": "a","n":1.50}},"#,
        r#"{"id":"t1","name":"Read","type":"tool_use","input":{}},"#,
        r#"{"id":"t2","name":"web_search","type":"server_tool_use","input":{"query":"a"}}]}"#,
    );
    assert_eq!(response.messages(), [expect]);
    assert_eq!(response.stop, StopReason::Call);
    assert_eq!(response.entry.model.as_deref(), Some("claude"));
    let (input, cached, output) = (Tokens(9), Tokens(4), Tokens(7));
    let usage = TokenUsage { input, cached, output, ..TokenUsage::default() };
    assert_eq!(response.usage, Some(usage));
}

#[test]
fn a_call_that_the_limit_cut_in_two_is_left_out() {
    let call = json!({ "type": "tool_use", "id": "t1", "name": "Read", "input": {} });
    let half = json!({ "type": "input_json_delta", "partial_json": "{\"path\": \"a" });
    let mut all = vec![message_start()];
    all.extend(block(0, json!({ "type": "text", "text": "I look." }), &[]));
    all.extend(block(1, call, &[half]));
    let with = |reason| events(&[&all[..], &message_end(reason)].concat());
    let response = received(&anthropic::API, &with("max_tokens")).0.expect("a response");
    assert_eq!((response.calls().count(), &response.stop), (0, &StopReason::Length));
    assert_eq!(response.text(), "I look.");
    let why = "unreadable: the arguments of a call are not JSON";
    assert_eq!(refused(&anthropic::API, &with("tool_use")), why);
}

#[test]
fn events_of_anthropic_in_the_wrong_order_are_no_response() {
    let text = block(
        0,
        json!({ "type": "text", "text": "" }),
        &[json!({ "type": "text_delta", "text": "a" })],
    );
    let [start, delta, stop] = [&text[0], &text[1], &text[2]];
    let (first, [last, end]) = (message_start(), message_end("end_turn"));
    let error = json!({ "type": "error", "error": { "type": "overloaded_error" } });
    let closed = "unreadable: an event is about a block that is not open";
    let cases: &[(&[&Json], &str)] = &[
        (&[start], "unreadable: `content_block_start` comes in the wrong place"),
        (&[&first, &first], "unreadable: `message_start` comes in the wrong place"),
        (&[&first, delta], closed),
        (&[&first, start, stop, delta], closed),
        (&[&first, start, delta, start], "unreadable: the blocks are not in order"),
        (
            &[&first, start, delta, &last, &end],
            "unreadable: the message ends before its last block",
        ),
        (&[&first, start, delta, stop, &last], TOO_SHORT),
        (&[&first, start, delta], TOO_SHORT),
        (
            &[&first, &error, &last, &end],
            r#"error: {"error":{"type":"overloaded_error"},"type":"error"}"#,
        ),
        (&[], "cut: it has no event"),
    ];
    for (order, expect) in cases {
        let order: Vec<Json> = order.iter().map(|event| (*event).clone()).collect();
        assert_eq!(&refused(&anthropic::API, &events(&order)), expect, "{order:?}");
    }
    let unknown = json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "x" } });
    let order = [first, start.clone(), unknown];
    let why = "unreadable: a delta of the unknown type `x`";
    assert_eq!(refused(&anthropic::API, &events(&order)), why);
}

fn chunk(delta: Json, finish: Option<&str>) -> Json {
    json!({ "model": "gpt", "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}

#[test]
fn chunks_of_a_completion_are_put_together() {
    let usage = json!({ "prompt_tokens": 9, "completion_tokens": 2,
        "prompt_tokens_details": { "cached_tokens": 4 } });
    let piece = |call: Json| chunk(json!({ "tool_calls": [call] }), None);
    let begins = |index: Json, id: &str| {
        piece(json!({ "index": index, "id": id, "function": { "name": "Read", "arguments": "" } }))
    };
    let goes_on = |index: Json, text: &str| {
        piece(json!({ "index": index, "function": { "arguments": text } }))
    };
    // Some services number their calls, and some do not.
    for numbers in [[json!(0), json!(1)], [json!(null), json!(null)]] {
        let all = [
            chunk(json!({ "role": "assistant", "content": "" }), None),
            chunk(json!({ "reasoning_content": "Hm." }), None),
            chunk(json!({ "content": "I " }), None),
            json!({ "choices": [{ "index": 1, "delta": { "content": "another choice" } }] }),
            chunk(json!({ "content": "look." }), None),
            begins(numbers[0].clone(), "c1"),
            goes_on(numbers[0].clone(), "{\"path\":"),
            goes_on(numbers[0].clone(), "\"a\"}"),
            begins(numbers[1].clone(), "c2"),
            chunk(json!({}), Some("tool_calls")),
            json!({ "choices": [], "usage": usage }),
        ];
        for end in ["data: [DONE]\n\n", "data: [DONE]", ""] {
            let bytes = format!("{}{end}", events(&all));
            let (response, seen) = received(&openai_chat::API, &bytes);
            let response = response.expect("a response");
            assert_eq!(seen, "(Hm.)I look.<Read><Read>");
            let expect = concat!(
                r#"{"role":"assistant","content":"I look.","reasoning_content":"Hm.","#,
                r#""tool_calls":[{"id":"c1","type":"function","function":"#,
                r#"{"name":"Read","arguments":"{\"path\":\"a\"}"}},"#,
                r#"{"id":"c2","type":"function","function":{"name":"Read","arguments":"{}"}}]}"#,
            );
            assert_eq!(response.messages(), [expect]);
            let (input, cached, output) = (Tokens(5), Tokens(4), Tokens(2));
            let usage = TokenUsage { input, cached, output, ..TokenUsage::default() };
            assert_eq!((response.stop, response.usage), (StopReason::Call, Some(usage)));
        }
    }
}

#[test]
fn a_completion_that_has_no_end_or_no_beginning_is_none() {
    let api = &openai_chat::API;
    let text = chunk(json!({ "content": "a" }), None);
    let call =
        chunk(json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "{" } }] }), None);
    let why = "unreadable: a piece of a call comes before its beginning";
    let error = json!({ "error": { "message": "Overloaded" } });
    assert_eq!(refused(api, &events(std::slice::from_ref(&text))), TOO_SHORT);
    assert_eq!(refused(api, "data: [DONE]\n\n"), TOO_SHORT);
    assert_eq!(refused(api, &events(&[call])), why);
    let without_id = json!({ "function": { "name": "Read", "arguments": "{}" } });
    let without_id = chunk(json!({ "tool_calls": [without_id] }), None);
    assert_eq!(refused(api, &events(&[without_id])), why);
    assert_eq!(
        refused(api, &events(&[text, error])),
        r#"error: {"error":{"message":"Overloaded"}}"#
    );
    assert_eq!(refused(api, "data: {\n\n"), "unreadable: an event in it is not JSON");
    assert_eq!(refused(api, "data: {"), "cut: an event in it is not JSON");
    assert_eq!(refused(api, "<html>"), "cut: it has no event");
}

#[test]
fn the_last_event_of_responses_has_all_or_the_items_before_it() {
    let item = json!({ "type": "message", "role": "assistant",
        "content": [{ "type": "output_text", "text": "Hi" }] });
    let call =
        json!({ "type": "function_call", "call_id": "c1", "name": "Read", "arguments": "{}" });
    let added = json!({ "type": "response.output_item.added", "output_index": 0, "item": call });
    let delta = json!({ "type": "response.output_text.delta", "delta": "Hi" });
    let done = |place: u64, item: &Json| {
        let kind = "response.output_item.done";
        json!({ "type": kind, "output_index": place, "item": item })
    };
    let ended = |kind: &str, output: Json| {
        let response = json!({ "model": "gpt", "status": kind, "output": output, "error": null });
        json!({ "type": format!("response.{kind}"), "response": response })
    };
    let (first, second) = (done(0, &call), done(1, &item));
    for output in [json!([call, item]), json!([]), json!(null)] {
        let all = [
            added.clone(),
            second.clone(),
            delta.clone(),
            first.clone(),
            ended("completed", output),
        ];
        let (response, seen) = received(&openai_responses::API, &events(&all));
        assert_eq!(seen, "<Read>Hi");
        let items = [call.to_string(), item.to_string()];
        assert_eq!(response.expect("a response").messages(), items);
    }
    let api = &openai_responses::API;
    assert_eq!(refused(api, &events(&[added, first])), TOO_SHORT);
    let failed = json!({ "type": "response.failed", "response": { "status": "failed",
        "error": { "code": "server_error", "message": "It broke." }, "output": [] } });
    let failure = refused(api, &events(&[failed]));
    assert!(failure.starts_with("error: ") && failure.contains("It broke."), "{failure}");
    let error = json!({ "type": "error", "message": "It broke." });
    assert_eq!(refused(api, &events(&[error])), r#"error: {"message":"It broke.","type":"error"}"#);
}

#[test]
fn parts_of_gemini_are_joined_but_for_signed_ones() {
    let chunk = |parts: Json, finish: Json| {
        let content = json!({ "role": "model", "parts": parts });
        let candidate = json!({ "content": content, "finishReason": finish });
        let usage = json!({ "promptTokenCount": 9, "candidatesTokenCount": 2 });
        json!({ "candidates": [candidate], "usageMetadata": usage })
    };
    let call =
        json!({ "functionCall": { "name": "Read", "args": { "n": 1 } }, "thoughtSignature": "s" });
    let all = [
        chunk(json!([{ "text": "Hm", "thought": true }]), json!(null)),
        chunk(json!([{ "text": ".", "thought": true }, { "text": "I " }]), json!(null)),
        chunk(json!([{ "text": "look" }, { "text": ".", "thoughtSignature": "t" }]), json!(null)),
        chunk(json!([call]), json!("STOP")),
    ];
    let api = &gemini_api::API;
    let (response, seen) = received(api, &events(&all));
    let response = response.expect("a response");
    assert_eq!((&*seen, &*response.text()), ("(Hm)(.)I look.<Read>", "I look."));
    let parts = json!([{ "text": "Hm.", "thought": true }, { "text": "I look" },
        { "text": ".", "thoughtSignature": "t" }, call]);
    let messages: Json = serde_json::from_str(response.messages()[0]).expect("JSON");
    assert_eq!(messages, json!({ "role": "model", "parts": parts }));
    assert_eq!(response.stop, StopReason::Call);
    assert_eq!(refused(api, &events(&all[..3])), TOO_SHORT);
    let blocked = json!({ "promptFeedback": { "blockReason": "SAFETY" } });
    let response = received(api, &events(&[blocked])).0.expect("a response");
    assert_eq!((response.messages().len(), &response.stop), (0, &StopReason::Refused));
}

#[test]
fn lines_of_ollama_are_put_together() {
    let api = &ollama::API;
    let lines = [
        r#"{"model":"q","message":{"thinking":"Hm."},"done":false}"#,
        r#"{"model":"q","message":{"content":"I "},"done":false}"#,
        r#"{"model":"q","message":{"content":"look."},"done":false}"#,
        r#"{"message":{"tool_calls":[{"function":{"name":"Read","arguments":{"n":1}}}]}}"#,
        r#"{"message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":9}"#,
    ];
    let (response, seen) = received(api, &lines.join("\n"));
    let response = response.expect("a response");
    assert_eq!(seen, "(Hm.)I look.<Read>");
    let expect = concat!(
        r#"{"role":"assistant","content":"I look.","reasoning":"Hm.","#,
        r#""tool_calls":[{"id":"call_0","type":"function","#,
        r#""function":{"name":"Read","arguments":"{\"n\":1}"}}]}"#,
    );
    assert_eq!((response.messages(), &response.stop), (vec![expect], &StopReason::Call));
    assert_eq!(refused(api, &lines[..3].join("\n")), TOO_SHORT);
    assert_eq!(refused(api, r#"{"error":"no model"}"#), r#"error: {"error":"no model"}"#);
}

#[test]
fn events_are_divided_as_the_standard_says() {
    let end = r#"{"candidates":[{"content":{"parts":[{"text":"c"}]},"finishReason":"STOP"}]}"#;
    let text = |text: &str| {
        format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}]}}}}]}}"#)
    };
    let (a, b) = (text("a"), text("b"));
    let (b1, b2) = b.split_at(b.find(':').expect("a colon") + 1);
    for line in ["\n", "\r\n", "\r"] {
        let bytes = [
            format!("\u{feff}: a comment{line}{line}event: x{line}id: 1{line}retry: 5{line}"),
            format!("data:{a}{line}{line}{line}data: {b1}{line}data:{b2}{line}{line}"),
            format!("data: {end}{line}"),
        ];
        let (response, seen) = received(&gemini_api::API, &bytes.concat());
        assert_eq!((response.map(|it| it.text()), &*seen), (Ok("abc".into()), "abc"), "{line:?}");
    }
    assert!(find_api("gemini").is_some(), "the old name");
}
