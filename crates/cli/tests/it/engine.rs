//! The engine on a pipe, and the example clients.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::world::World;
use insta::assert_snapshot;
use serde_json::{Value, json};

#[test]
fn a_talk_over_the_pipe() {
    let world = World::new();
    let read = |n: usize| {
        let lines = format!("line of {n}\\n").repeat(40);
        format!(
            concat!(
                r#"{{"op":"call","messages":[{{"role":"assistant","content":[{{"type":"tool_use","#,
                r#""id":"c{n}","name":"Read","input":{{"path":"{n}.txt"}}}}]}},{{"role":"user","#,
                r#""content":[{{"type":"tool_result","tool_use_id":"c{n}","#,
                r#""content":"{lines}"}}]}}]}}"#,
            ),
            n = n,
            lines = lines,
        )
    };
    let reads: Vec<String> = (0..4).map(read).collect();
    let lines = [
        r#"{"op":"hello"}"#,
        r#"{"op":"reset","session":"../a talk"}"#,
        r#"{"op":"call","messages":[{"role":"user","content":"Read them."}]}"#,
        &reads.join("\n"),
        r#"{"op":"usage"}"#,
        r#"{"op":"call","usage":{"input":900,"output":10}}"#,
        r#"{"op":"usage"}"#,
        r#"{"op":"compact","target":0}"#,
        r#"{"op":"call"}"#,
        r#"{"op":"recall","ref":"k0000000"}"#,
        r#"{"op":"refused","status":400,"body":"prompt is too long: 900 tokens > 90 maximum"}"#,
        r#"{"op":"undo"}"#,
        r#"{"op":"sing"}"#,
        r#"{"op":"call","messages":[{"role":"user"#,
        r#"{"op":"force","messages":[{"role":"user","content":"Hello."}],"target_ratio":0.5}"#,
    ];
    let args = ["engine", "--recipe", "clear-tool-uses", "--count", "estimate"];
    assert_snapshot!(world.run_with(&args, lines.join("\n").as_bytes()));
}

/// A recipe with a summary of all but the last message.
fn summary_recipe(world: &World) -> String {
    let recipe = world.home.join("told.toml");
    let text = concat!(
        "name = 'told'\nabout = 'A summary of all but the last message.'\npasses = []\n",
        "keep = { messages = 1 }\n[live.summary]\nmax_tokens = 500\nsections = ['State']\n",
    );
    std::fs::write(&recipe, text).expect("a disk");
    recipe.display().to_string()
}

#[test]
fn a_client_that_has_a_model_is_asked_for_summaries() {
    let world = World::new();
    let recipe = summary_recipe(&world);
    let words = "All of this is old. ".repeat(40);
    let old = format!(
        concat!(
            r#"{{"op":"call","messages":[{{"role":"user","content":"Hear me."}},"#,
            r#"{{"role":"assistant","content":"{}"}},{{"role":"user","content":"Go on."}}]}}"#,
        ),
        words
    );
    let lines = [
        r#"{"op":"reset","summaries":true,"writer_window":20000}"#,
        &old,
        r#"{"op":"compact","focus":"what is old","target":0}"#,
        // Requests in between are refused, and nothing is lost.
        r#"{"op":"call"}"#,
        r#"{"op":"compact","target":0}"#,
        r#"{"op":"refused","status":413}"#,
        r#"{"op":"undo"}"#,
        r#"{"op":"answer"}"#,
        r#"{"op":"answer","text":"Well.","stopped":"end_turn"}"#,
        r#"{"op":"answer","failed":"no answer in time"}"#,
        r#"{"op":"compact","target":0}"#,
        r###"{"op":"answer","text":"## State\nIt is old.","usage":{"input":700,"output":9}}"###,
        r#"{"op":"call"}"#,
        r#"{"op":"answer","text":"Nothing was asked."}"#,
    ];
    let args = ["engine", "--recipe", &recipe, "--no-log", "--count", "estimate"];
    assert_snapshot!(world.run_with(&args, lines.join("\n").as_bytes()));
}

