//! Messages of wires: each is understood whole, or refused before anything was said.

use epitome::ErrorKind;
use epitome::live::{Context, Setup};
use epitome_formats::WIRES;
use epitome_passes::built_in;
use proptest::prelude::*;
use serde_json::{Value, json};

fn context() -> Context {
    let recipe = built_in("clear-tool-uses").expect("a built-in recipe");
    let counter = epitome_tokens::Estimate::new();
    Context::in_memory(Setup::new(recipe).with_counter(counter))
}

/// A question and a call, as each wire spells them.
fn begun(wire: &str) -> Vec<Value> {
    match wire {
        "anthropic" => vec![
            json!({ "role": "user", "content": "Go." }),
            json!({ "role": "assistant", "content": [
                { "type": "tool_use", "id": "c1", "name": "Read", "input": { "path": "a" } }] }),
        ],
        "openai-chat" => vec![
            json!({ "role": "user", "content": "Go." }),
            json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": "c1",
                "type": "function", "function": { "name": "Read", "arguments": "{}" } }] }),
        ],
        "openai-responses" => vec![
            json!({ "role": "user", "content": "Go." }),
            json!({ "type": "function_call", "call_id": "c1", "name": "Read", "arguments": "{}" }),
        ],
        _ => vec![
            json!({ "role": "user", "parts": [{ "text": "Go." }] }),
            json!({ "role": "model", "parts": [
                { "functionCall": { "name": "Read", "args": { "path": "a" } } }] }),
        ],
    }
}

/// Says these, and returns the error.
fn refused(wire: &str, context: &mut Context, messages: &[Value]) -> Option<(ErrorKind, String)> {
    let texts: Vec<String> = messages.iter().map(Value::to_string).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let said = context.push_messages(wire, &texts, None);
    said.err().map(|err| (err.kind(), err.to_string()))
}

