//! A project's rules, the folder of a resumed session, and secrets that are kept from the model.

use std::process::Stdio;

use model_server::{Script, Step};
use serde_json::{Value, json};

use super::{Chat, calls, events};

/// The id of a chat's session, from its first event.
fn begun(stdout: &str) -> String {
    events(stdout)[0]["id"].as_str().expect("an id").to_owned()
}

#[cfg(unix)]
#[test]
fn neither_a_link_nor_a_tool_shows_the_model_a_key_of_the_environment() {
    let look = "tr '\\0' '\\n' < /proc/$PPID/environ; env; cat /proc/$PPID/fd/3";
    let chat = Chat::new([
        calls(&[
            ("shell", json!({"command": look})),
            ("read", json!({"path": "/proc/self/environ"})),
        ]),
        Step::text("Nothing."),
    ]);
    let project = chat.world.home.join("project");
    for name in ["AGENTS.md", ".epitome.toml"] {
        std::os::unix::fs::symlink("/proc/self/environ", project.join(name)).expect("a link");
    }
    chat.world.write("project/CLAUDE.md", "Be kind.");
    chat.world.write("project/.agents/skills/release/SKILL.md", "# How to release");
    let mut command = chat.command("anthropic", &["-p", "Look.", "--yes", "--json"]);
    let output = command.env("OTHER", "CANARY").output().expect("the program runs");
    let notes = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{notes}");
    let sent = chat.sent();
    assert_eq!(chat.refused(), Vec::<String>::new(), "the key is sent to the service");
    assert!(!sent.concat().contains("sk-test-"), "{sent:?}");
    assert!(!sent[0].contains("CANARY") && sent[0].contains("Be kind."), "{}", sent[0]);
    assert!(sent[1].contains("CANARY"), "a command has the rest: {}", sent[1]);

    let stdout = String::from_utf8(output.stdout).expect("text");
    let events = events(&stdout);
    let loaded = events.iter().find(|event| event["event"] == "loaded").expect("an event");
    let skill = ".agents/skills/release/SKILL.md";
    let expect = json!([
        {"kind": "rules", "name": "CLAUDE.md"},
        {"kind": "skill", "name": "release", "path": skill},
    ]);
    assert_eq!(loaded["files"], expect);
    let notice = events.iter().find(|event| event["event"] == "notice").expect("an event");
    let text = notice["text"].as_str().expect("text");
    assert!(text.starts_with("AGENTS.md is not read: a link out of"), "{text}");
    assert!(notes.contains(".epitome.toml: a link out of"), "{notes}");
    assert!(!stdout.contains("sk-test-"), "{stdout}");
}