#[test]
fn what_makes_no_sense_is_said_and_changes_nothing() {
    let world = World::new();
    let lines = [
        r#"{"op":"reset","window":0}"#,
        r#"{"op":"reset","window":-5}"#,
        r#"{"op":"reset","window":9000000000000}"#,
        r#"{"op":"reset","window":1000,"overhead":1000}"#,
        r#"{"op":"reset","writer_window":0}"#,
        r#"{"op":"reset","sesion":"a"}"#,
        r#"{"op":"call","mesages":[]}"#,
        r#"{"op":"call","messages":[],"messages":[]}"#,
        r#"{"op":"call","k":3,"focus":"what"}"#,
        r#"{"op":"call","usage":{"input":18446744073709551615,"output":1}}"#,
        r#"{"op":"call","messages":[{"role":"user","content":"Hi."},{"role":"tool"}]}"#,
        r#"{"op":"force","target_ratio":1.5}"#,
        r#"{"op":"force","target_ratio":-0.1}"#,
        r#"{"op":"recall"}"#,
        r#"{"op":"recall","ref":"it"}"#,
        r#"{"op":"open"}"#,
        r#"{"op":"open","session":"a"}"#,
        r#"{"op":"undo","all":true}"#,
        r#"{"op":"answer","text":"a","failed":"b"}"#,
        r#"{"op":"answer","text":"Nobody asked."}"#,
        r#"{"session":"a"}"#,
        r#"{"op":5}"#,
        r#"["op"]"#,
        "\u{feff}{\"op\":\"usage\"}\r",
    ];
    let args = ["engine", "--no-log", "--count", "estimate"];
    assert_snapshot!(world.run_with(&args, lines.join("\n").as_bytes()));
    let args = ["engine", "--window", "10", "--overhead", "10"];
    assert_snapshot!(world.run_with(&args, b""));
}

#[test]
fn who_asks_for_nothing_is_told_that_there_is_nothing() {
    let world = World::new();
    let lines = [
        r#"{"op":"call","messages":[{"role":"user","content":"Hi."}]}"#,
        r#"{"op":"compact","target":0}"#,
    ];
    let args = ["engine", "--recipe", "pi", "--no-log", "--count", "estimate"];
    assert_snapshot!(world.run_with(&args, lines.join("\n").as_bytes()));
}

