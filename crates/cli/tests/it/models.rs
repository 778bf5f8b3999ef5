//! Summaries written by a scripted model on this machine.

use crate::world::sessions::{self, CLAUDE};
use crate::world::{self, World};
use model_server::{Answer, Rough, Step};

const KEY: &str = "sk-test-0123456789abcdefghij";

const ANSWER: &str =
    "## What was accomplished\nAll.\n## Current state\nDone.\n## Key decisions\nNone.";

#[test]
fn the_engine_has_a_model_write_the_summary_that_is_due() {
    let world = World::new();
    let server = Rough::start([Answer::Says(Step::text(ANSWER))]).expect("a server");
    let long = "All that was said. ".repeat(2_000);
    let say = |role: &str, text: &str| {
        format!(r#"{{"op":"call","messages":[{{"role":"{role}","content":"{text}"}}]}}"#)
    };
    let lines = [
        say("user", &long),
        say("assistant", &long),
        say("user", "Go on."),
        say("assistant", "I go on."),
        say("user", "And on."),
        r#"{"op":"compact"}"#.to_owned(),
        r#"{"op":"usage"}"#.to_owned(),
    ];
    let run = |model: &[&str]| {
        let args = [&["engine", "--recipe", "s06", "--count", "estimate", "--no-log"], model];
        world.run_with(&args.concat(), lines.join("\n").as_bytes())
    };
    let url = server.url();
    let model = ["--model", "compatible/scripted", "--base-url", &url];
    let with = run(&model);
    assert!(with.contains(r#""event":"summarised""#), "{with}");
    assert!(with.contains(r#""calls":1"#), "{with}");
    assert_eq!(server.exchanges().len(), 1);
    assert!(!run(&[]).contains("summarised"), "nobody is asked whom nobody named");
    assert_eq!(server.exchanges().len(), 1);
}

#[test]
fn a_model_that_cannot_be_asked_is_said_at_once() {
    let world = World::new();
    for (model, expect) in [
        ("claude", "names no model"),
        ("openai/gpt-6-luna", "there is no key for openai"),
        ("compatible/x", "needs an address"),
    ] {
        let output = world.run_with(&["engine", "--model", model], b"{\"op\":\"hello\"}");
        assert!(output.contains(expect), "{model}: {output}");
        assert!(!output.contains(KEY), "{output}");
    }
}

/// A stored session, and a server of scripted models.
struct Stored {
    world: World,
    session: String,
}

impl Stored {
    fn new() -> Stored {
        let world = World::new();
        let session = world.claude(CLAUDE, sessions::claude(CLAUDE));
        Stored { session: session.to_str().expect("text").to_owned(), world }
    }

    /// The arguments of `compact --summarise` with the server's models.
    fn args<'a>(&'a self, url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let all = [
            "compact",
            &self.session,
            "--keep-turns",
            "1",
            "--summarise=compatible/first",
            "--base-url",
            url,
            "--set",
            "live.summary.sections=Done",
        ];
        all.iter().copied().chain(more.iter().copied()).collect()
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.session).expect("a session")
    }
}

const DONE: &str = "## Done\nThe failing test was mended in src/a.rs, and all of them pass.";
const ONCE: [&str; 2] = ["--set", "compaction.tries=1"];

fn server(answers: impl IntoIterator<Item = Answer>) -> Rough {
    Rough::start(answers).expect("a server")
}

fn good() -> Answer {
    Answer::Says(Step::text(DONE))
}

#[test]
fn a_model_writes_the_summary_of_a_stored_session_and_the_report_says_what_it_took() {
    let stored = Stored::new();
    let server = server([good()]);
    let url = server.url();
    let report = stored.world.json(&stored.args(&url, &["--json"]));
    world::check("compact.schema.json", &report);
    assert_eq!(report[0]["outcome"], "compacted");
    let models = &report[0]["models"];
    assert_eq!((&models["model"], &models["calls"]), (&"compatible/first".into(), &1.into()));
    assert!(models["used"]["input"].as_u64() > Some(100), "{models}");
    assert_eq!(models["unpriced"], 1, "nobody knows what it costs");
    let asked = server.exchanges()[0].body.to_string();
    assert!(asked.contains("Done") && asked.contains("Fix the failing test"), "{asked}");
    let text = String::from_utf8(stored.bytes()).expect("text");
    assert!(text.contains("was mended in src/a.rs"));
}

#[test]
fn what_costs_nobody_knows_what_is_told_in_tokens_alone() {
    let stored = Stored::new();
    let server = server([good()]);
    let output = stored.world.run(&stored.args(&server.url(), &[]));
    assert!(output.contains("1 call · ") && output.contains("price not known"), "{output}");
    assert!(!output.contains("about $"), "{output}");
}

#[test]
fn a_dry_run_asks_nobody_and_says_what_would_be_asked() {
    let stored = Stored::new();
    let server = server([good()]);
    let (url, before) = (server.url(), stored.bytes());
    let output = stored.world.run(&stored.args(&url, &["--dry-run"]));
    assert!(output.contains("would ask compatible/first (it was named)"), "{output}");
    assert!(output.contains("1 question of together "), "{output}");
    assert!(output.contains(": price not known"), "{output}");
    // No key is needed to estimate the cost.
    let args = ["--keep-turns", "1", "--summarise=openai/gpt-4.1-mini", "--dry-run", "--json"];
    let args = [&["compact", &*stored.session], &args[..]].concat();
    let output = stored.world.json(&args);
    world::check("compact.schema.json", &output);
    let asked = &output[0]["would_ask"];
    assert_eq!(
        (&asked["model"], &asked["because"]),
        (&"openai/gpt-4.1-mini".into(), &"configured".into())
    );
    assert!(asked["questions"] == 1 && asked["cost"].as_u64() > Some(0), "{asked}");
    assert_eq!(server.exchanges().len(), 0);
    assert_eq!(stored.bytes(), before);
}

#[test]
fn nobody_is_asked_about_a_session_that_cannot_hold_a_summary() {
    let world = World::new();
    let server = server([good()]);
    let cases = fixtures::cases().into_iter();
    let case = cases.filter(|it| it.format == "opencode").find(|it| it.name == "export");
    let session = case.expect("a case of the repository").session;
    let (session, url) = (session.display().to_string(), server.url());
    let args = ["compact", &session, "--out", "small.json", "--keep-tokens=1"];
    let asked = ["--summarise=compatible/x", "--base-url", &url];
    for more in [&["--dry-run"][..], &[]] {
        let output = world.run(&[&args[..], &asked[..], more].concat());
        assert!(output.contains("the session cannot hold a summary: it is an export"), "{output}");
    }
    assert_eq!(server.exchanges().len(), 0);
}

#[test]
fn another_model_is_asked_where_the_first_has_no_answer() {
    let stored = Stored::new();
    let server = server([Answer::status(401, "no"), good()]);
    let url = server.url();
    let report =
        stored.world.json(&stored.args(&url, &["--fallback", "compatible/second", "--json"]));
    assert_eq!(report[0]["outcome"], "compacted");
    let models = &report[0]["models"];
    assert_eq!((&models["calls"], &models["failed"]), (&2.into(), &1.into()));
    let asked: Vec<_> = server.exchanges().iter().map(|it| it.body["model"].clone()).collect();
    assert_eq!(asked, ["first", "second"]);
}

#[test]
fn what_was_asked_in_vain_is_accounted_in_json() {
    let stored = Stored::new();
    let server = server([Answer::status(500, "no")]);
    let report = stored.world.json(&stored.args(&server.url(), &[&ONCE[..], &["--json"]].concat()));
    world::check("compact.schema.json", &report);
    let models = &report[0]["models"];
    assert_eq!((&models["calls"], &models["failed"]), (&1.into(), &1.into()));
    assert_eq!(report[0]["error"]["kind"], "refused");
}

#[test]
fn a_service_that_wants_to_be_left_alone_for_long_is_left_alone() {
    let error = || Answer::status(429, r#"{"error":{"message":"slow down"}}"#);
    let date = "Sat, 21 Nov 2026 22:00:00 GMT";
    for (answer, expect) in [
        (error().with_header("retry-after", "3600"), "again in 3600 s"),
        (
            error()
                .with_header("date", date)
                .with_header("retry-after", "Sat, 21 Nov 2026 23:30:00 GMT"),
            "again in 5400 s",
        ),
    ] {
        let stored = Stored::new();
        let before = stored.bytes();
        let server = server([answer, good()]);
        let output = stored.world.run(&stored.args(&server.url(), &[]));
        assert!(output.contains(expect) && output.ends_with("--- status 4\n"), "{output}");
        assert!(output.contains("1 failed"), "what failed is accounted: {output}");
        assert_eq!(server.exchanges().len(), 1, "it is not asked again");
        assert_eq!(stored.bytes(), before);
    }
}

#[test]
fn a_service_that_does_not_answer_is_not_waited_for_longer_than_is_set() {
    let stored = Stored::new();
    let before = stored.bytes();
    let server = server([Answer::Silence]);
    let args = [&ONCE[..], &["--set", "compaction.timeout=1"]].concat();
    let output = stored.world.run(&stored.args(&server.url(), &args));
    assert!(
        output.contains("no response within 1 s") && output.ends_with("--- status 4\n"),
        "{output}"
    );
    assert_eq!((server.exchanges().len(), stored.bytes() == before), (1, true));
}

#[cfg(unix)]
#[test]
fn whoever_does_not_want_to_wait_leaves_the_session_as_it_was() {
    let stored = Stored::new();
    let before = stored.world.tree();
    let server = server([Answer::Silence]);
    let url = server.url();
    let mut command = stored.world.command(&stored.args(&url, &[]));
    let mut child = command.stderr(std::process::Stdio::null()).spawn().expect("the program runs");
    while server.exchanges().is_empty() {
        std::thread::yield_now();
    }
    // Ctrl-C ends the program in the same way, but a script's background processes ignore Ctrl-C.
    let stop = ["-TERM".to_owned(), child.id().to_string()];
    let sent = std::process::Command::new("kill").args(stop).status();
    assert!(sent.expect("there is kill").success());
    assert!(!child.wait().expect("it ends").success());
    let sessions = |tree: Vec<(std::path::PathBuf, std::time::SystemTime, String)>| {
        tree.into_iter().filter(|it| it.0.extension().is_some_and(|it| it == "jsonl"))
    };
    assert!(sessions(stored.world.tree()).eq(sessions(before)), "nothing of the session changed");
}

/// A key is put into every place from which keys are read or echoed, and looked for in everything
/// that is written.
#[test]
fn a_key_is_nowhere_to_be_found_afterwards() {
    let tail = &KEY[KEY.len() - 4..];
    let echo = format!("Incorrect API key provided: {}****{tail}. You sent {KEY}", &KEY[..7]);
    let body = serde_json::json!({ "error": { "message": echo } }).to_string();
    let answers = [
        Answer::status(401, body.clone()),
        Answer::status(500, body.clone()),
        Answer::status(200, body),
        Answer::Says(Step::text(format!("## Done\nThe key is {KEY}, and all tests pass now."))),
    ];
    for answer in answers {
        let stored = Stored::new();
        let server = server([answer.clone()]);
        let url = server.url();
        for json in [&["--json"][..], &[]] {
            let args = stored.args(&url, &[&ONCE[..], json].concat());
            let mut command = stored.world.command(&args);
            command.env("EPITOME_API_KEY", KEY).env("EPITOME_LOG", "trace");
            let output = command.output().expect("the program runs");
            let mut all = [output.stdout, output.stderr].concat();
            for (path, _, _) in stored.world.tree() {
                all.extend(path.to_string_lossy().bytes());
                all.extend(std::fs::read(&path).unwrap_or_default());
            }
            let all = String::from_utf8_lossy(&all);
            assert!(!all.contains(&KEY[8..20]), "{answer:?}");
            assert!(!all.contains(&format!("*{tail}")), "{answer:?}: {all}");
        }
        let header = format!("Bearer {KEY}");
        assert!(server.headers().iter().any(|it| it.contains(&header)), "it was sent");
    }
}

#[test]
fn without_a_keyring_keys_are_still_taken_from_the_environment_and_it_is_said() {
    let world = World::new();
    let mut command = world.command(&["key", "list"]);
    let output = command.env("GOOGLE_API_KEY", KEY).output().expect("the program runs");
    let printed = world.terminal(&["key", "list"], &output);
    assert!(printed.contains("google      in GOOGLE_API_KEY"), "{printed}");
    assert!(
        printed.contains("groq        none") && printed.ends_with("--- status 0\n"),
        "{printed}"
    );
    assert!(printed.contains("cannot use the keyring: EPITOME_KEYRING=off"), "{printed}");
    assert!(!printed.contains(&KEY[..8]), "{printed}");
    let printed = world.run_with(&["key", "set", "groq"], format!("{KEY}\n").as_bytes());
    assert!(
        printed.contains("cannot use the keyring") && printed.ends_with("status 5\n"),
        "{printed}"
    );
    assert!(!printed.contains(&KEY[..8]), "{printed}");
    let printed = world.run_with(&["key", "set", "groq"], b"not a key\n");
    assert!(printed.contains("not a key") && printed.ends_with("status 2\n"), "{printed}");
    assert!(world.run(&["key", "set", "ollama"]).contains("invalid value 'ollama'"));
    let printed = world.run_with(&["engine", "--model", "groq/x"], b"{\"op\":\"hello\"}");
    assert!(printed.contains("set GROQ_API_KEY; cannot use the keyring"), "{printed}");
}

/// No message bus listens at the given address, as on a machine without a desktop.
#[cfg(target_os = "linux")]
#[test]
fn a_machine_without_a_bus_has_no_keyring() {
    let world = World::new();
    let mut command = world.command(&["key", "list", "--json"]);
    let bus = format!("unix:path={}", world.home.join("bus").display());
    command.env("EPITOME_KEYRING", "on").env("DBUS_SESSION_BUS_ADDRESS", bus);
    let output = command.output().expect("the program runs");
    let stdout = String::from_utf8(output.stdout).expect("text");
    let first = stdout.lines().next().expect("a line");
    let first: serde_json::Value = serde_json::from_str(first).expect("JSON");
    assert_eq!(
        (&first["provider"], &first["place"]),
        (&"anthropic".into(), &serde_json::Value::Null)
    );
    assert!(first["no_keyring"].is_string(), "{first}");
    assert_eq!(output.status.code(), Some(0));
}

const TABLE: &str = r#"
    [[model]]
    provider = "compatible"
    name = "narrow"
    window = 2_000
    output = 60_000
    summaries = true
    price = { input = 0, output = 0 }

    [[model]]
    provider = "compatible"
    name = "short"
    window = 900_000
    output = 10_000
    summaries = true
    price = { input = 1, output = 1 }

    [[model]]
    provider = "compatible"
    name = "dear"
    window = 900_000
    output = 60_000
    summaries = true
    price = { input = 9, output = 9 }
"#;

#[test]
fn a_provider_alone_stands_for_its_cheapest_model_that_takes_question_and_answer() {
    let stored = Stored::new();
    stored.world.write(".config/epitome/models.toml", TABLE);
    let asked = |model: &str, answer: u64| {
        let (model, answer) =
            (format!("--summarise={model}"), format!("live.summary.max_tokens={answer}"));
        let args =
            ["compact", &stored.session, "--recipe=s06", "--dry-run", "--json", &model, "--set"];
        let report = stored.world.json(&[&args[..], &[&answer]].concat());
        let asked = &report[0]["would_ask"];
        format!("{} {}", asked["model"], asked["because"]).replace('"', "")
    };
    for (model, answer, expect) in [
        // The question, and not only the session, is longer than the window of `narrow`.
        ("compatible", 100, "compatible/short cheapest"),
        ("compatible", 10_000, "compatible/short cheapest"),
        ("compatible", 20_000, "compatible/dear cheapest"),
        ("auto", 100, "anthropic/claude-haiku-5-5 cheapest"),
        ("anthropic", 20_000, "anthropic/claude-haiku-5-5 cheapest"),
        ("compatible/narrow", 20_000, "compatible/narrow configured"),
    ] {
        assert_eq!(asked(model, answer), expect, "{model} {answer}");
    }
    let args = ["compact", &stored.session, "--recipe=s06", "--dry-run", "--summarise=ollama"];
    let report = stored.world.run(&args);
    assert!(report.contains("no model of ollama in the model table is suitable"), "{report}");
}

#[test]
fn the_engine_asks_the_cheapest_model_of_a_provider_or_else_the_sessions() {
    let words = "All that was said. ".repeat(9_000);
    let say = format!(r#"{{"op":"call","messages":[{{"role":"user","content":"{words}"}}]}}"#);
    let reply = r#"{"op":"call","messages":[{"role":"assistant","content":"Well."}]}"#;
    let lines = [&say, reply, r#"{"op":"compact"}"#].join("\n");
    for (table, args, expect) in [
        (TABLE, &["--recipe", "s06"][..], "short"),
        (TABLE, &["--recipe", "jcli"], "dear"),
        (TABLE, &["--recipe", "s06", "--session-model", "own"], "short"),
        ("", &["--recipe", "s06", "--session-model", "own"], "own"),
    ] {
        let world = World::new();
        world.write(".config/epitome/models.toml", table);
        let server = server([Answer::Says(Step::text(ANSWER))]);
        let url = server.url();
        let model = ["engine", "--no-log", "--model", "compatible", "--base-url", &url];
        let output = world.run_with(&[&model, args].concat(), lines.as_bytes());
        let asked: Vec<_> =
            server.exchanges().iter().map(|asked| asked.body["model"].clone()).collect();
        assert_eq!(asked, [expect], "{args:?}: {output}");
    }
    let world = World::new();
    for (args, expect) in [
        (&["--model", "auto"][..], "there is no key for anthropic"),
        (&["--model", "auto", "--wire", "openai-responses"], "there is no key for openai"),
        (&["--model", "auto", "--wire", "gemini"], "there is no key for google"),
        (&["--model", "auto", "--wire", "openai-chat"], "many providers offer openai-chat"),
        (&["--model", "ollama"], "no model of ollama in the model table is suitable"),
        (&["--model", "groq", "--session-model", "claude-opus-5", "--window", "9m"], "no model of"),
    ] {
        let output = world.run_with(&[&["engine"], args].concat(), b"{\"op\":\"hello\"}");
        assert!(output.contains(expect), "{args:?}: {output}");
    }
}