#[test]
fn last_is_the_newest_session_of_this_folder_with_its_model_and_recipe() {
    let chat = Chat::new([Step::text("One.")]);
    let run = |folder: &str, args: &[&str], steps: &str| {
        chat.server.play(Script::new([Step::text(steps)]));
        let mut command = chat.command("anthropic", &[&["-p", "Go on."], args].concat());
        let folder = chat.world.home.join(folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        let output = command.current_dir(folder).output().expect("the program runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (_, first, _) = run("project", &["--json", "--recipe", "s06"], "One.");
    let (_, second, _) = run("other", &["--json"], "Two.");
    let (first, second) = (begun(&first), begun(&second));

    let (_, again, _) = run("project", &["--json", "--resume", "last"], "Three.");
    let event = &events(&again)[0];
    assert_eq!((event["id"].as_str(), event["recipe"].as_str()), (Some(&*first), Some("s06")));
    let (status, _, notes) = run("empty", &["--resume", "last"], "Four.");
    assert_eq!(status, Some(3), "{notes}");
    assert!(notes.contains("there is no session of this folder"), "{notes}");

    // Resumed by id in another folder, with a message to the model about that.
    chat.world.write("elsewhere/AGENTS.md", "Rules of elsewhere.");
    let (status, _, notes) = run("elsewhere", &["--resume", &second], "Five.");
    assert_eq!(status, Some(0), "{notes}");
    assert!(notes.contains("this session was held in"), "{notes}");
    let sent = chat.sent().pop().expect("a request");
    let elsewhere = chat.world.home.join("elsewhere").display().to_string();
    assert!(sent.contains(&format!("The project is in {elsewhere}")), "{sent}");
    assert!(sent.contains("Rules of elsewhere.") && sent.contains("Until now"), "{sent}");
    assert_eq!(sent.matches("The project is in").count(), 1, "{sent}");
    assert_eq!(chat.refused(), Vec::<String>::new());
    let listed = chat.world.run(&["list"]);
    assert!(listed.contains("project") && listed.contains("other"), "{listed}");
}

#[test]
fn a_session_of_an_older_version_is_of_the_folder_that_its_prompt_names() {
    let chat = Chat::new([Step::text("Yes.")]);
    let project = chat.world.home.join("project").canonicalize().expect("a folder");
    let prompt = format!("You are an agent.\nThe project is in {}.\n", project.display());
    let lines = [
        json!({"type": "epitome", "version": 1, "id": "chat-20261101-101010"}),
        json!({"type": "entry", "id": "1", "role": "prompt", "blocks": [{"text": prompt}]}),
        json!({"type": "entry", "id": "2", "role": "user", "blocks": [{"text": "Hello."}]}),
        json!({"type": "entry", "id": "3", "role": "assistant", "blocks": [{"text": "Hi."}]}),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let path = ".local/share/epitome/live/chat-20261101-101010.jsonl";
    chat.world.write(path, &lines);
    let (status, stdout, notes) =
        chat.run("anthropic", &["-p", "Go on.", "--resume", "last", "--json"]);
    assert_eq!(status, 0, "{notes}");
    assert_eq!(begun(&stdout), "chat-20261101-101010");
    let notices: Vec<Value> =
        events(&stdout).into_iter().filter(|event| event["event"] == "notice").collect();
    assert_eq!(notices, Vec::<Value>::new());
}

#[test]
fn chats_that_begin_in_the_same_second_have_a_log_each() {
    let chat = Chat::new([]);
    let children: Vec<_> = (0..6)
        .map(|_| {
            let mut command = chat.command("anthropic", &["-p", "Hello.", "--json"]);
            command.env("EPITOME_NOW", "2026-11-24T07:00:00Z");
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("it runs")
        })
        .collect();
    let mut ids = Vec::new();
    for child in children {
        let output = child.wait_with_output().expect("it ends");
        let notes = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{notes}");
        ids.push(begun(&String::from_utf8_lossy(&output.stdout)));
    }
    ids.sort();
    let expect = ["", "-2", "-3", "-4", "-5", "-6"];
    assert_eq!(ids, expect.map(|it| format!("chat-20261124-070000{it}")));
}

#[test]
fn standard_input_is_a_part_of_the_message_or_all_of_it() {
    use std::io::Write as _;

    for (args, expect) in [
        (&["-p", "Review this."][..], "<stdin>\n+fn new() {}\n</stdin>"),
        (&["-p", "-"], "+fn new() {}\n"),
    ] {
        let chat = Chat::new([Step::text("Good.")]);
        let mut command = chat.world.command(&["chat", "--model", "anthropic/scripted"]);
        let piped = command.current_dir(chat.world.home.join("project")).args(args);
        piped
            .args(["--base-url", &chat.server.url()])
            .env("ANTHROPIC_API_KEY", "sk-test-0123456789");
        let piped = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("it runs");
        let mut to = child.stdin.take().expect("a pipe");
        // The scripted server needs messages of this length.
        writeln!(to, "{}+fn new() {{}}", "Take your time.\n".repeat(60)).expect("it reads");
        drop(to);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let sent = chat.sent().pop().expect("a request");
        let expect = expect.replace('\n', "\\n").replace("<stdin>\\n", "");
        assert!(sent.contains(&expect), "{sent}");
    }
}

#[test]
fn a_retry_is_an_event_and_a_line() {
    use model_server::{Answer, Rough};

    let busy = || Answer::Status(429, vec![("retry-after-ms".into(), "1".into())], "{}".into());
    let server = Rough::start([busy(), busy()]).expect("a server");
    let chat = Chat::new([]);
    let url = server.url();
    let args = ["chat", "-p", "x", "--model", "compatible/x", "--base-url", &url, "--json"];
    let args = [&args[..], &["--set", "compaction.tries=2"]].concat();
    let output = chat.world.output(&args);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let retry = events(&stdout).into_iter().find(|it| it["event"] == "retry").expect("an event");
    let expect = json!({
        "event": "retry", "reason": "the service is busy", "seconds": 2, "attempt": 2, "tries": 2,
    });
    assert_eq!(retry, expect);
}

#[test]
fn summaries_are_written_by_the_model_of_the_settings_or_the_cheapest() {
    let long = "cat /dev/zero | head -c 40000 | tr '\\0' 'x' | fold -w 79";
    for (settings, expect) in
        [("", "claude-haiku-5-5"), ("[compaction]\nmodel = \"anthropic/cheap\"\n", "cheap")]
    {
        let call = |n: u64| calls(&[("shell", json!({"command": format!("{long} # {n}")}))]);
        let mut steps: Vec<Step> = (1..6).map(call).collect();
        steps.extend([calls(&[("compact", json!({}))]), Step::text("It is small.")]);
        let chat = Chat::new(steps);
        chat.world.write(".config/epitome/epitome.toml", settings);
        let args = ["-p", "Look at it.", "--recipe", "s06", "--yes", "--json"];
        let (status, stdout, notes) = chat.run("anthropic", &args);
        assert_eq!(status, 0, "{notes}");
        let event = &events(&stdout)[0];
        assert_eq!(event["summaries"], format!("anthropic/{expect}"));
        let model = |exchange: &model_server::Exchange| {
            let has_tools = exchange.body["tools"].as_array().is_some_and(|it| !it.is_empty());
            (exchange.body["model"].as_str().expect("a name").to_owned(), has_tools)
        };
        let asked: Vec<(String, bool)> = chat.server.exchanges().iter().map(model).collect();
        let (answers, summaries): (Vec<_>, Vec<_>) = asked.into_iter().partition(|it| it.1);
        assert!(answers.iter().all(|(name, _)| name == "scripted"), "{answers:?}");
        assert!(!summaries.is_empty());
        assert!(summaries.iter().all(|(name, _)| name == expect), "{summaries:?}");
    }
}

#[test]
fn a_model_of_the_settings_answers_at_a_given_address() {
    for (settings, is_noted) in [
        ("[chat]\nmodel = \"anthropic/scripted\"\n", false),
        ("[compaction]\nmodel = \"anthropic/scripted\"\n", true),
    ] {
        let chat = Chat::new([Step::text("Hello.")]);
        chat.world.write(".config/epitome/epitome.toml", settings);
        let message = format!("Hello. {}", "Take your time. ".repeat(40));
        let mut command = chat.world.command(&["chat", "-p", &message]);
        command
            .args(["--base-url", &chat.server.url()])
            .env("ANTHROPIC_API_KEY", "sk-test-01234567");
        let output = command.output().expect("the program runs");
        let notes = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{notes}");
        assert_eq!(notes.contains("chat.model sets another"), is_noted, "{notes}");
    }
}