/// Of each wire, what it does not understand, and how that is told.
const FOREIGN: &[(&str, &str, &str)] = &[
    // Calls and results of the others.
    (
        "anthropic",
        r#"{"role":"assistant","content":"a","tool_calls":[{"id":"c1"}]}"#,
        "`tool_calls`",
    ),
    ("anthropic", r#"{"role":"tool","tool_call_id":"c1","content":"a"}"#, "the role `\"tool\"`"),
    ("anthropic", r#"{"role":"function","name":"f","content":"a"}"#, "the role `\"function\"`"),
    ("anthropic", r#"{"role":"model","parts":[{"text":"a"}]}"#, "the role `\"model\"`"),
    ("anthropic", r#"{"role":"user","parts":[{"text":"a"}]}"#, "`parts`"),
    ("anthropic", r#"{"type":"function_call_output","call_id":"c1","output":"a"}"#, "no `role`"),
    (
        "anthropic",
        r#"{"role":"user","content":[{"type":"input_text","text":"a"}]}"#,
        "the type `\"input_text\"` in `content.0`",
    ),
    (
        "anthropic",
        r#"{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}"#,
        "the type `\"input_audio\"` in `content.0`",
    ),
    (
        "anthropic",
        r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}"#,
        "the type `\"image_url\"` in `content.0`",
    ),
    ("anthropic", r#"{"role":"user","content":[{"text":"a"}]}"#, "no `type` in `content.0`"),
    ("anthropic", r#"{"role":"user","content":["a"]}"#, "`\"a\"` in `content.0`"),
    ("anthropic", r#"{"role":"user","content":5}"#, "a `content` that is `5`"),
    ("anthropic", r#"{"role":"user","content":{"text":"a"}}"#, "a `content` that is an object"),
    ("anthropic", r#"{"role":"user"}"#, "no `content`"),
    ("anthropic", r#"{"role":"system","content":"a"}"#, "the role `\"system\"`"),
    ("anthropic", r#"{"content":"a"}"#, "no `role`"),
    ("anthropic", r#"{"contents":[{"role":"user","parts":[{"text":"a"}]}]}"#, "no `role`"),
    ("anthropic", r#""a""#, "no object"),
    (
        "anthropic",
        r#"{"role":"user","content":[{"type":"tool_use","id":"c2","name":"f","input":{}}]}"#,
        "a `tool_use` of the role `user` in `content.0`",
    ),
    (
        "anthropic",
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c2","name":"f","input":"{}"}]}"#,
        "a `input` that is no object in `content.0`",
    ),
    (
        "anthropic",
        r#"{"role":"assistant","content":[{"type":"tool_use","name":"f","input":{}}]}"#,
        "no `id` in `content.0`",
    ),
    (
        "anthropic",
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"widget"}]}]}"#,
        "the type `\"widget\"` in `content.0` in `content.0`",
    ),
    (
        "anthropic",
        r#"{"role":"user","content":[{"type":"text","text":5}]}"#,
        "a `text` that is no text in `content.0`",
    ),
    (
        "openai-chat",
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c2","name":"f","input":{}}]}"#,
        "the type `\"tool_use\"` in `content.0`",
    ),
    (
        "openai-chat",
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"a"}]}"#,
        "the type `\"tool_result\"` in `content.0`",
    ),
    (
        "openai-chat",
        r#"{"role":"user","content":[{"type":"image","source":{}}]}"#,
        "the type `\"image\"` in `content.0`",
    ),
    ("openai-chat", r#"{"role":"function","name":"f","content":"a"}"#, "the role `\"function\"`"),
    (
        "openai-chat",
        r#"{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}"#,
        "`function_call`",
    ),
    ("openai-chat", r#"{"role":"assistant","content":null,"audio":{"id":"a1"}}"#, "`audio`"),
    ("openai-chat", r#"{"role":"model","parts":[{"text":"a"}]}"#, "the role `\"model\"`"),
    ("openai-chat", r#"{"role":"user","parts":[{"text":"a"}]}"#, "`parts`"),
    (
        "openai-chat",
        r#"{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"}"#,
        "no `role`",
    ),
    ("openai-chat", r#"{"type":"message","role":"user","content":"a"}"#, "the type `\"message\"`"),
    ("openai-chat", r#"{"role":"user","content":5}"#, "a `content` that is `5`"),
    ("openai-chat", r#"{"role":"user","content":null}"#, "a `content` that is `null`"),
    ("openai-chat", r#"{"role":"tool","content":"a"}"#, "no `tool_call_id`"),
    ("openai-chat", r#"{"role":"user","content":"a","tool_calls":[{"id":"c2"}]}"#, "`tool_calls`"),
    (
        "openai-chat",
        r#"{"role":"assistant","tool_calls":[{"id":"c2"}]}"#,
        "no `function` in `tool_calls.0`",
    ),
    (
        "openai-chat",
        r#"{"role":"assistant","tool_calls":{"id":"c2"}}"#,
        "a `tool_calls` that is no list",
    ),
    (
        "openai-chat",
        r#"{"role":"user","content":"a","attachments":[{"url":"u"}]}"#,
        "`attachments`",
    ),
    (
        "openai-responses",
        r#"{"role":"assistant","content":"a","tool_calls":[{"id":"c2"}]}"#,
        "`tool_calls`",
    ),
    (
        "openai-responses",
        r#"{"role":"tool","tool_call_id":"c1","content":"a"}"#,
        "the role `\"tool\"`",
    ),
    (
        "openai-responses",
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c2","name":"f","input":{}}]}"#,
        "the type `\"tool_use\"` in `content.0`",
    ),
    (
        "openai-responses",
        r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}"#,
        "the type `\"image_url\"` in `content.0`",
    ),
    ("openai-responses", r#"{"role":"user","parts":[{"text":"a"}]}"#, "`parts`"),
    ("openai-responses", r#"{"type":"dance","call_id":"c1"}"#, "the type `\"dance\"`"),
    ("openai-responses", r#"{"type":"item_reference","id":"i"}"#, "the type `\"item_reference\"`"),
    (
        "openai-responses",
        r#"{"type":"function_call","id":"c2","name":"f","arguments":"{}"}"#,
        "no `call_id`",
    ),
    (
        "openai-responses",
        r#"{"type":"function_call_output","call_id":"c1","output":5}"#,
        "a `output` that is `5`",
    ),
    ("openai-responses", r#"{"role":"user","content":5}"#, "a `content` that is `5`"),
    ("openai-responses", r#"{"type":5,"role":"user","content":"a"}"#, "the type `5`"),
    ("gemini", r#"{"role":"user","content":"a"}"#, "`content`"),
    ("gemini", r#"{"role":"assistant","parts":[{"text":"a"}]}"#, "the role `\"assistant\"`"),
    ("gemini", r#"{"role":"tool","tool_call_id":"c1","content":"a"}"#, "the role `\"tool\"`"),
    (
        "gemini",
        r#"{"role":"model","parts":[{"type":"tool_use","id":"c2","name":"f","input":{}}]}"#,
        "not one of `text`, `functionCall`, `functionResponse`, `inlineData`, `fileData`, `executableCode`, `codeExecutionResult` in `parts.0`",
    ),
    (
        "gemini",
        r#"{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"}"#,
        "`arguments`",
    ),
    ("gemini", r#"{"role":"user","parts":"a"}"#, "a `parts` that is no list"),
    ("gemini", r#"{"role":"user"}"#, "no `parts`"),
    (
        "gemini",
        r#"{"role":"user","parts":[{"functionCall":{"name":"f"}}]}"#,
        "a call that is not of the model in `parts.0`",
    ),
    (
        "gemini",
        r#"{"role":"model","parts":[{"functionCall":{"name":"f","args":"{}"}}]}"#,
        "a `args` that is no object in `parts.0`",
    ),
    (
        "gemini",
        r#"{"role":"user","parts":[{"functionResponse":{"name":"Read","response":"a"}}]}"#,
        "a `response` that is no object in `parts.0`",
    ),
    ("gemini", r#"{"role":"user","parts":[{"text":5}]}"#, "a `text` that is no text in `parts.0`"),
];

#[test]
fn what_a_wire_does_not_have_is_refused_before_anything_is_said() {
    for (wire, message, why) in FOREIGN {
        let mut context = context();
        assert_eq!(refused(wire, &mut context, &begun(wire)), None, "{wire}");
        let (log, view) = (context.log().to_vec(), context.as_it_is().messages());
        let first = begun(wire).remove(0);
        let foreign: Value = serde_json::from_str(message).expect("JSON");
        let expect = format!("message 2 of 3 is none of {wire}: {why}");
        let messages = [first.clone(), foreign, first];
        assert_eq!(
            refused(wire, &mut context, &messages),
            Some((ErrorKind::Unreadable, expect)),
            "{message}"
        );
        assert_eq!((context.log(), context.as_it_is().messages()), (&log[..], view), "{message}");
        assert_eq!(context.messages(), 2, "{message}");
    }
}

#[test]
fn each_wire_refuses_the_calls_of_every_other() {
    for wire in WIRES {
        for other in WIRES.iter().filter(|other| other.name != wire.name) {
            let call = begun(other.name).remove(1);
            let refused = refused(wire.name, &mut context(), &[call]);
            assert!(refused.is_some(), "{} takes a call of {}", wire.name, other.name);
        }
    }
}

#[test]
fn an_error_says_whose_message_it_is() {
    let message = r#"{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}"#;
    let err = context().push_messages("anthropic", &[message], None).expect_err("a refusal");
    assert_eq!(err.hint(), Some("openai-chat has such messages"));
}

#[test]
fn what_stands_beside_words_is_let_alone() {
    for (wire, message) in [
        (
            "anthropic",
            r#"{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"},"citations":[]}]}"#,
        ),
        (
            "anthropic",
            r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1}}"#,
        ),
        (
            "anthropic",
            r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"Hi"}}]}"#,
        ),
        (
            "anthropic",
            r#"{"role":"user","content":[{"type":"document","source":{"type":"text","data":"Hi"}}],"timestamp":5}"#,
        ),
        ("openai-chat", r#"{"role":"user","content":"Hi","name":"Ann","metadata":{"a":1}}"#),
        (
            "openai-chat",
            r#"{"role":"assistant","content":"Hi","refusal":null,"annotations":[],"audio":null,"function_call":null,"tool_calls":[]}"#,
        ),
        ("openai-chat", r#"{"role":"assistant","content":null,"refusal":"Hi"}"#),
        ("openai-chat", r#"{"role":"assistant","refusal":"Hi"}"#),
        ("openai-chat", r#"{"role":"assistant","content":[{"type":"refusal","refusal":"Hi"}]}"#),
        (
            "openai-chat",
            r#"{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"Hi"}}]}"#,
        ),
        (
            "openai-chat",
            r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/Hi"}}]}"#,
        ),
        ("openai-chat", r#"{"role":"developer","content":"Hi"}"#),
        (
            "openai-responses",
            r#"{"id":"m","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hi","annotations":[],"logprobs":[]}]}"#,
        ),
        (
            "openai-responses",
            r#"{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"Hi"}]}"#,
        ),
        ("openai-responses", r#"{"role":"user","content":[{"type":"input_file","file_id":"Hi"}]}"#),
        (
            "openai-responses",
            r#"{"type":"web_search_call","id":"w","status":"completed","action":{"type":"search","query":"Hi"}}"#,
        ),
        ("gemini", r#"{"parts":[{"text":"Hi","thoughtSignature":"s"}]}"#),
        ("gemini", r#"{"role":"user","parts":[{"fileData":{"fileUri":"Hi"}}]}"#),
        (
            "gemini",
            r#"{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"Hi"}}]}"#,
        ),
    ] {
        let mut context = context();
        context.push_json(wire, message).unwrap_or_else(|err| panic!("{message}: {err}"));
        // A prompt alone is no request.
        let question = begun(wire).remove(0);
        context.push_json(wire, &question.to_string()).expect("a question");
        assert!(view(wire, &context).contains("Hi"), "{message}: {}", view(wire, &context));
    }
}

#[test]
fn what_a_function_returns_beside_one_text_comes_back_as_json() {
    for (response, expect) in [
        (r#"{"output":"a"}"#, r#"{"output":"a"}"#),
        (r#"{"error":"a"}"#, r#"{"error":"a"}"#),
        (r#"{"output":"a","exit":1}"#, r#"{"output":"{\"output\":\"a\",\"exit\":1}"}"#),
        (r#"{"degrees":20}"#, r#"{"output":"{\"degrees\":20}"}"#),
        (r#"{"error":{"code":5}}"#, r#"{"error":"{\"error\":{\"code\":5}}"}"#),
    ] {
        let mut context = context();
        assert_eq!(refused("gemini", &mut context, &begun("gemini")), None);
        let part = format!(r#"{{"functionResponse":{{"name":"Read","response":{response}}}}}"#);
        let message = format!(r#"{{"role":"user","parts":[{part}]}}"#);
        context.push_json("gemini", &message).expect("a result");
        let view = view("gemini", &context);
        assert!(view.contains(&format!(r#""response":{expect}"#)), "{view}");
    }
}

#[test]
fn a_result_has_one_call_and_a_call_one_result() {
    let result = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": "a" });
    let mut context = context();
    assert_eq!(refused("openai-chat", &mut context, &begun("openai-chat")), None);
    let why = |context: &mut Context, messages: &[Value]| {
        refused("openai-chat", context, messages).map(|(_, why)| why)
    };
    assert_eq!(
        why(&mut context, &[result("c1"), result("c2")]),
        Some("message 2 of 2: a result of `c2`, which nobody called".to_owned())
    );
    assert_eq!(why(&mut context, &[result("c1")]), None);
    assert_eq!(
        why(&mut context, &[result("c1")]),
        Some("message 1 of 1: the call `c1` has its result already".to_owned())
    );
}

#[test]
fn calls_of_one_id_are_told_apart_in_a_log_that_is_taken_up_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("a.jsonl");
    let setup = || Setup::new(built_in("epitome").expect("a recipe"));
    let result = json!({ "role": "tool", "tool_call_id": "c1", "content": "first" });
    let mut context = Context::create(&path, setup()).expect("a disk");
    let [question, call] = <[Value; 2]>::try_from(begun("openai-chat")).expect("two");
    let said = [question, call.clone(), result];
    assert_eq!(refused("openai-chat", &mut context, &said), None);
    assert_eq!(refused("openai-chat", &mut context, &[call]), None);
    drop(context);
    let mut context = Context::open(&path, setup()).expect("a log");
    assert_eq!(context.messages(), 4);
    let result = json!({ "role": "tool", "tool_call_id": "c1", "content": "second" });
    assert_eq!(refused("openai-chat", &mut context, &[result]), None);
    let body: Value = serde_json::from_str(&view("openai-chat", &context)).expect("JSON");
    let results = body["messages"].as_array().expect("messages").iter();
    let results = results.filter(|it| it["role"] == "tool").map(|it| it["content"].to_string());
    assert_eq!(results.collect::<Vec<_>>(), ["\"first\"", "\"second\""]);
}

#[test]
fn what_was_billed_counts_up_to_the_last_response() {
    let long =
        json!({ "role": "tool", "tool_call_id": "c1", "content": "some words ".repeat(500) });
    let mut messages = begun("openai-chat");
    messages.push(long);
    let texts: Vec<String> = messages.iter().map(Value::to_string).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut context = context();
    let billed = epitome_model::Tokens(5_000);
    context.push_messages("openai-chat", &texts, Some(billed)).expect("messages");
    let tokens = context.usage().tokens.0;
    assert!(tokens > 6_000, "{tokens}: the result came after what was billed");
}

fn view(wire: &str, context: &Context) -> String {
    match wire {
        "anthropic" => context.as_it_is().messages(),
        wire => context.as_it_is().body(wire).expect("a wire").body,
    }
}

/// One thing said: words, or a call and its result.
#[derive(Clone, Debug)]
enum Talk {
    User(String),
    Model(String),
    Call { id: String, name: String, key: String, value: String, result: String },
}

fn talk() -> impl Strategy<Value = Vec<Talk>> {
    let words = || "[a-zé\"\\\\\n{}<\u{1F600}]{1,20}x";
    let one = prop_oneof![
        words().prop_map(Talk::User),
        words().prop_map(Talk::Model),
        ("id-[a-z]{1,2}", "[A-Za-z][a-z_]{0,9}", words(), words(), words())
            .prop_map(|(id, name, key, value, result)| Talk::Call { id, name, key, value, result }),
    ];
    prop::collection::vec(one, 1..12)
}

/// As each wire spells it, in no order of keys and with others beside.
fn spelt(wire: &str, talk: &Talk) -> Vec<Value> {
    match (wire, talk) {
        ("anthropic", Talk::User(words)) => vec![json!({ "content": [
            { "text": words, "cache_control": { "type": "ephemeral" }, "type": "text" }],
            "role": "user" })],
        ("gemini", Talk::User(words)) => vec![json!({ "parts": [{ "text": words }] })],
        (_, Talk::User(words)) => vec![json!({ "role": "user", "content": words, "name": "n" })],
        ("gemini", Talk::Model(words)) => {
            vec![json!({ "role": "model", "parts": [{ "text": words, "thoughtSignature": "s" }] })]
        }
        ("openai-chat", Talk::Model(words)) => {
            vec![json!({ "role": "assistant", "refusal": words, "content": null })]
        }
        (_, Talk::Model(words)) => vec![json!({ "role": "assistant", "content": words })],
        (wire, Talk::Call { id, name, key, value, result }) => {
            let arguments = json!({ key: value });
            match wire {
                "anthropic" => vec![
                    json!({ "role": "assistant", "content": [
                        { "type": "tool_use", "id": id, "name": name, "input": arguments }] }),
                    json!({ "role": "user", "content": [
                        { "type": "tool_result", "tool_use_id": id, "content": result }] }),
                ],
                "openai-chat" => vec![
                    json!({ "role": "assistant", "tool_calls": [{ "id": id, "type": "function",
                        "function": { "name": name, "arguments": arguments.to_string() } }] }),
                    json!({ "role": "tool", "tool_call_id": id, "content": result }),
                ],
                "openai-responses" => vec![
                    json!({ "type": "function_call", "call_id": id, "name": name,
                        "arguments": arguments.to_string() }),
                    json!({ "type": "function_call_output", "call_id": id, "output": result }),
                ],
                _ => vec![
                    json!({ "role": "model", "parts": [
                        { "functionCall": { "name": name, "args": arguments } }] }),
                    json!({ "role": "user", "parts": [
                        { "functionResponse": { "name": name, "response": { "got": result } } }] }),
                ],
            }
        }
    }
}

/// Every text of a document, and every text in a text that is JSON.
fn texts(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            into.push(text.clone());
            if let Ok(inner @ Value::Object(_)) = serde_json::from_str(text) {
                texts(&inner, into);
            }
        }
        Value::Array(list) => list.iter().for_each(|it| texts(it, into)),
        Value::Object(members) => members.iter().for_each(|(key, it)| {
            into.push(key.clone());
            texts(it, into);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

proptest! {
    #[test]
    fn what_is_understood_comes_back_whole(talk in talk(), at in 0..WIRES.len(), split: bool) {
        let wire = WIRES[at].name;
        let mut context = context();
        let messages: Vec<Value> = talk.iter().flat_map(|it| spelt(wire, it)).collect();
        let n = messages.len() as u64;
        let groups = if split { messages.chunks(1) } else { messages.chunks(messages.len()) };
        for group in groups {
            prop_assert_eq!(refused(wire, &mut context, group), None);
        }
        prop_assert_eq!(context.messages(), n);
        let view: Value = serde_json::from_str(&view(wire, &context)).expect("JSON");
        let mut said = Vec::new();
        texts(&view, &mut said);
        let mut ids = Vec::new();
        for it in &talk {
            let (words, id) = match it {
                Talk::User(words) | Talk::Model(words) => (vec![words], None),
                Talk::Call { id, name, key, value, result } => (vec![name, key, value, result], Some(id)),
            };
            for words in words {
                prop_assert!(said.contains(words), "{words:?} is not in {view}");
            }
            // Of calls with one id, the later ones have another. Gemini's have none.
            if let Some(id) = id.filter(|id| wire != "gemini" && !ids.contains(id)) {
                prop_assert_eq!(said.iter().filter(|it| *it == id).count(), 2, "{} in {}", id, view);
                ids.push(id);
            }
        }
    }
}
