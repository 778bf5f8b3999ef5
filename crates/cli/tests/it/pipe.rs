//! The engine on a pipe, with arbitrary requests of a client.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};

use crate::world::World;
use epitome_formats::find_format;
use epitome_model::Fault;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A line that a client sends.
#[derive(Clone, Debug)]
enum Line {
    /// Messages in the API format. The last may be invalid.
    Call(Vec<Talk>, bool),
    Reset(&'static str),
    /// Opens the log that was begun as the n-th, or the newest with a name.
    Open(Result<usize, &'static str>),
    Recall(usize),
    /// Any other line.
    Other(String),
}

/// A message; the number makes its text unique.
#[derive(Clone, Debug)]
enum Talk {
    User(u32),
    Model(u32),
    Read(u32, usize),
}

const NAMES: [&str; 2] = ["a", "../b c"];

const OTHERS: [&str; 23] = [
    r#"{"op":"compact"}"#,
    r#"{"op":"compact","focus":"all","target":0}"#,
    r#"{"op":"undo"}"#,
    r#"{"op":"usage"}"#,
    r#"{"op":"call"}"#,
    r#"{"op":"call","usage":{"input":1500,"output":20}}"#,
    r#"{"op":"hello"}"#,
    r#"{"op":"hello","summaries":true}"#,
    r#"{"op":"hello","summaries":false}"#,
    r###"{"op":"answer","text":"## State\nAll is well.","usage":{"input":9,"output":2}}"###,
    r#"{"op":"answer","text":""}"#,
    r#"{"op":"answer","failed":"no"}"#,
    r#"{"op":"answer","too_long":true}"#,
    r#"{"op":"answer","text":"a","stopped":"length"}"#,
    r#"{"op":"refused","status":400,"body":"prompt is too long: 900 tokens > 90 maximum"}"#,
    r#"{"op":"refused","status":413}"#,
    r#"{"op":"refused","status":500,"body":"down"}"#,
    r#"{"op":"force","messages":[],"target_ratio":0}"#,
    r#"{"op":"recall","ref":"k0000"}"#,
    r#"{"op":"reset","window":0}"#,
    r#"{"op":"sing"}"#,
    r#"{"op":"call","messages":[{"role":"user","content":"cut o"#,
    "\u{0}[[[[",
];

fn line() -> impl Strategy<Value = Line> {
    let talk = prop_oneof![
        (0_u32..99_999).prop_map(Talk::User),
        (0_u32..99_999).prop_map(Talk::Model),
        (0_u32..99_999, 1_usize..60).prop_map(|(n, lines)| Talk::Read(n, lines)),
    ];
    let talks = prop::collection::vec(talk, 0..4);
    prop_oneof![
        8 => (talks, prop::bool::weighted(0.15))
            .prop_map(|(talk, foreign)| Line::Call(talk, foreign)),
        1 => prop::sample::select(&NAMES[..]).prop_map(Line::Reset),
        1 => (0_usize..4).prop_map(|n| Line::Open(Ok(n))),
        1 => prop::sample::select(&NAMES[..]).prop_map(|name| Line::Open(Err(name))),
        2 => (0_usize..5).prop_map(Line::Recall),
        6 => prop::sample::select(&OTHERS[..]).prop_map(|line| Line::Other(line.to_owned())),
        1 => "#[^\r\n]{0,40}".prop_map(Line::Other),
    ]
}

impl Talk {
    fn words(&self) -> String {
        match self {
            Talk::User(n) => format!("the user says {n}."),
            Talk::Model(n) => format!("the model says {n}."),
            Talk::Read(n, lines) => format!("a line of {n}\n").repeat(*lines),
        }
    }

    /// The message in an API format.
    fn messages(&self, wire: &str) -> Vec<Value> {
        let words = self.words();
        match (self, wire) {
            (Talk::User(_), _) => vec![json!({ "role": "user", "content": words })],
            (Talk::Model(_), _) => vec![json!({ "role": "assistant", "content": words })],
            // Ids repeat, as those of some services do.
            (Talk::Read(n, _), "anthropic") => vec![
                json!({ "role": "assistant", "content": [{ "type": "tool_use",
                    "id": format!("c{}", n % 3), "name": "Read", "input": { "path": "a" } }] }),
                json!({ "role": "user", "content": [{ "type": "tool_result",
                    "tool_use_id": format!("c{}", n % 3), "content": words }] }),
            ],
            (Talk::Read(n, _), _) => vec![
                json!({ "role": "assistant", "tool_calls": [{ "id": format!("c{}", n % 3),
                    "type": "function", "function": { "name": "Read", "arguments": "{}" } }] }),
                json!({ "role": "tool", "tool_call_id": format!("c{}", n % 3), "content": words }),
            ],
        }
    }
}

struct Engine {
    child: Child,
    out: std::io::Lines<BufReader<ChildStdout>>,
}

impl Engine {
    fn new(world: &World, args: &[&str]) -> Engine {
        let mut command = world.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the program runs");
        let out = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Engine { child, out }
    }

    fn ask(&mut self, line: &str) -> Value {
        let stdin = self.child.stdin.as_mut().expect("it is piped");
        writeln!(stdin, "{line}").expect("it reads");
        let answer = self.out.next().unwrap_or_else(|| panic!("it ended at {line}"));
        serde_json::from_str(&answer.expect("text")).expect("JSON")
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("it ends").success(), "it ends well");
        assert!(self.out.next().is_none(), "each line has one answer");
    }
}

/// What a client knows about a log.
#[derive(Clone, Default)]
struct Known {
    messages: u64,
    /// The messages, each with whether it is the user's.
    messages_seen: Vec<(bool, String)>,
}

/// A client that sends lines and checks each answer.
struct Client {
    wire: &'static str,
    engine: Engine,
    /// The logs, in the order in which they were begun.
    logs: Vec<(String, &'static str)>,
    known: HashMap<String, Known>,
    /// The open log.
    log: String,
    asked: bool,
    refs: Vec<String>,
}

impl Client {
    /// The text of a line in the current state.
    fn text(&self, line: &Line) -> String {
        match line {
            Line::Call(talk, foreign) => {
                let mut messages: Vec<Value> =
                    talk.iter().flat_map(|it| it.messages(self.wire)).collect();
                if *foreign {
                    messages.push(json!({ "role": "user", "parts": [{ "text": "lost?" }] }));
                }
                json!({ "op": "call", "messages": messages }).to_string()
            }
            Line::Reset(name) => json!({ "op": "reset", "session": name }).to_string(),
            Line::Open(Ok(n)) => {
                let log = self.logs.get(*n).map_or("nowhere.jsonl", |(log, _)| log);
                json!({ "op": "open", "log": log }).to_string()
            }
            Line::Open(Err(name)) => json!({ "op": "open", "session": name }).to_string(),
            Line::Recall(n) => {
                let reference = self.refs.get(*n).map_or("k123456", |it| it);
                json!({ "op": "recall", "ref": reference }).to_string()
            }
            Line::Other(text) => text.clone(),
        }
    }

