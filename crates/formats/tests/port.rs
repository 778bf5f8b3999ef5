//! Any session ported to another agent has the same content there, and satisfies that agent's
//! invariants.

use std::collections::{BTreeMap, BTreeSet};

use epitome_api::{LeftBehind, RequestBody};
use epitome_formats::{FORMATS, Format, Make, NewSessionValues, find_format};
use epitome_model::{Block, Call, Output, Part, Role, Source, Transcript, decode};
use proptest::prelude::*;
use serde_json::{Value, json};

const GIVEN: NewSessionValues<'static> = NewSessionValues {
    id: "01a1fb3b-31f2-7601-bb99-e47e04b7ff1d",
    cwd: "/home/dev/project",
    time: "2026-11-21T12:00:00.000Z",
    millis: 1_795_262_400_000,
};

/// The formats to which sessions can be ported.
fn targets() -> impl Iterator<Item = (&'static Format, Make)> {
    FORMATS.iter().filter_map(|format| Some((format, format.make?)))
}

/// Texts that epitome adds because an API requires them.
const MADE: [&str; 2] = ["[the session begins with the reply below]", "[no output]"];

/// The parts of a context that must be ported.
#[derive(Debug, Default, PartialEq)]
struct Said {
    user: Vec<String>,
    model: Vec<String>,
    agent: Vec<String>,
    summaries: Vec<String>,
    pictures: Vec<String>,
    /// The results of calls, in order.
    results: Vec<String>,
    failed: Vec<bool>,
    /// The texts in the arguments of those calls.
    arguments: Vec<BTreeSet<String>>,
}

/// The content of all entries except those in `left_out`, which are sent before the conversation.
fn ported_parts(transcript: &Transcript, source: &dyn Source, left_out: &[usize]) -> Said {
    let mut ported_texts = Said::default();
    let mut calls: Vec<(&Call, Option<&Output>)> = Vec::new();
    for (_, entry) in transcript.context().filter(|(item, _)| !left_out.contains(item)) {
        for block in &entry.blocks {
            match block {
                Block::Text(text) => {
                    let text = text.read(source).into_owned();
                    let words = match entry.role {
                        // Claude Code takes such a text for its own, even if another program wrote
                        // it.
                        Role::User if text.starts_with("<system-reminder>") => {
                            &mut ported_texts.agent
                        }
                        Role::User => &mut ported_texts.user,
                        Role::Assistant => &mut ported_texts.model,
                        Role::Tool | Role::System => &mut ported_texts.agent,
                    };
                    let is_made = MADE.contains(&&*text) || text.trim().is_empty();
                    words.extend(Some(text).filter(|_| !is_made));
                }
                Block::Summary(text) => {
                    let text = text.read(source).into_owned();
                    ported_texts
                        .summaries
                        .extend(Some(text).filter(|text| !text.trim().is_empty()));
                }
                Block::Image(image) if entry.role != Role::Assistant => {
                    ported_texts.pictures.push(picture(source, image));
                }
                Block::Call(call) => calls.push((call, None)),
                Block::Output(output) => {
                    let mut open = calls.iter_mut().rev().filter(|(_, answer)| answer.is_none());
                    if let Some((_, answer)) = open.find(|(call, _)| call.id == output.call) {
                        *answer = Some(output);
                    }
                }
                _ => {}
            }
        }
    }
    for (call, output) in calls {
        let Some(output) = output else { continue };
        ported_texts.arguments.push(texts(call, source));
        ported_texts.failed.push(output.error);
        let mut words = String::new();
        for part in &output.parts {
            match part {
                Part::Text(text) => {
                    let text = text.read(source);
                    let is_made = MADE.contains(&&*text) || text.trim().is_empty();
                    words.push_str(if is_made { "" } else { &text });
                }
                Part::Image(image) => words.push_str(&picture(source, image)),
                Part::Opaque(_) => {}
            }
        }
        ported_texts.results.push(words);
    }
    ported_texts
}

fn picture(source: &dyn Source, image: &epitome_model::Image) -> String {
    let literal = decode(&source.at(image.data)).into_owned();
    literal.rsplit(',').next().unwrap_or_default().to_owned()
}

