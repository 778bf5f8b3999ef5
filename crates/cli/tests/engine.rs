//! The engine on a pipe, and the clients that speak with it.

mod world;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use world::World;

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
        r#"{"op":"compact"}"#,
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

#[test]
fn a_client_that_has_a_model_is_asked_for_summaries() {
    let world = World::new();
    let recipe = world.home.join("told.toml");
    let text = concat!(
        "name = 'told'\nabout = 'A summary of all but the last message.'\npasses = []\n",
        "keep = { messages = 1 }\n[live.summary]\nmax_tokens = 500\nsections = ['State']\n",
    );
    std::fs::write(&recipe, text).expect("a disk");
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
        r#"{"op":"compact","focus":"what is old"}"#,
        r#"{"op":"answer","failed":"no answer in time"}"#,
        r#"{"op":"compact"}"#,
        r###"{"op":"answer","text":"## State\nIt is old.","usage":{"input":700,"output":9}}"###,
        r#"{"op":"call"}"#,
        r#"{"op":"answer","text":"Nothing was asked."}"#,
    ];
    let recipe = recipe.display().to_string();
    let args = ["engine", "--recipe", &recipe, "--no-log", "--count", "estimate"];
    assert_snapshot!(world.run_with(&args, lines.join("\n").as_bytes()));
}

#[test]
fn another_wire_gets_the_body_of_a_request() {
    let world = World::new();
    let say = r#"{"op":"call","messages":[{"role":"user","parts":[{"text":"Hello."}]}]}"#;
    assert_snapshot!(world.run_with(&["engine", "--wire", "gemini", "--no-log"], say.as_bytes()));
}

#[test]
fn clients_hold_a_talk() {
    let world = World::new();
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/clients");
    for (program, about, client) in [
        ("python3", "import sys; sys.exit(sys.version_info < (3, 9))", "engine.py"),
        // Node takes TypeScript as it is from there on.
        ("node", "process.exit(process.features.typescript ? 0 : 1)", "engine.ts"),
    ] {
        let file = clients.join(client);
        let text = std::fs::read_to_string(&file).expect("a client is part of the repository");
        assert!(text.lines().count() < 60, "{client} is short");
        let option = if program == "node" { "-e" } else { "-c" };
        let mut ask = Command::new(program);
        let ask = ask.args([option, about]).stdout(Stdio::null()).stderr(Stdio::null());
        if !ask.status().is_ok_and(|status| status.success()) {
            let why = format!("skipped: there is no {program} that runs {client}");
            writeln!(std::io::stderr(), "{why}; `cargo xtask e2e sdk` brings one").expect("output");
            continue;
        }
        let out = Command::new(program)
            .arg(&file)
            .args([env!("CARGO_BIN_EXE_epitome"), "--recipe", "clear-tool-uses"])
            .env("EPITOME_HOME", world.home.join("data"))
            .output()
            .expect("the program runs");
        let said = String::from_utf8_lossy(&out.stdout).to_lowercase();
        assert_eq!(said, "[epitome k08ab0a2]\ntrue 693\n", "{client}: {out:?}");
    }
}