/// An engine process, which is sent one line at a time.
struct Engine {
    child: std::process::Child,
    out: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Engine {
    fn new(world: &World, args: &[&str]) -> Engine {
        let mut command = world.command(&[&["engine", "--count", "estimate"], args].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        let out = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Engine { child, out }
    }

    fn ask(&mut self, line: &str) -> Value {
        let stdin = self.child.stdin.as_mut().expect("it is piped");
        writeln!(stdin, "{line}").expect("it reads");
        let answer = self.out.next().expect("an answer a line").expect("text");
        serde_json::from_str(&answer).expect("JSON")
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("it ends").success());
        assert!(self.out.next().is_none(), "an answer a line, and no more");
    }
}

#[test]
fn a_log_is_taken_up_where_it_was_left() {
    let world = World::new();
    let args = ["--recipe", "clear-tool-uses"];
    let mut engine = Engine::new(&world, &args);
    let log = engine.ask(r#"{"op":"reset","session":"a talk"}"#)["log"].clone();
    let reset = engine.ask(r#"{"op":"reset","session":"a talk"}"#)["log"].clone();
    assert_ne!(log, reset);
    engine.ask(&json!({ "op": "open", "log": log }).to_string());
    engine.ask(r#"{"op":"call","messages":[{"role":"user","content":"Read them."}]}"#);
    for n in 0..5 {
        let id = format!("c{n}");
        let call =
            json!({ "type": "tool_use", "id": id, "name": "Read", "input": { "path": "a" } });
        let result = json!({ "type": "tool_result", "tool_use_id": id,
            "content": format!("line of {n}\n").repeat(99) });
        let said = [
            json!({ "role": "assistant", "content": [call] }),
            json!({ "role": "user", "content": [result] }),
        ];
        engine.ask(&json!({ "op": "call", "messages": said }).to_string());
    }
    engine.ask(r#"{"op":"compact","target":0}"#);
    let call = json!({ "type": "tool_use", "id": "c9", "name": "Read", "input": { "path": "a" } });
    let call = json!({ "role": "assistant", "content": [call] });
    let left = engine.ask(&json!({ "op": "call", "messages": [call] }).to_string());

    // No other process may open it meanwhile.
    let mut other = Engine::new(&world, &args);
    let refused = other.ask(&json!({ "op": "open", "log": log }).to_string());
    assert_eq!(refused["error"]["kind"], "locked", "{refused}");
    engine.end();

    // A line that was being written when the machine crashed is dropped.
    let path = Path::new(log.as_str().expect("a path"));
    let mut file = std::fs::OpenOptions::new().append(true).open(path).expect("a log");
    file.write_all(br#"{"type":"entry","id":"99","role":"us"#).expect("a disk");
    drop(file);
    let opened = other.ask(&json!({ "op": "open", "log": log }).to_string());
    let expect = json!({ "ok": true, "log": log, "session": "a talk", "messages": 12, "entries": 12,
        "compactions": 1, "open_calls": ["c9"], "last": { "role": "assistant", "text": "Read" },
        "usage": opened["usage"] });
    assert_eq!(opened, expect);
    assert_eq!(other.ask(r#"{"op":"call"}"#), left);
    let reference = left["refs"]["c0"].clone();
    let recalled = other.ask(&json!({ "op": "recall", "ref": reference }).to_string());
    assert_eq!(recalled["text"], "line of 0\n".repeat(99));
    assert_eq!(other.ask(r#"{"op":"undo"}"#)["undone"], true);
    assert_eq!(other.ask(r#"{"op":"call"}"#)["refs"], json!({}));
    other.end();

    // A name opens its newest log: that of the second `reset`, which has no messages.
    let mut third = Engine::new(&world, &args);
    assert_eq!(third.ask(r#"{"op":"open","session":"a talk"}"#)["log"], reset);
    // Messages that were added after the torn line are read.
    let opened = third.ask(&json!({ "op": "open", "log": log }).to_string());
    assert_eq!((&opened["compactions"], &opened["messages"]), (&json!(0), &json!(12)));
    third.end();
}

/// A text of the model is recalled with its call, by the number of its response, and by search.
#[test]
fn what_was_said_is_recalled_and_searched() {
    let world = World::new();
    let mut engine = Engine::new(&world, &["--no-log"]);
    let call = json!({ "id": "c1", "type": "tool_use", "name": "Read", "input": {} });
    let result = json!({ "type": "tool_result", "tool_use_id": "c1", "content": "fn a() {}" });
    engine.ask(
        &json!({ "op": "call", "messages": [
            { "role": "user", "content": "Warum?" },
            { "role": "assistant", "content": [{ "type": "text", "text": "Ich lese." }, call] },
            { "role": "user", "content": [result] },
            { "role": "assistant", "content": "Die Sperre klemmt." },
        ] })
        .to_string(),
    );
    let hit = |name: &str, text: &str| json!({ "ref": name, "line": 1, "text": text });
    for (with, expect) in [
        (
            json!({ "ref": "#1" }),
            json!({ "text": "fn a() {}", "said": [{ "response": 1, "text": "Ich lese." }] }),
        ),
        (json!({ "ref": "@2" }), json!({ "text": "Die Sperre klemmt." })),
        (json!({ "search": "sperre" }), json!({ "hits": [hit("@2", "Die Sperre klemmt.")] })),
        (json!({ "search": "fn", "ref": "#1" }), json!({ "hits": [hit("#1", "fn a() {}")] })),
        (json!({ "search": "nichts" }), json!({ "hits": [] })),
    ] {
        let mut line = with.clone();
        line["op"] = "recall".into();
        assert_eq!(engine.ask(&line.to_string()), expect, "{with}");
    }
    engine.end();
}

#[test]
fn what_is_no_log_is_not_opened() {
    let world = World::new();
    world.write("notes.jsonl", "{\"type\":\"note\"}\n");
    world.write("empty.jsonl", "");
    world.write("newer.jsonl", "{\"type\":\"epitome\",\"version\":2,\"id\":\"a\"}\n");
    world.write(
        ".local/share/epitome/live/b.jsonl",
        "{\"type\":\"epitome\",\"version\":1,\"id\":\"c\"}\n",
    );
    let lines = [
        r#"{"op":"call","messages":[{"role":"user","content":"Hi."}]}"#,
        r#"{"op":"open","log":"notes.jsonl"}"#,
        r#"{"op":"open","log":"empty.jsonl"}"#,
        r#"{"op":"open","log":"newer.jsonl"}"#,
        r#"{"op":"open","log":"nowhere.jsonl"}"#,
        r#"{"op":"open","log":"."}"#,
        r#"{"op":"open","session":"../../../../notes"}"#,
        r#"{"op":"open","session":"b"}"#,
        r#"{"op":"open","log":"a","session":"b"}"#,
        // The former session is still open.
        r#"{"op":"call"}"#,
    ];
    let args = ["engine", "--count", "estimate"];
    assert_snapshot!(world.run_with(&args, lines.join("\n").as_bytes()));
}

#[test]
fn another_wire_gets_the_body_of_a_request() {
    let world = World::new();
    let say = r#"{"op":"call","messages":[{"role":"user","parts":[{"text":"Hello."}]}]}"#;
    assert_snapshot!(world.run_with(&["engine", "--wire", "gemini", "--no-log"], say.as_bytes()));
}

/// A conversation in each API format: a message of the user, a call, its result; and the key of the
/// message list in a request.
fn talk(api: &str) -> (Vec<Value>, &'static str) {
    let arguments = r#"{"path":"a.rs"}"#;
    match api {
        "anthropic" => {
            let call = json!({"type": "tool_use", "id": "c1", "name": "read", "input": {}});
            let result = json!({"type": "tool_result", "tool_use_id": "c1", "content": "a line"});
            let said = vec![
                json!({"role": "user", "content": "Read it."}),
                json!({"role": "assistant", "content": [call]}),
                json!({"role": "user", "content": [result]}),
            ];
            (said, "messages")
        }
        "openai-chat" => {
            let function = json!({"name": "read", "arguments": arguments});
            let call = json!({"id": "c1", "type": "function", "function": function});
            let said = vec![
                json!({"role": "user", "content": "Read it."}),
                json!({"role": "assistant", "content": null, "tool_calls": [call]}),
                json!({"role": "tool", "tool_call_id": "c1", "content": "a line"}),
            ];
            (said, "messages")
        }
        "openai-responses" => {
            let (id, kind) = ("c1", "function_call");
            let said = vec![
                json!({"role": "user", "content": "Read it."}),
                json!({"type": kind, "call_id": id, "name": "read", "arguments": arguments}),
                json!({"type": "function_call_output", "call_id": id, "output": "a line"}),
            ];
            (said, "input")
        }
        "gemini-api" => {
            let call = json!({"functionCall": {"name": "read", "args": {}}});
            let response = json!({"name": "read", "response": {"output": "a line"}});
            let said = vec![
                json!({"role": "user", "parts": [{"text": "Read it."}]}),
                json!({"role": "model", "parts": [call]}),
                json!({"role": "user", "parts": [{"functionResponse": response}]}),
            ];
            (said, "contents")
        }
        api => panic!("{api} has no talk"),
    }
}

/// Sends a conversation message by message with a client, and prints the last body.
const TALKS: [(&str, &str); 2] = [
    (
        "engine.py",
        r#"
import importlib.util, json, sys
client, program, talk, *options = sys.argv[1:]
spec = importlib.util.spec_from_file_location("engine", client)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
engine = module.Engine(*options, program=program)
for message in json.loads(talk):
    body = engine.say(message)
print(json.dumps(body))
engine.close()
"#,
    ),
    (
        "engine.ts",
        r#"
const [client, program, talk, ...options] = process.argv.slice(2);
const { Engine } = await import(client);
const engine = new Engine(program, ...options);
let body;
for (const message of JSON.parse(talk)) body = await engine.say(message);
console.log(JSON.stringify(body));
await engine.close();
"#,
    ),
];

#[test]
fn clients_hold_a_talk() {
    let world = World::new();
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/clients");
    for (program, about, client) in [
        ("python3", "import sys; sys.exit(sys.version_info < (3, 9))", "engine.py"),
        // From this version on, Node runs TypeScript directly.
        ("node", "process.exit(process.features.typescript ? 0 : 1)", "engine.ts"),
    ] {
        let file = clients.join(client);
        let text = std::fs::read_to_string(&file).expect("a client is part of the repository");
        assert!(text.lines().count() < 60, "{client} is short");
        let option = if program == "node" { "-e" } else { "-c" };
        let mut ask = Command::new(program);
        let ask = ask.args([option, about]).stdout(Stdio::null()).stderr(Stdio::null());
        if !ask.status().is_ok_and(|status| status.success()) {
            let why = format!("there is no {program} on this machine that runs {client}");
            fixtures::skipped("clients_hold_a_talk", &why);
            continue;
        }
        let run = |args: &[&str]| {
            let mut command = Command::new(program);
            command.args(args).current_dir(&world.home);
            // The client starts epitome, which must not read the settings of the user who runs the
            // tests.
            command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
            command.env("HOME", &world.home);
            let out = command.output().expect("the program runs");
            assert!(out.status.success(), "{client}: {out:?}");
            String::from_utf8_lossy(&out.stdout).into_owned()
        };
        let (file, epitome) = (file.display().to_string(), env!("CARGO_BIN_EXE_epitome"));
        // The example prints a success, and leaves no session behind.
        let said = run(&[&file, epitome, "--count", "estimate"]).to_lowercase();
        let lines: Vec<&str> = said.lines().collect();
        let [outcome, undone, "11"] = lines[..] else { panic!("{client}: {said}") };
        assert!(undone.ends_with(" true"), "{client}: {said}");
        assert!(outcome.starts_with("compacted: "), "{client}: {outcome}");
        assert!(outcome.contains(". shortened: summary 1."), "{client}: {outcome}");
        let list = world.output(&["list", "--json"]).stdout;
        assert_eq!(String::from_utf8_lossy(&list), "", "{client}");
        assert!(!world.home.join(".local/share/epitome/live").exists(), "{client}");
        // In every API format, the view is a request body.
        let (_, script) = TALKS.into_iter().find(|(name, _)| *name == client).expect("its script");
        let script_file =
            world.home.join(client.replace("engine.", "talk.").replace(".ts", ".mjs"));
        std::fs::write(&script_file, script).expect("a disk");
        for api in ["anthropic", "openai-chat", "openai-responses", "gemini-api"] {
            let (messages, list) = talk(api);
            let talk = Value::from(messages).to_string();
            let script = script_file.display().to_string();
            let said = run(&[&script, &file, epitome, &talk, "--no-log", "--wire", api]);
            let body: Value = serde_json::from_str(&said).expect("a body in JSON");
            assert_eq!(body[list].as_array().map(Vec::len), Some(3), "{client} {api}: {body}");
        }
    }
}

/// The peak memory of a process, in bytes.
#[cfg(target_os = "linux")]
fn most_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a figure");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

#[cfg(target_os = "linux")]
#[test]
fn a_large_message_takes_no_more_than_four_times_its_size() {
    const SIZE: usize = 48 << 20;
    let world = World::new();
    let mut command = world.command(&["engine", "--count", "estimate"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut to = child.stdin.take().expect("piped");
    let mut from = BufReader::new(child.stdout.take().expect("piped"));
    let mut ask = |line: &str| {
        writeln!(to, "{line}").expect("it is read");
        let mut answer = String::new();
        from.read_line(&mut answer).expect("an answer");
        assert!(!answer.contains("\"error\""), "{}", &answer[..answer.len().min(400)]);
    };
    let call = |n: usize, result: &str| {
        let call = format!(
            concat!(
                r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"c{n}","#,
                r#""name":"Read","input":{{}}}}]}}"#,
            ),
            n = n,
        );
        let result = format!(
            concat!(
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c{n}","#,
                r#""content":"{result}"}}]}}"#,
            ),
            n = n,
            result = result,
        );
        format!(r#"{{"op":"call","messages":[{call},{result}]}}"#)
    };
    ask(r#"{"op":"hello"}"#);
    ask(&call(1, "a short one"));
    let before = most_memory(child.id());
    let line = "a line of a log of a build that goes on and on and on\\n";
    let message = call(2, &line.repeat(SIZE / line.len()));
    ask(&message);
    let took = most_memory(child.id()) - before;
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    let times = took as f64 / message.len() as f64;
    assert!(times <= 4.0, "a message of {} bytes took {times:.1} times as much", message.len());
}

#[test]
fn half_of_a_character_is_refused_with_a_hint_that_helps() {
    let world = World::new();
    let line = r#"{"op":"call","messages":[{"role":"user","content":"a \ud800 b"}]}"#;
    let told = world.run_with(&["engine"], line.as_bytes());
    assert!(told.contains("cut in half") && told.contains("U+FFFD"), "{told}");
    assert!(!told.contains("has such messages"), "{told}");
}

#[test]
fn a_client_that_sends_its_whole_list_is_answered_what_to_send_of_it() {
    let world = World::new();
    let mut engine = Engine::new(&world, &["--no-log"]);
    let message = |role: &str, text: &str| json!({ "role": role, "content": text });
    let (hi, hello) = (message("user", "Hi."), message("assistant", "Hello."));
    let (go, stop) = (message("user", "Go."), message("user", "Stop."));
    let mut texts = |op: &str, list: &[&Value]| -> Vec<String> {
        let answer = engine.ask(&json!({ "op": op, "messages": list }).to_string());
        let messages = answer["messages"].as_array().expect("a list").iter();
        let text = |message: &Value| message["content"][0]["text"].as_str().map(str::to_owned);
        messages.filter_map(text).collect()
    };
    let all = ["Hi.", "Hello.", "Go."];
    assert_eq!(texts("view", &[&hi, &hello, &go]), all);
    assert_eq!(texts("view", &[&hi, &hello, &go]), all, "the same again");
    assert_eq!(texts("view", &[&hi]), ["Hi."], "back");
    assert_eq!(texts("view", &[&hi, &hello, &stop]), ["Hi.", "Hello.", "Stop."]);
    assert_eq!(texts("call", &[&hello]), ["Hi.", "Hello.", "Stop.", "Hello."]);
    assert_eq!(texts("view", &[&hi, &hello, &go]), all, "it differs");
    for bad in [r#"{"op":"view","messages":[{"role":"tool"}]}"#, r#"{"op":"view"}"#] {
        assert_eq!(engine.ask(bad)["error"]["kind"], "usage", "{bad}");
    }
    engine.end();
}
