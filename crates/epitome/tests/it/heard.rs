//! Messages in each API format: epitome understands a message as a whole, or refuses it before
//! anything is appended.

use epitome::ErrorKind;
use epitome::live::{self, Context, Setup};
use epitome_api::APIS;
use epitome_passes::built_in;
use proptest::prelude::*;
use serde_json::{Value, json};

fn context() -> Context {
    let recipe = built_in("clear-tool-uses").expect("a built-in recipe");
    let counter = epitome_tokens::Estimate::new();
    Context::in_memory(Setup::new(recipe).with_counter(counter))
}

/// A question and a call in an API format.
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

/// Pushes messages, and returns the kind and the text of the error. `None` if they are accepted.
fn refused(wire: &str, context: &mut Context, messages: &[Value]) -> Option<(ErrorKind, String)> {
    let texts: Vec<String> = messages.iter().map(Value::to_string).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let pushed = context.push_messages(wire, &texts, None);
    pushed.err().map(|err| (err.kind(), err.to_string()))
}

/// For each API format, messages that are refused in it, each with its error: one per line.
const FOREIGN: &str = include_str!("heard/foreign.txt");
/// For each API format, messages with additional members, which are ignored. The text of each
/// message is "Hi".
const BESIDE: &str = include_str!("heard/beside.txt");

fn fields<const N: usize>(table: &str) -> impl Iterator<Item = [&str; N]> {
    let fields = |line| <[&str; N]>::try_from(str::split(line, '\t').collect::<Vec<_>>());
    table.lines().map(move |line| fields(line).expect("a line of so many fields"))
}

#[test]
fn what_a_wire_does_not_have_is_refused_before_anything_is_said() {
    for [wire, message, why] in fields(FOREIGN) {
        let mut context = context();
        assert_eq!(refused(wire, &mut context, &begun(wire)), None, "{wire}");
        let (log, view) = (context.log().to_vec(), context.unchanged_view().messages());
        let first = begun(wire).remove(0);
        let first = first.to_string();
        let pushed = context.push_messages(wire, &[&first, message, &first], None);
        let err = pushed.expect_err("it is of another wire");
        let expect = format!("message 2 of 3 is none of {wire}: {why}");
        assert_eq!((err.kind(), err.to_string()), (ErrorKind::Unreadable, expect), "{message}");
        assert_eq!(
            (context.log(), context.unchanged_view().messages()),
            (&log[..], view),
            "{message}"
        );
        assert_eq!(context.message_count(), 2, "{message}");
    }
}

#[test]
fn each_wire_refuses_the_calls_of_every_other() {
    for wire in APIS {
        for other in APIS.iter().filter(|other| other.name != wire.name) {
            let call = begun(other.name).remove(1);
            let refused = refused(wire.name, &mut context(), &[call]);
            assert!(refused.is_some(), "{} takes a call of {}", wire.name, other.name);
        }
    }
}

#[test]
fn an_error_says_whose_message_it_is() {
    let message = begun("openai-chat").remove(1).to_string();
    let err = context().push_messages("anthropic", &[&message], None).expect_err("a refusal");
    assert_eq!(err.hint(), Some("openai-chat has such messages"));
}

#[test]
fn what_stands_beside_words_is_let_alone() {
    for [wire, message] in fields(BESIDE) {
        let mut context = context();
        context.push_json(wire, message).unwrap_or_else(|err| panic!("{message}: {err}"));
        // The message may be a system message, which alone is not a valid request.
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
        assert_eq!(refused("gemini-api", &mut context, &begun("gemini-api")), None);
        let part = format!(r#"{{"functionResponse":{{"name":"Read","response":{response}}}}}"#);
        let message = format!(r#"{{"role":"user","parts":[{part}]}}"#);
        context.push_json("gemini-api", &message).expect("a result");
        let view = view("gemini-api", &context);
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
        Some("message 2 of 2: a result of `c2`, but there is no such call".to_owned())
    );
    let part = json!({ "functionResponse": { "name": "Read", "response": {} } });
    assert_eq!(
        refused("gemini-api", &mut self::context(), &[json!({ "parts": [part] })]),
        Some((
            ErrorKind::Unreadable,
            "message 1 of 1: a result of `Read`, but there is no such call".to_owned()
        ))
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
    let mut context = live::create(&path, setup()).expect("a disk");
    let [question, call] = <[Value; 2]>::try_from(begun("openai-chat")).expect("two");
    let messages_of_log = [question, call.clone(), result];
    assert_eq!(refused("openai-chat", &mut context, &messages_of_log), None);
    assert_eq!(refused("openai-chat", &mut context, &[call]), None);
    drop(context);
    let mut context = live::open(&path, setup()).expect("a log");
    assert_eq!(context.message_count(), 4);
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
        "anthropic" => context.unchanged_view().messages(),
        wire => context.unchanged_view().body(wire).expect("a wire").body,
    }
}

/// A message of the conversation: a text, or a call and its result.
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

/// The message in an API format, with keys in an unusual order and additional members.
fn spelt(wire: &str, talk: &Talk) -> Vec<Value> {
    match (wire, talk) {
        ("anthropic", Talk::User(words)) => vec![json!({ "content": [
            { "text": words, "cache_control": { "type": "ephemeral" }, "type": "text" }],
            "role": "user" })],
        ("gemini-api", Talk::User(words)) => vec![json!({ "parts": [{ "text": words }] })],
        (_, Talk::User(words)) => vec![json!({ "role": "user", "content": words, "name": "n" })],
        ("gemini-api", Talk::Model(words)) => {
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
    fn what_is_understood_comes_back_whole(talk in talk(), at in 0..APIS.len(), split: bool) {
        let wire = APIS[at].name;
        let mut context = context();
        let messages: Vec<Value> = talk.iter().flat_map(|it| spelt(wire, it)).collect();
        let n = messages.len() as u64;
        let groups = if split { messages.chunks(1) } else { messages.chunks(messages.len()) };
        for group in groups {
            prop_assert_eq!(refused(wire, &mut context, group), None);
        }
        prop_assert_eq!(context.message_count(), n);
        let view: Value = serde_json::from_str(&view(wire, &context)).expect("JSON");
        let mut strings = Vec::new();
        texts(&view, &mut strings);
        let mut ids = Vec::new();
        for it in &talk {
            let (words, id) = match it {
                Talk::User(words) | Talk::Model(words) => (vec![words], None),
                Talk::Call { id, name, key, value, result } => {
                    (vec![name, key, value, result], Some(id))
                }
            };
            for words in words {
                prop_assert!(strings.contains(words), "{words:?} is not in {view}");
            }
            // If several calls have the same id, the later ones get another id. Calls of Gemini's
            // API have no ids.
            if let Some(id) = id.filter(|id| wire != "gemini-api" && !ids.contains(id)) {
                let times = strings.iter().filter(|it| *it == id).count();
                prop_assert_eq!(times, 2, "{} in {}", id, view);
                ids.push(id);
            }
        }
    }
}