/// All texts in the arguments of a call.
fn texts(call: &Call, source: &dyn Source) -> BTreeSet<String> {
    fn walk(value: &Value, into: &mut BTreeSet<String>) {
        match value {
            Value::String(text) => into.extend(Some(text.clone()).filter(|text| !text.is_empty())),
            Value::Array(list) => list.iter().for_each(|value| walk(value, into)),
            Value::Object(members) => members.values().for_each(|value| walk(value, into)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let raw = source.at(call.arguments);
    let mut found = BTreeSet::new();
    let text = decode(&raw);
    match serde_json::from_slice(&raw) {
        Ok(value @ Value::Object(_)) => walk(&value, &mut found),
        _ => match serde_json::from_str(&text) {
            Ok(value @ Value::Object(_)) => walk(&value, &mut found),
            _ => found.extend(Some(text.into_owned()).filter(|text| !text.is_empty())),
        },
    }
    found
}

fn check(format: &str, bytes: &[u8]) {
    let format = find_format(format).expect("a format");
    let transcript = (format.read)(&bytes, &mut ());
    let expect = ported_parts(&transcript, &bytes, &transcript.head.prompt);
    for (target, make) in targets() {
        let made: RequestBody = make(&transcript, &bytes, &GIVEN);
        let context = format!("{} → {}: {}", format.name, target.name, made.body);
        if made.messages == 0 {
            assert_eq!(expect, Said::default(), "{context}");
            continue;
        }
        check_arrived(target, &made, &expect, transcript.head.cwd.as_deref(), &context);
        let again: RequestBody = make(&transcript, &bytes, &GIVEN);
        assert_eq!(again, made, "the same session gives the same bytes");
    }
}

fn check_arrived(
    target: &Format,
    made: &RequestBody,
    expect: &Said,
    cwd: Option<&str>,
    context: &str,
) {
    let body = made.body.as_bytes().to_vec();
    assert!((target.sniff)(&body), "{context}");
    let mut faults = Vec::new();
    let read = (target.read)(&body, &mut faults);
    assert_eq!(faults, [], "{context}");
    assert_eq!(target.invariants.check(&read, &body), [], "{context}");
    assert_eq!(read.head.id.as_deref(), Some(GIVEN.id), "{context}");
    assert_eq!(read.head.cwd.as_deref(), Some(GIVEN.cwd), "{context}");
    // No entry is left out here: ported content may look like the text before a conversation.
    let arrived = ported_parts(&read, &body, &[]);
    assert_eq!(arrived.user, expect.user, "{context}");
    assert_eq!(arrived.model, expect.model, "{context}");
    assert_eq!(arrived.agent, expect.agent, "{context}");
    assert_eq!(arrived.summaries, expect.summaries, "{context}");
    assert_eq!(arrived.pictures, expect.pictures, "{context}");
    assert_eq!(arrived.results, expect.results, "{context}");
    if target.name != "codex" {
        assert_eq!(arrived.failed, expect.failed, "{context}");
    }
    assert_eq!(arrived.arguments.len(), expect.arguments.len(), "{context}");
    for (arrived, expect) in arrived.arguments.iter().zip(&expect.arguments) {
        let here = |text: &String| Some(text.as_str()) == cwd;
        let lost: Vec<&String> = expect.difference(arrived).filter(|text| !here(text)).collect();
        // The arguments that hand a command to a shell may be missing.
        let is_shell = |text: &&String| !matches!(&***text, "bash" | "-lc");
        assert!(!lost.iter().any(is_shell), "{lost:?} is lost: {context}");
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(960) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn generated_sessions_say_the_same_elsewhere(
        (format, bytes) in fixtures::generate::any_format(),
    ) {
        check(format, &bytes);
    }
}

#[test]
fn recorded_sessions_say_the_same_elsewhere() {
    for fixture in fixtures::all() {
        let bytes = fixture.bytes();
        let head = &bytes[..bytes.len().min(1 << 16)];
        if let Some(format) = epitome_formats::sniff(head) {
            check(format.name, &bytes);
        }
    }
    for case in fixtures::cases() {
        check(&case.format, &case.bytes());
    }
}

/// A session of pi with these messages.
fn pi(messages: &[Value]) -> Vec<u8> {
    let mut session = r#"{"type":"session","version":3,"id":"s","cwd":"/p"}"#.to_owned() + "\n";
    for (n, message) in messages.iter().enumerate() {
        let parent = n.checked_sub(1).map(|before| before.to_string());
        let id = n.to_string();
        let line = json!({"type": "message", "id": id, "parentId": parent, "message": message});
        session.push_str(&format!("{line}\n"));
    }
    session.into_bytes()
}

/// The calls of a session as ported to another agent: names and arguments.
fn calls(target: &str, format: &str, bytes: &[u8]) -> Vec<(String, Value)> {
    let transcript = (find_format(format).expect("a format").read)(&bytes, &mut ());
    let (target, make) = targets().find(|(it, _)| it.name == target).expect("a target");
    let made = make(&transcript, &bytes, &GIVEN);
    let body = made.body.into_bytes();
    let read = (target.read)(&body, &mut ());
    let blocks = read.context().flat_map(|(_, entry)| &entry.blocks);
    let calls = blocks.filter_map(|block| match block {
        Block::Call(call) => {
            let raw = body.at(call.arguments);
            let value: Value = serde_json::from_slice(&raw).expect("JSON");
            let inner = value.as_str().and_then(|text| serde_json::from_str(text).ok());
            Some((call.name.to_string(), inner.unwrap_or(value)))
        }
        _ => None,
    });
    calls.collect()
}

/// Each tool of pi, with its name in other agents.
#[test]
fn tools_that_mean_the_same_get_their_names() {
    let tools = [
        ("read", json!({"path": "a", "offset": 3, "limit": 9})),
        ("write", json!({"path": "a", "content": "a"})),
        ("edit", json!({"path": "a", "edits": [{"oldText": "x", "newText": "y"}]})),
        ("edit", json!({"path": "a", "oldText": "x", "newText": "y"})),
        ("bash", json!({"command": "ls", "timeout": 9})),
        ("bash", json!({"command": "ls", "sandbox": "none"})),
        ("find", json!({"pattern": "*.rs"})),
        ("own.tool", json!({"x": 1})),
    ];
    let id = |n: usize| format!("c{n}");
    let mut messages = Vec::new();
    for (n, (name, arguments)) in tools.iter().enumerate() {
        let call = json!({"type": "toolCall", "id": id(n), "name": name, "arguments": arguments});
        messages.push(json!({"role": "assistant", "content": [call]}));
        messages.push(json!({"role": "toolResult", "toolCallId": id(n),
            "content": [{"type": "text", "text": "done"}]}));
    }
    let bytes = pi(&messages);
    let edit = json!({"file_path": "a", "old_string": "x", "new_string": "y"});
    let expect = [
        ("Read", json!({"file_path": "a", "offset": 3, "limit": 9})),
        ("Write", json!({"file_path": "a", "content": "a"})),
        ("Edit", edit.clone()),
        ("Edit", edit),
        ("Bash", json!({"command": "ls"})),
        // Calls whose meaning is not known to be the same are kept unchanged.
        ("bash", json!({"command": "ls", "sandbox": "none"})),
        ("Glob", json!({"pattern": "*.rs"})),
        ("_own_tool", json!({"x": 1})),
    ];
    assert_eq!(calls("claude", "pi", &bytes), expect.map(|(name, it)| (name.to_owned(), it)));
    let names = calls("codex", "pi", &bytes).into_iter().map(|(name, _)| name);
    let expect = ["read", "write", "edit", "edit", "exec_command", "bash", "find", "_own_tool"];
    assert_eq!(names.collect::<Vec<_>>(), expect);
}

/// Codex passes commands to a shell, names a timeout, and has a tool for patches.
#[test]
fn tools_of_codex_get_their_names() {
    let call = |id: &str, name: &str, arguments: Value| {
        json!({"type": "function_call", "call_id": id, "name": name,
            "arguments": arguments.to_string()})
    };
    let patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch\n";
    let here = json!({"cmd": "ls", "workdir": "/p", "yield_time_ms": 1000});
    let elsewhere = json!({"cmd": "ls", "workdir": "/q"});
    let items = [
        call("c0", "exec_command", here),
        call("c1", "exec_command", elsewhere.clone()),
        call("c2", "shell", json!({"command": ["/bin/bash", "-lc", "ls"]})),
        call("c3", "view_image", json!({"path": "a.png"})),
        json!({"type": "custom_tool_call", "call_id": "c4", "name": "apply_patch", "input": patch}),
    ];
    let results = ["c0", "c1", "c2", "c3", "c4"].map(|id| {
        let kind = if id == "c4" { "custom_tool_call_output" } else { "function_call_output" };
        json!({"type": kind, "call_id": id, "output": "done"})
    });
    let meta = json!({"type": "session_meta", "payload": {"id": "s", "cwd": "/p"}});
    let mut bytes = format!("{meta}\n").into_bytes();
    for item in items.iter().chain(&results) {
        let line = json!({"timestamp": GIVEN.time, "type": "response_item", "payload": item});
        bytes.extend(format!("{line}\n").bytes());
    }
    let expect = [
        ("Bash", json!({"command": "ls"})),
        ("exec_command", elsewhere),
        ("Bash", json!({"command": "ls"})),
        ("Read", json!({"file_path": "a.png"})),
        ("apply_patch", json!({"input": patch})),
    ];
    assert_eq!(calls("claude", "codex", &bytes), expect.map(|(name, it)| (name.to_owned(), it)));
    let names = calls("codex", "codex", &bytes).into_iter().map(|(name, _)| name);
    let expect = ["exec_command", "exec_command", "exec_command", "view_image", "apply_patch"];
    assert_eq!(names.collect::<Vec<_>>(), expect);
}

/// Codex truncates long results on a resume unless they have a limit of their own; and it lists
/// and shows a thread by its events.
#[test]
fn codex_is_told_how_long_results_are_and_what_to_show() {
    let call = json!({"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "a"}});
    let text = |words: &str| json!({"type": "text", "text": words});
    let bytes = pi(&[
        json!({"role": "user", "content": "read it"}),
        json!({"role": "assistant", "content": [text("I do."), call]}),
        json!({"role": "toolResult", "toolCallId": "c", "content": [text(&"x".repeat(9_000))]}),
        json!({"role": "user", "content": "thanks"}),
    ]);
    let transcript = (find_format("pi").expect("a format").read)(&bytes, &mut ());
    let (_, make) = targets().find(|(it, _)| it.name == "codex").expect("a target");
    let made = make(&transcript, &bytes, &GIVEN);
    let lines: Vec<Value> =
        made.body.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let result = lines.iter().find(|line| line["payload"]["type"] == "function_call_output");
    let limit = result.and_then(|line| line["metadata"]["fallback_token_limit_override"].as_u64());
    assert!(limit.is_some_and(|limit| limit > 9_000), "{limit:?}");
    let events: Vec<String> = lines
        .iter()
        .filter(|line| line["type"] == "event_msg")
        .map(|line| {
            let shown = &line["payload"]["item"];
            let words = [&line["payload"]["type"], &shown["type"], &shown["content"][0]["text"]];
            words.map(|word| word.as_str().unwrap_or_default()).join(" ").trim_end().to_owned()
        })
        .collect();
    let expect = [
        "task_started",
        "item_completed UserMessage read it",
        "item_completed AgentMessage I do.",
        "task_complete",
        "task_started",
        "item_completed UserMessage thanks",
        "task_complete",
    ];
    assert_eq!(events, expect);
    assert_eq!(made.messages, 5);
}

/// Content that no target accepts is counted, not written.
#[test]
fn what_stays_behind_is_counted() {
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "read", "arguments": {}});
    let text = |words: &str| json!({"type": "text", "text": words});
    let picture = json!({"type": "image", "data": "AAAA", "mimeType": "image/x-own"});
    // Base64 with padding in the middle: a session with such a picture could not be resumed.
    let torn = json!({"type": "image", "data": "iVBORw==iVBORw==", "mimeType": "image/png"});
    let bytes = pi(&[
        json!({"role": "system", "content": "", "sections": {"rules": "Be brief."}}),
        json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "c2ln"},
            text("hi"), call("a|b"), call("open")]}),
        json!({"role": "toolResult", "toolCallId": "a|b", "content": [], "isError": true}),
        json!({"role": "toolResult", "toolCallId": "lost", "content": []}),
        json!({"role": "user", "content": [picture, torn, {"type": "sound"}, text("go on")]}),
    ]);
    let transcript = (find_format("pi").expect("a format").read)(&bytes, &mut ());
    for (target, make) in targets() {
        let made = make(&transcript, &bytes, &GIVEN);
        let expect = BTreeMap::from([
            (LeftBehind::Reasoning, 1),
            (LeftBehind::OpenCalls, 1),
            (LeftBehind::OrphanResults, 1),
            (LeftBehind::Pictures, 2),
            (LeftBehind::Opaque, 1),
            (LeftBehind::Prompts, 1),
            (LeftBehind::Failures, 1),
        ]);
        let is_codex = target.name == "codex";
        let expect: BTreeMap<_, _> = expect
            .into_iter()
            .filter(|(what, _)| is_codex || *what != LeftBehind::Failures)
            .collect();
        assert_eq!(made.left, expect, "{}", target.name);
    }
}

/// A history that only one service can decrypt cannot be ported, and is reported.
#[test]
fn a_sealed_history_is_told() {
    let meta = json!({"type": "session_meta", "payload": {"id": "s", "cwd": "/p"}});
    let user = json!({"type": "message", "role": "user",
        "content": [{"type": "input_text", "text": "hi"}]});
    let sealed = json!({"type": "compaction", "encrypted_content": "c2VhbGVk"});
    let history = json!({"message": "", "replacement_history": [user, sealed]});
    let record = json!({"timestamp": GIVEN.time, "type": "compacted", "payload": history});
    let bytes = format!("{meta}\n{record}\n").into_bytes();
    let transcript = (find_format("codex").expect("a format").read)(&bytes, &mut ());
    for (target, make) in targets() {
        let made = make(&transcript, &bytes, &GIVEN);
        assert_eq!(made.left, BTreeMap::from([(LeftBehind::Sealed, 1)]), "{}", target.name);
        assert!(!made.body.contains("c2VhbGVk"), "{}", target.name);
    }
}
