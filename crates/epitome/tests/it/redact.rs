//! Properties of redaction, over generated sessions of all formats with planted secrets.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use epitome::Loaded;
use epitome::redact::redact_session;
use epitome_formats::find_format;
use epitome_model::{Block, Source, Transcript, encode};
use epitome_redact::{Finder, Redactor, Rules};
use fixtures::generate::{AGENTS, WIRES};
use fixtures::planted;
use proptest::prelude::*;
use serde_json::Value;

fn finder() -> &'static Finder {
    static FINDER: std::sync::OnceLock<Finder> = std::sync::OnceLock::new();
    FINDER.get_or_init(|| Finder::new(Rules::built_in()).expect("rules"))
}

fn load(agent: &str, bytes: &[u8]) -> Loaded<Vec<u8>> {
    let format = find_format(agent).expect("a known agent");
    let source = bytes.to_vec();
    let transcript = (format.read)(&source, &mut Vec::new());
    Loaded { format, source, transcript, faults: Vec::new() }
}

/// The redacted bytes of a session, and their transcript.
fn redact(agent: &str, bytes: &[u8]) -> (Vec<u8>, Transcript) {
    let session = load(agent, bytes);
    let copy = redact_session(&session, &mut Redactor::new(finder())).expect("splices lie apart");
    let mut written = Vec::new();
    copy.session.source.copy_to(&mut written).expect("memory is written");
    (written, copy.session.transcript)
}

/// A text that contains a secret which a rule finds, and that secret.
fn plant() -> impl Strategy<Value = (String, String)> {
    (0..finder().rules().count(), 0_u64..1000).prop_filter_map("it is found", |(idx, seed)| {
        let rule = finder().rule(idx);
        let text = planted::like(rule.regex.as_deref()?, seed);
        let around = format!("x {text} y");
        let hits = finder().find(&around);
        let hit = hits.iter().find(|hit| hit.rule == idx && hit.range.len() >= 6)?;
        let secret = around[hit.range.clone()].to_owned();
        (rule.replace.is_none() && around.matches(&secret).count() == 1).then_some((text, secret))
    })
}

/// The encoding of a text in a JSON string.
#[derive(Clone, Copy, Debug)]
enum Dress {
    Plain,
    /// Every character is escaped.
    Escaped,
    /// The text is a value in JSON that the string contains.
    Nested,
    /// The text is in the string as base64.
    Base64,
    /// The text is a key in JSON that the string contains.
    Key,
}

impl Dress {
    /// The content of a JSON string literal with `text` in this encoding.
    fn put(self, text: &str) -> String {
        let inside = |text: &str| {
            let literal = encode(text);
            literal[1..literal.len() - 1].to_owned()
        };
        match self {
            Dress::Plain => inside(&format!("x {text} y")),
            Dress::Escaped => {
                let units = format!("x {text} y");
                units.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect()
            }
            Dress::Nested => {
                inside(&format!("{{\"a\": [1, {}], \"b\": null}}", encode(&format!("x {text} y"))))
            }
            Dress::Key => inside(&format!("{{{}: true}}", encode(&format!("x {text} y")))),
            Dress::Base64 => {
                let encoded = BASE64_STANDARD.encode(format!("x {text} y, and more of that"));
                inside(&format!("see {encoded} there"))
            }
        }
    }
}

fn dress() -> impl Strategy<Value = Dress> {
    use Dress::{Base64, Escaped, Key, Nested, Plain};
    prop::sample::select(vec![Plain, Escaped, Nested, Base64, Key])
}

/// The string literals of the session that are values, with their quotes.
fn values(bytes: &[u8]) -> Vec<(usize, usize)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(start) = bytes[at..].iter().position(|&byte| byte == b'"').map(|n| at + n) {
        let mut end = start + 1;
        while end < bytes.len() && bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        if end >= bytes.len() {
            break;
        }
        let next = bytes[end + 1..].iter().find(|byte| !byte.is_ascii_whitespace());
        if next != Some(&b':') {
            found.push((start, end + 1));
        }
        at = end + 1;
    }
    found
}

/// A session in which the content of one string is replaced by `inside`, and the offset of that
/// string.
fn with(bytes: &[u8], at: prop::sample::Index, inside: &str) -> Option<(Vec<u8>, usize)> {
    // `None` unless every line is JSON: elsewhere strings cannot be told from the text between
    // them.
    let text = std::str::from_utf8(bytes).ok()?;
    let whole = |text: &str| serde_json::from_str::<Value>(text.trim()).is_ok();
    if !whole(text) && !text.lines().all(|line| line.trim().is_empty() || whole(line)) {
        return None;
    }
    let all = values(bytes);
    if all.is_empty() {
        return None;
    }
    let (start, end) = all[at.index(all.len())];
    let planted = [&bytes[..start], b"\"", inside.as_bytes(), b"\"", &bytes[end..]].concat();
    Some((planted, start))
}