    fn say(&mut self, line: &Line, text: &str) -> Value {
        let answer = self.engine.ask(text);
        let op: Value = serde_json::from_str(text).unwrap_or_default();
        let op = op["op"].as_str().unwrap_or_default();
        let failed = answer.get("error").is_some();
        match line {
            Line::Call(_, foreign) if *foreign || self.asked => {
                assert_eq!(answer["error"]["kind"], "usage", "{answer}");
            }
            Line::Call(talk, _) => {
                assert!(!failed, "{answer}");
                let known = self.known.entry(self.log.clone()).or_default();
                for it in talk {
                    known.messages += it.messages(self.wire).len() as u64;
                    known.messages_seen.push((matches!(it, Talk::User(_)), it.words()));
                }
            }
            Line::Reset(name) => {
                self.log = answer["log"].as_str().expect("a log").to_owned();
                self.logs.push((self.log.clone(), name));
                assert!(self.known.insert(self.log.clone(), Known::default()).is_none());
            }
            Line::Open(which) => {
                let expect = match which {
                    Ok(n) => self.logs.get(*n),
                    Err(name) => self.logs.iter().rev().find(|(_, it)| it == name),
                };
                assert_eq!(failed, expect.is_none(), "{answer}");
                if let Some((log, name)) = expect {
                    assert_eq!((&answer["log"], &answer["session"]), (&json!(log), &json!(name)));
                    assert_eq!(answer["messages"], self.known[log].messages, "{answer}");
                    self.log = log.clone();
                }
            }
            Line::Recall(n) => assert!(failed != (*n < self.refs.len()), "{text}: {answer}"),
            Line::Other(_) => {}
        }
        let answers_directly = matches!(op, "hello" | "usage" | "recall" | "force");
        self.asked = answer.get("ask").is_some() || self.asked && (failed || answers_directly);
        if matches!(line, Line::Reset(_) | Line::Open(_)) && !failed {
            self.refs.clear();
        }
        if matches!(op, "call" | "answer" | "refused") {
            self.look(&answer);
        }
        self.read();
        answer
    }

