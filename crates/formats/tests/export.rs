//! The export of any session satisfies the invariants of the API, and loses no message.

use std::collections::BTreeMap;

use epitome_api::{APIS, LeftBehind, RequestBody};
use epitome_formats::find_format;
use epitome_model::{Block, Role, Source, Transcript};
use proptest::prelude::*;
use serde_json::json;

/// The parts of a context that must be exported: text of the user, and calls with their results.
fn exported_parts(transcript: &Transcript, source: &dyn Source) -> (Vec<String>, usize) {
    let mut words = Vec::new();
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    let mut pairs = 0;
    for (_, entry) in transcript.context() {
        for block in &entry.blocks {
            match block {
                Block::Text(text) if entry.role == Role::User => {
                    let text = text.read(source).into_owned();
                    words.extend(Some(text).filter(|text| !text.trim().is_empty()));
                }
                Block::Call(call) => *open.entry(&call.id).or_default() += 1,
                Block::Output(output) => {
                    if let Some(n) = open.get_mut(&*output.call).filter(|n| **n > 0) {
                        *n -= 1;
                        pairs += 1;
                    }
                }
                _ => {}
            }
        }
    }
    (words, pairs)
}

fn check(format: &str, bytes: &[u8]) {
    let format = find_format(format).expect("a format");
    let transcript = (format.read)(&bytes, &mut ());
    let (words, pairs) = exported_parts(&transcript, &bytes);
    for wire in APIS {
        let made: RequestBody = (wire.make)(&transcript, &bytes);
        if made.messages == 0 {
            assert_eq!((words.len(), pairs), (0, 0), "{}: nothing was said", wire.name);
            continue;
        }
        let body = made.body.as_bytes().to_vec();
        let context = format!("{} → {}: {}", format.name, wire.name, made.body);
        let read = (wire.format.read)(&body, &mut ());
        assert_eq!(wire.format.invariants.check(&read, &body), [], "{context}");
        let (arrived, pairs_arrived) = exported_parts(&read, &body);
        let mut rest = arrived.iter();
        for word in &words {
            assert!(rest.any(|it| it == word), "{word:?} is lost, or late: {context}");
        }
        assert_eq!(pairs_arrived, pairs, "calls with results: {context}");
        let again: RequestBody = (wire.make)(&transcript, &bytes);
        assert_eq!(again, made, "the same session gives the same bytes");
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(768) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn generated_sessions_arrive_whole((format, bytes) in fixtures::generate::any_format()) {
        check(format, &bytes);
    }
}

#[test]
fn recorded_sessions_arrive_whole() {
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

/// Signed or encrypted reasoning is sent to the API that made it, and left out for others.
#[test]
fn reasoning_goes_where_it_came_from() {
    for (from, mark) in [("anthropic", "c2lnbmVk"), ("openai-responses", "c2VhbGVk")] {
        let bytes = fixtures::case(from, "request").bytes();
        let transcript = (find_format(from).expect("a format").read)(&bytes, &mut ());
        for wire in APIS {
            let made = (wire.make)(&transcript, &bytes);
            let kept = wire.format.name == from;
            assert_eq!(made.body.contains(mark), kept, "{from} to {}", wire.name);
            let left = made.left.get(&LeftBehind::Reasoning).copied();
            assert_eq!(left, (!kept).then_some(1), "{from} to {}", wire.name);
        }
    }
}

/// Content that no API accepts is counted, not sent.
#[test]
fn what_stays_behind_is_counted() {
    let call =
        |id: &str, name: &str| json!({"type": "toolCall", "id": id, "name": name, "arguments": {}});
    let text = |words: &str| json!({"type": "text", "text": words});
    let picture = json!({"type": "image", "data": "AAAA", "mimeType": "image/x-own"});
    let messages = [
        json!({"role": "assistant",
            "content": [text("hi"), call("a|b", "my.tool"), call("open", "read")]}),
        json!({"role": "toolResult", "toolCallId": "a|b", "content": [text("x")]}),
        json!({"role": "toolResult", "toolCallId": "lost", "content": []}),
        json!({"role": "user", "content": [picture, {"type": "sound"}, text("go on")]}),
    ];
    let mut session = r#"{"type":"session","version":3,"id":"s","cwd":"/p"}"#.to_owned() + "\n";
    for (n, message) in messages.iter().enumerate() {
        let parent = n.checked_sub(1).map(|before| before.to_string());
        let id = n.to_string();
        let line = json!({"type": "message", "id": id, "parentId": parent, "message": message});
        session.push_str(&format!("{line}\n"));
    }
    let bytes = session.into_bytes();
    let transcript = (find_format("pi").expect("a format").read)(&bytes, &mut ());
    for wire in APIS {
        let made = (wire.make)(&transcript, &bytes);
        let left: Vec<(LeftBehind, u64)> = made.left.into_iter().collect();
        let expect = [
            (LeftBehind::OpenCalls, 1),
            (LeftBehind::OrphanResults, 1),
            (LeftBehind::Pictures, 1),
            (LeftBehind::Opaque, 1),
        ];
        assert_eq!(left, expect, "{}", wire.name);
        let invariants = wire.format.invariants.check(&transcript, &made.body.as_bytes());
        assert_eq!(invariants, [], "{}", made.body);
    }
}