/// Whether a text is in a string of JSON, or in JSON or base64 within such a string.
fn holds(text: &str, secret: &str) -> bool {
    let inside = |value: &Value| {
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            match value {
                Value::String(text) if holds(text, secret) => return true,
                Value::Array(values) => open.extend(values),
                Value::Object(members) => {
                    if members.keys().any(|key| holds(key, secret)) {
                        return true;
                    }
                    open.extend(members.values());
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        false
    };
    let json = |text: &str| serde_json::from_str(text).is_ok_and(|value: Value| inside(&value));
    let encoded = |word: &str| {
        let decoded = BASE64_STANDARD.decode(word).ok().and_then(|it| String::from_utf8(it).ok());
        word.len() > 20 && decoded.is_some_and(|text| text.contains(secret))
    };
    text.contains(secret) || json(text) || text.lines().any(json) || text.split(' ').any(encoded)
}

/// The structure of a transcript: roles, kinds of blocks, and which result belongs to which call.
fn shape(transcript: &Transcript) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    let mut nth = |id: &str| {
        let known = ids.iter().position(|it| it == id);
        known.unwrap_or_else(|| {
            ids.push(id.to_owned());
            ids.len() - 1
        })
    };
    let mut shape = vec![format!("{:?}", transcript.context)];
    for item in &transcript.items {
        let Some(entry) = item.entry() else {
            shape.push("kept".to_owned());
            continue;
        };
        let own = [&entry.id, &entry.parent, &entry.group].map(|id| id.as_deref().map(&mut nth));
        let blocks = entry.blocks.iter().map(|block| match block {
            Block::Text(_) => "text".to_owned(),
            Block::Thinking(it) => format!("thinking {}", it.removable),
            Block::Call(it) => format!("call {} {:?} {}", nth(&it.id), it.kind, it.fields.len()),
            Block::Output(it) => {
                format!("output {} {} {}", nth(&it.call), it.error, it.parts.len())
            }
            Block::Repeated(it) => format!("again {}", nth(&it.output.call)),
            Block::Image(_) => "image".to_owned(),
            Block::Summary(_) => "summary".to_owned(),
            Block::Opaque(_) => "opaque".to_owned(),
            other => format!("{other:?}"),
        });
        let blocks: Vec<String> = blocks.collect();
        shape.push(format!("{:?} {own:?} {blocks:?}", entry.role));
    }
    shape
}

fn check(
    agent: &'static str,
    session: &[u8],
    (text, secret): &(String, String),
    dress: Dress,
    at: prop::sample::Index,
) -> Result<(), TestCaseError> {
    // Random text that looks like a secret is removed first.
    let (clean, _) = redact(agent, session);
    prop_assert_eq!(&redact(agent, &clean).0, &clean, "twice is once");
    let Some((planted, place)) = with(&clean, at, &dress.put(text)) else { return Ok(()) };
    let before = load(agent, &planted);
    let (after, transcript) = redact(agent, &planted);
    let shown = String::from_utf8_lossy(&after);
    prop_assert!(!holds(&shown, secret), "{secret:?} stands in {shown}");
    prop_assert_eq!(shape(&transcript), shape(&before.transcript), "the structure stays");
    prop_assert_eq!(&redact(agent, &after).0, &after, "twice is once");
    // Strings without a secret are unchanged to the byte.
    prop_assert_eq!(&after[..place], &planted[..place]);
    let behind = planted.len() - place - dress.put(text).len() - 2;
    prop_assert_eq!(&after[after.len() - behind..], &planted[planted.len() - behind..]);
    let invariants = |transcript: &Transcript, source: &dyn Source| {
        let broken = before.format.invariants.check(transcript, source);
        broken.iter().map(|violation| violation.invariant).collect::<Vec<_>>()
    };
    let kept = invariants(&before.transcript, &before.source);
    let mut broken = invariants(&transcript, &after);
    broken.retain(|invariant| !kept.contains(invariant));
    prop_assert_eq!(broken, [], "an invariant that held still does");
    Ok(())
}

fn cases() -> ProptestConfig {
    ProptestConfig { cases: 60, max_global_rejects: 100_000, ..ProptestConfig::default() }
}

/// A session of any agent, or a request body.
fn session() -> impl Strategy<Value = (&'static str, Vec<u8>)> {
    let agents = prop::sample::select(&AGENTS[..]);
    let wires = prop::sample::select(&WIRES[..]);
    prop_oneof![
        agents.prop_flat_map(|agent| (Just(agent), fixtures::generate::session(agent))),
        wires.prop_flat_map(|wire| (Just(wire), fixtures::generate::body(wire))),
    ]
}

proptest! {
    #![proptest_config(cases())]

    /// A secret is removed whichever rule finds it, wherever it is and however it is encoded;
    /// everything else is unchanged.
    #[test]
    fn what_is_planted_in_a_session_is_gone(
        session in session(),
        plant in plant(),
        dress in dress(),
        at: prop::sample::Index,
    ) {
        check(session.0, &session.1, &plant, dress, at)?;
    }

    /// Redacting a damaged session a second time changes nothing either.
    #[test]
    fn twice_is_once_for_any_bytes(
        session in session(),
        plant in plant(),
        at: prop::sample::Index,
        damage: u8,
    ) {
        let (agent, mut bytes) = session;
        let place = at.index(bytes.len() + 1);
        bytes.splice(place..place, plant.0.bytes().chain([damage]));
        let (once, _) = redact(agent, &bytes);
        let (twice, _) = redact(agent, &once);
        prop_assert_eq!(String::from_utf8_lossy(&twice), String::from_utf8_lossy(&once));
    }
}

/// The ids of calls stay within what the API permits, stay different, and stay the same in the
/// result.
#[test]
fn an_id_with_a_secret_remains_an_id() {
    let ids = [1, 2].map(|seed| planted::like("sk-live-ghp_[a-zA-Z0-9]{36}-call-to-deploy", seed));
    let call = |id: &str| {
        format!(r#"{{"type":"function_call","call_id":"{id}","name":"f","arguments":"{{}}"}}"#)
    };
    let output =
        |id: &str| format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"ok"}}"#);
    let body = |ids: [&str; 2]| {
        let items = [call(ids[0]), call(ids[1]), output(ids[0]), output(ids[1])];
        format!(r#"{{"model":"m","input":[{}]}}"#, items.join(","))
    };
    let (after, _) = redact("openai-responses", body([&ids[0], &ids[1]]).as_bytes());
    let expected = body(["REDACTED-github-pat-2", "REDACTED-github-pat-4"]);
    assert_eq!(String::from_utf8_lossy(&after), expected);
}

/// Recorded sessions contain only what a real agent writes.
#[test]
fn recorded_sessions_hold_no_secrets_and_keep_their_structure() {
    let rules = Rules::built_in().only(&["secrets"]).expect("a kind");
    let secrets = Finder::new(rules).expect("rules");
    for fixture in fixtures::all() {
        let session = load(fixture.agent.split('-').next().unwrap_or_default(), &fixture.bytes());
        let copy =
            redact_session(&session, &mut Redactor::new(&secrets)).expect("splices lie apart");
        assert_eq!(copy.found, [], "{}", fixture.path.display());
        let copy =
            redact_session(&session, &mut Redactor::new(finder())).expect("splices lie apart");
        assert_eq!(shape(&copy.session.transcript), shape(&session.transcript));
    }
}

/// Signed reasoning with a secret loses its signature, because the signature contains what it
/// signs.
#[test]
fn reasoning_that_says_a_secret_is_not_sent_on() {
    let token = planted::like("ghp_[a-zA-Z0-9]{36}", 7);
    let signature = planted::like("[A-Za-z0-9+/]{200}==", 1);
    let thinking = |words: &str| {
        format!(r#"{{"type":"thinking","thinking":"{words}","signature":"{signature}"}}"#)
    };
    let done = r#"{"type":"text","text":"Done"}"#;
    let contents = [thinking("Fine."), thinking(&format!("It is {token}.")), done.to_owned()];
    let asked = r#"{"role":"user","content":"Go"}"#;
    let answer = format!(r#"{{"role":"assistant","content":[{}]}}"#, contents.join(","));
    let body = format!(r#"{{"messages":[{asked},{answer}]}}"#);
    let (after, transcript) = redact("anthropic", body.as_bytes());
    let after = String::from_utf8(after).expect("text");
    assert!(!after.contains(&token), "{after}");
    assert_eq!(after.matches(&signature).count(), 1, "{after}");
    let wire = epitome_api::APIS.iter().find(|it| it.name == "anthropic").expect("a wire");
    let made = (wire.make)(&transcript, &after.as_bytes());
    assert!(made.body.contains("Fine.") && !made.body.contains("REDACTED"), "{}", made.body);
}