    /// Checks that the view contains all messages if nothing was compacted, and the user's messages
    /// always.
    fn look(&mut self, answer: &Value) {
        let Some(view) = answer.get("messages").or(answer.get("body")) else { return };
        if let Some(refs) = answer["refs"].as_object() {
            self.refs = refs.values().filter_map(Value::as_str).map(str::to_owned).collect();
        }
        let log = std::fs::read_to_string(&self.log).expect("a log");
        let edited = ["birth", "compaction", "summary"]
            .iter()
            .any(|kind| log.contains(&format!(r#"{{"type":"{kind}""#)));
        let view = view.to_string();
        for (user, words) in &self.known[&self.log].messages_seen {
            let literal = json!(words).to_string();
            let stands = view.contains(literal.trim_matches('"'));
            assert!(stands || edited && !user, "{words} is not in {view}");
        }
    }

    /// The log can be read, whichever message was the last.
    fn read(&self) {
        let bytes = std::fs::read(&self.log).expect("a log");
        let mut faults: Vec<Fault> = Vec::new();
        (find_format("epitome").expect("a format").read)(&bytes, &mut faults);
        assert_eq!(faults, [], "{}", String::from_utf8_lossy(&bytes));
    }
}

/// A recipe with a summary of all but the last message.
fn summary_recipe(world: &World) -> String {
    let text = concat!(
        "name = 'told'\nabout = 'A summary of all but the last message.'\n",
        "keep = { messages = 1 }\npasses = [{ pass = 'results', style = 'cleared' }]\n",
        "[live.summary]\nmax_tokens = 500\nsections = ['State']\n",
    );
    world.write("told.toml", text).display().to_string()
}

fn check(lines: &[Line], wire: &'static str, recipe: &str) {
    let (world, other) = (World::new(), World::new());
    summary_recipe(&world);
    summary_recipe(&other);
    let recipe = if recipe == "told" { "told.toml" } else { recipe };
    let mut args = vec!["engine", "--count", "estimate", "--window", "2k", "--wire", wire];
    args.extend(["--recipe", recipe]);
    let engine = Engine::new(&world, &args);
    let mut client = Client {
        wire,
        engine,
        logs: Vec::new(),
        known: HashMap::new(),
        log: String::new(),
        asked: false,
        refs: Vec::new(),
    };
    let home = world.home.to_str().expect("text");
    let elsewhere = |text: &str| text.replace(home, other.home.to_str().expect("text"));
    let mut again = Engine::new(&other, &args);
    for line in std::iter::once(&Line::Reset("a")).chain(lines) {
        let text = client.text(line);
        let answer = client.say(line, &text);
        // The same lines have the same answers.
        let same = again.ask(&elsewhere(&text));
        assert_eq!(same.to_string(), elsewhere(&answer.to_string()), "{text}");
    }
    client.engine.end();
    again.end();
    let mut later = Engine::new(&world, &args);
    for (log, _) in &client.logs {
        assert_eq!(world.status(&["inspect", log]), 0, "{log}");
        let opened = later.ask(&json!({ "op": "open", "log": log }).to_string());
        assert_eq!(opened["messages"], client.known[log].messages, "{opened}");
    }
    later.end();
}

/// A digest names consecutive calls as `#1–2`, and `recall` accepts that name: found by the test
/// below.
#[test]
fn calls_that_a_digest_names_together_are_recalled() {
    use Talk::{Model, Read, User};
    let call = |talk: Vec<Talk>| Line::Call(talk, false);
    let lines = [
        call(vec![Read(1, 36)]),
        call(vec![Model(84_592), Read(18_513, 34), Model(92_292)]),
        call(vec![User(95_821), Model(27_919), Read(63_206, 52)]),
        Line::Recall(1),
    ];
    check(&lines, "openai-chat", "epitome");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_said_has_one_answer_and_nothing_is_lost(
        lines in prop::collection::vec(line(), 1..30),
        wire in prop::sample::select(&["anthropic", "openai-chat"][..]),
        recipe in prop::sample::select(&["told", "epitome", "s06", "ion"][..]),
    ) {
        check(&lines, wire, recipe);
    }
}
