//! The chat agent with a scripted model server, with and without a terminal.

mod editor;
mod projects;
mod terminal;

use std::process::{Command, Stdio};

use crate::world::World;
use model_server::{Answer, Ending, Outcome, Rough, Script, Server, Step, ToolCall};
use serde_json::{Value, json};

/// A step that calls tools.
fn calls(calls: &[(&str, Value)]) -> Step {
    let call =
        |(name, input): &(&str, Value)| ToolCall { name: (*name).to_owned(), input: input.clone() };
    Step { calls: calls.iter().map(call).collect(), ..Step::default() }
}

/// A project in a home, and a server that plays a script.
struct Chat {
    world: World,
    server: Server,
}

impl Chat {
    fn new(steps: impl IntoIterator<Item = Step>) -> Chat {
        let world = World::new();
        world.write("project/src/lib.rs", "pub fn answer() -> u32 {\n    41\n}\n");
        let server = Server::start(Script::new(steps)).expect("a server");
        Chat { world, server }
    }

    fn command(&self, provider: &str, args: &[&str]) -> Command {
        let (model, url) = (format!("{provider}/scripted"), self.server.url());
        let all = [&["chat", "--model", &*model, "--base-url", &*url], args].concat();
        // The scripted server counts messages without the prompt, so they must be long for its
        // counts to be plausible.
        let long = |arg: &str| format!("{arg} {}", "Take your time. ".repeat(40));
        let is_message = |at: usize| at > 0 && all[at - 1] == "-p";
        let all: Vec<String> = (0..all.len())
            .map(|at| if is_message(at) { long(all[at]) } else { all[at].to_owned() })
            .collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let mut command = self.world.command(&all);
        command.current_dir(self.world.home.join("project"));
        // The scripted server accepts any key.
        for name in [
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
            "GROQ_API_KEY",
            "OPENROUTER_API_KEY",
        ] {
            command.env(name, "sk-test-0123456789abcdefghij");
        }
        command
    }

    /// The status, standard output and standard error.
    fn run(&self, provider: &str, args: &[&str]) -> (i32, String, String) {
        let output = self.command(provider, args).output().expect("the program runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        let status = output.status.code().expect("it ends by itself");
        (status, text(output.stdout), text(output.stderr))
    }

    fn refused(&self) -> Vec<String> {
        let outcomes = self.server.exchanges().into_iter().map(|exchange| exchange.outcome);
        let refused = outcomes.filter_map(|outcome| match outcome {
            Outcome::Refused(why) => Some(why),
            Outcome::Played { .. } | Outcome::Canned | Outcome::Other => None,
        });
        refused.collect()
    }

    /// The bodies of all requests, as text.
    fn sent(&self) -> Vec<String> {
        self.server.exchanges().iter().map(|exchange| exchange.body.to_string()).collect()
    }
}

fn events(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn on_each_api_parallel_calls_are_run_and_the_answer_is_printed() {
    for provider in ["anthropic", "openai", "google", "compatible", "groq", "openrouter", "ollama"]
    {
        let chat = Chat::new([
            calls(&[
                ("read", json!({"path": "src/lib.rs"})),
                ("grep", json!({"pattern": "fn (\\w+)"})),
                ("edit", json!({"path": "src/lib.rs", "old_string": "41", "new_string": "42"})),
            ]),
            calls(&[("shell", json!({"command": "cat src/lib.rs && exit 3"}))]),
            Step::text("It returns 42 now."),
        ]);
        let (status, answer, notes) = chat.run(provider, &["-p", "Fix the answer.", "--yes"]);
        assert_eq!((status, &*answer), (0, "It returns 42 now.\n"), "{provider}: {notes}");
        assert_eq!(chat.refused(), Vec::<String>::new(), "{provider}");
        let sent = chat.sent();
        assert_eq!(sent.len(), 3, "{provider}");
        assert!(sent[1].contains("src/lib.rs:1:pub fn answer()"), "{provider}: {}", sent[1]);
        assert!(sent[1].contains("edited src/lib.rs at line 2"), "{provider}: {}", sent[1]);
        assert!(sent[2].contains("exit status: 3"), "{provider}: {}", sent[2]);
        let file = chat.world.home.join("project/src/lib.rs");
        assert!(std::fs::read_to_string(file).expect("a file").contains("42"), "{provider}");
    }
}

#[test]
fn without_a_yes_nothing_is_written_or_run_or_read_outside() {
    let chat = Chat::new([
        calls(&[
            ("write", json!({"path": "new.txt", "content": "x"})),
            ("shell", json!({"command": "touch ran"})),
            ("read", json!({"path": "../secret"})),
        ]),
        Step::text("I may not."),
    ]);
    chat.world.write("secret", "hidden");
    let (status, answer, notes) = chat.run("anthropic", &["-p", "Do it."]);
    assert_eq!((status, &*answer), (0, "I may not.\n"), "{notes}");
    let sent = chat.sent().pop().expect("a request");
    assert_eq!(sent.matches("Not permitted").count(), 3, "{sent}");
    assert!(!sent.contains("hidden"), "{sent}");
    let project = chat.world.home.join("project");
    assert!(!project.join("new.txt").exists() && !project.join("ran").exists());
}

#[test]
fn rules_allow_what_they_name() {
    let chat = Chat::new([
        calls(&[
            ("write", json!({"path": "new.txt", "content": "x"})),
            ("shell", json!({"command": "touch ran"})),
            ("shell", json!({"command": "touch ran $(touch hidden)"})),
        ]),
        Step::text("Done."),
    ]);
    let allow = ["-p", "Do it.", "--allow", "write", "--allow", "shell: touch"];
    let (status, _, notes) = chat.run("anthropic", &allow);
    assert_eq!(status, 0, "{notes}");
    let there = |name: &str| chat.world.home.join("project").join(name).exists();
    assert_eq!([there("new.txt"), there("ran"), there("hidden")], [true, true, false]);
}

#[test]
fn rules_of_the_settings_count_and_those_that_refuse_hold_against_all() {
    let chat = Chat::new([
        calls(&[
            ("write", json!({"path": "new.txt", "content": "x"})),
            ("shell", json!({"command": "touch ran"})),
            ("shell", json!({"command": "true && touch refused"})),
            ("shell", json!({"command": "touch never"})),
        ]),
        Step::text("Done."),
    ]);
    let settings =
        "[chat]\nallow = [\"write\", \"shell: touch ran\"]\ndeny = [\"shell: touch refused\"]";
    chat.world.write(".config/epitome/epitome.toml", settings);
    let args = ["-p", "Do it.", "--allow", "shell: touch", "--deny", "shell: touch never"];
    let (status, _, notes) = chat.run("anthropic", &args);
    assert_eq!(status, 0, "{notes}");
    let there = |name: &str| chat.world.home.join("project").join(name).exists();
    let all = ["new.txt", "ran", "refused", "never"].map(there);
    assert_eq!(all, [true, true, false, false]);
    let sent = chat.sent().pop().expect("a request");
    assert_eq!(sent.matches("Not permitted: the user does not allow").count(), 2, "{sent}");

    chat.world.write(".config/epitome/epitome.toml", "[chat]\nallow = [\"everything\"]");
    let (status, _, notes) = chat.run("anthropic", &["-p", "Do it."]);
    assert_eq!(status, 2, "{notes}");
    assert!(
        notes.contains("epitome.toml:2:") && notes.contains("`everything` is no rule"),
        "{notes}"
    );
}

#[test]
fn skills_are_named_and_loaded_and_without_a_user_there_is_nobody_to_ask() {
    let chat = Chat::new([
        calls(&[
            ("skill", json!({"name": "release"})),
            ("ask", json!({"question": "Which version?", "choices": ["1.1", "2.0"]})),
        ]),
        Step::text("I assume 1.1."),
    ]);
    let text = "---\ndescription: How to release\n---\nNever on a Friday.\n";
    chat.world.write(".config/epitome/skills/release/SKILL.md", text);
    let (status, stdout, notes) = chat.run("anthropic", &["-p", "Release it.", "--json"]);
    assert_eq!(status, 0, "{notes}");
    let sent = chat.sent();
    assert!(sent[0].contains("- release: How to release"), "{}", sent[0]);
    assert!(sent[1].contains("Never on a Friday."), "{}", sent[1]);
    assert!(sent[1].contains("No user is present."), "{}", sent[1]);
    let events = events(&stdout);
    let asked = events.iter().find(|event| event["event"] == "question").expect("it is shown");
    assert_eq!(asked["question"], "Which version?");
    assert_eq!(asked["choices"], json!(["1.1", "2.0"]));
}

#[test]
fn a_task_has_a_session_of_its_own_and_its_events_are_in_the_stream() {
    // The scripted server needs messages of this length.
    let prompt = format!("What does src/lib.rs return? {}", "Take your time. ".repeat(40));
    let work = json!({"description": "look", "prompt": prompt});
    let chat = Chat::new([
        calls(&[("task", work)]),
        calls(&[
            ("read", json!({"path": "src/lib.rs"})),
            ("write", json!({"path": "x", "content": ""})),
        ]),
        Step::text("It returns 41."),
        Step::text("41, as the task says."),
    ]);
    let (status, stdout, notes) = chat.run("anthropic", &["-p", "What does it return?", "--json"]);
    assert_eq!(status, 0, "{notes}");
    assert_eq!(chat.refused(), Vec::<String>::new());
    let events = events(&stdout);
    let inner: Vec<&Value> =
        events.iter().filter(|it| it["event"] == "task").map(|it| &it["inner"]).collect();
    let names: Vec<&str> = inner.iter().filter_map(|it| it["event"].as_str()).collect();
    for name in ["session", "user", "call", "permission", "permitted", "result", "done"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let result = events.iter().rfind(|it| it["event"] == "result").expect("an event");
    assert_eq!((&result["error"], &result["text"]), (&json!(false), &json!("It returns 41.")));
    assert_eq!(events.last().expect("an event")["cost"]["requests"], 4);
    let sent = chat.sent();
    // The sub-agent has neither `task` nor `ask`; the session sees only its answer.
    let tools =
        |at: usize| ["\"name\":\"task\"", "\"name\":\"ask\""].map(|it| sent[at].contains(it));
    assert_eq!((tools(0), tools(1)), ([true, true], [false, false]));
    assert!(sent[2].contains("Not permitted"), "{}", sent[2]);
    assert!(
        sent[3].contains("It returns 41.") && !sent[3].contains("pub fn answer"),
        "{}",
        sent[3]
    );
    assert!(!sent[1].contains("What does it return?"), "{}", sent[1]);
    // `last` is the session, not the task; other commands know both.
    let id = |event: &Value| event["id"].as_str().expect("an id").to_owned();
    let (session, task) = (id(&events[0]), id(inner[0]));
    assert_eq!(task, format!("{}-1", session.replace("chat-", "task-")));
    let log = chat.world.run(&["inspect", &task]);
    assert!(log.contains(&format!("epitome · {task} · version 1")), "{log}");
    chat.server.play(Script::new([Step::text("Yes.")]));
    let (_, stdout, _) = chat.run("anthropic", &["-p", "Sure?", "--resume", "last", "--json"]);
    assert!(stdout.contains(&format!("\"id\":\"{session}\"")), "{stdout}");
}

#[test]
fn events_are_lines_of_json_and_a_session_goes_on_where_it_ended() {
    let chat = Chat::new([
        calls(&[("read", json!({"path": "src/lib.rs"}))]),
        Step::text("It returns 41."),
    ]);
    let (status, stdout, _) = chat.run("anthropic", &["-p", "What does it return?", "--json"]);
    assert_eq!(status, 0);
    let first = events(&stdout);
    let names: Vec<&str> = first.iter().filter_map(|it| it["event"].as_str()).collect();
    let mut expect = vec!["session", "user", "usage", "call", "result", "usage"];
    expect.extend(names.iter().filter(|name| **name == "text"));
    expect.extend(["usage", "done"]);
    assert_eq!(names, expect);
    let done = first.last().expect("an event");
    assert_eq!((&done["ended"], &done["answer"]), (&"answered".into(), &"It returns 41.".into()));
    let id = first[0]["id"].as_str().expect("an id").to_owned();

    chat.server.play(Script::new([Step::text("Because of line 2.")]));
    let (status, answer, notes) = chat.run("openai", &["-p", "Why?", "--resume", &id]);
    assert_eq!((status, &*answer), (0, "Because of line 2.\n"), "{notes}");
    let sent = chat.sent().pop().expect("a request");
    assert!(sent.contains("What does it return?") && sent.contains("It returns 41."), "{sent}");
    assert_eq!(chat.refused(), Vec::<String>::new());
    // Other commands know the session.
    let log = chat.world.run(&["inspect", &id]);
    assert!(log.contains(&format!("epitome · {id} · version 1")), "{log}");
}

#[test]
fn failures_have_statuses_and_an_answer_that_was_cut_off_goes_on() {
    let chat = Chat::new([
        Step::text("The first half, ").ending(Ending::Length),
        Step::text("and the second."),
    ]);
    let (status, answer, _) = chat.run("anthropic", &["-p", "Tell me."]);
    assert_eq!((status, &*answer), (0, "The first half, and the second.\n"));
    for (args, expect) in [
        (&["-p", "x", "--resume", "none"][..], (3, "there is no session none")),
        (&["-p", "x", "--budget", "0"], (4, "the budget of $0.00 is spent")),
        (&["-p", "x", "--recipe", "none"], (2, "none")),
        (&["-p", "x", "--window", "0"], (2, "the context window is 0 tokens")),
        (&["-p", "x", "--window", "100"], (2, "nothing fits into it")),
        (&["-p", "x", "--allow", "everything"], (2, "is no rule")),
    ] {
        let (status, _, notes) = chat.run("anthropic", args);
        assert!(status == expect.0 && notes.contains(expect.1), "{args:?}: {status} {notes}");
    }
    // Invalid options are refused before a key is read, and before anything is written.
    let before = chat.world.tree();
    for (args, expect) in [
        (&["-p", "x", "--resume", "none"][..], (3, "there is no session none")),
        (&["-p", " "], (2, "the message is empty")),
        (&["-p", "", "--window", "9"], (2, "the message is empty")),
    ] {
        let args = [&["chat", "--model", "anthropic/claude-haiku-4-5"][..], args].concat();
        let output = chat.world.output(&args);
        let notes = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(expect.0), "{args:?}: {notes}");
        assert!(notes.contains(expect.1), "{args:?}: {notes}");
    }
    assert_eq!(chat.world.tree(), before);
    let down = Rough::start([Answer::Status(401, Vec::new(), "{}".into())]).expect("a server");
    let mut command = chat.world.command(&["chat", "-p", "x", "--model", "compatible/x"]);
    let output = command.args(["--base-url", &down.url()]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn without_a_terminal_there_must_be_a_message() {
    let chat = Chat::new([]);
    for args in [&[][..], &["--json"]] {
        let (status, _, notes) = chat.run("anthropic", args);
        assert_eq!(status, 2, "{notes}");
        assert!(notes.contains("epitome chat -p MESSAGE"), "{notes}");
    }
}

#[test]
fn the_demo_shows_every_stage_and_leaves_nothing_behind() {
    let world = World::new();
    let temporary = world.home.join("temporary");
    std::fs::create_dir(&temporary).expect("a folder");
    let mut command = world.command(&["chat", "--demo"]);
    let output = command.env("TMPDIR", &temporary).output().expect("the program runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(0), "{text}");
    // Paths are different in every run.
    let text = text.replace(&*temporary.to_string_lossy(), "TEMPORARY");
    let names = text.lines().find_map(|line| line.split_once("TEMPORARY/")?.1.split_once('/'));
    let text = text.replace(names.expect("the folder of the demo").0, "DEMO");
    insta::assert_snapshot!(text);
    assert_eq!(std::fs::read_dir(&temporary).expect("a folder").count(), 0);
    assert!(!world.home.join(".local").exists(), "it keeps no session");
}

#[test]
fn a_killed_session_is_resumed_with_every_call_closed() {
    let chat = Chat::new([
        calls(&[
            ("read", json!({"path": "src/lib.rs"})),
            ("shell", json!({"command": "echo $$ > pid; exec sleep 600"})),
        ]),
        Step::text("never said"),
    ]);
    let mut command = chat.command("anthropic", &["-p", "Wait for it.", "--yes", "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program runs");
    // The result of the first call is in the log before it is shown.
    let stdout = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    let mut lines = std::io::BufRead::lines(stdout).map(|line| line.expect("a line"));
    let result = lines.find(|line| line.contains(r#""event":"result""#));
    assert!(result.is_some_and(|line| line.contains("pub fn answer")));
    let pid = chat.world.home.join("project/pid");
    let begun = || std::fs::read_to_string(&pid).ok().filter(|pid| pid.ends_with('\n'));
    let pid = std::iter::repeat_with(begun).flatten().next().expect("it is asked until it is");
    // `kill` of the standard library is SIGKILL.
    child.kill().expect("it is killed");
    child.wait().expect("it has ended");
    // The chat that started the command was killed, so the test must end it.
    Command::new("kill").args(["-9", pid.trim()]).status().expect("it is ended");

    chat.server.play(Script::new([Step::text("I see.")]));
    let (status, answer, notes) = chat.run("anthropic", &["-p", "Go on.", "--resume", "last"]);
    assert_eq!((status, &*answer), (0, "I see.\n"), "{notes}");
    let sent = chat.sent().pop().expect("a request");
    assert!(sent.contains("pub fn answer") && sent.contains("the program ended"), "{sent}");
    assert_eq!(chat.refused(), Vec::<String>::new());
}

/// Settings with a scripted MCP server.
fn mcp_settings(chat: &Chat, more: &str) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../chat/tests/mcp/server.sh");
    let marker = chat.world.home.join("started");
    let (script, marker) = (json!(script), json!(marker));
    format!(
        "[chat.mcp.srv]\ncommand = \"sh\"\nargs = [{script}]\n\
         env = {{ STARTED = {marker}, TOKEN = \"${{MY_TOKEN}}\" }}\n{more}"
    )
}

#[test]
fn tools_of_an_mcp_server_are_offered_asked_about_and_called() {
    let chat = Chat::new([
        calls(&[
            ("mcp__srv__echo", json!({"text": "hello from afar"})),
            ("mcp__srv__env", json!({})),
            ("mcp__srv__fail", json!({})),
            ("mcp__srv__none", json!({})),
        ]),
        Step::text("It answers."),
    ]);
    chat.world.write(".config/epitome/epitome.toml", mcp_settings(&chat, ""));
    let args = ["-p", "Ask it.", "--allow", "mcp__srv", "--deny", "mcp__srv__fail", "--json"];
    let mut command = chat.command("anthropic", &args);
    let output = command.env("MY_TOKEN", "s3cr3t").output().expect("the program runs");
    let stdout = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(chat.refused(), Vec::<String>::new());
    let sent = chat.sent();
    assert!(
        sent[0].contains("\"mcp__srv__echo\"") && sent[0].contains("Does echo."),
        "{}",
        sent[0]
    );
    let results: Vec<(Value, Value)> = events(&stdout)
        .iter()
        .filter(|event| event["event"] == "result")
        .map(|event| (event["error"].clone(), event["text"].clone()))
        .collect();
    let there = |error: bool, text: &str| {
        results.iter().any(|it| it.0 == error && it.1.as_str().is_some_and(|it| it.contains(text)))
    };
    assert!(there(false, "hello from afar"), "{results:?}");
    // The server does not get the provider's key in its environment, nor the project as its folder.
    let home = chat.world.home.canonicalize().expect("a folder");
    assert!(there(false, &format!("s3cr3t  {}", home.display())), "{results:?}");
    assert!(there(true, "Not permitted: the user does not allow to call fail"), "{results:?}");
    assert!(there(true, "there is no tool `mcp__srv__none`"), "{results:?}");

    chat.server.play(Script::new([
        calls(&[("mcp__srv__echo", json!({"text": "hello"}))]),
        Step::text("I may not."),
    ]));
    let mut command = chat.command("anthropic", &["-p", "Once more."]);
    let output = command.env("MY_TOKEN", "s3cr3t").output().expect("the program runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(chat.sent().pop().expect("a request").contains("needs a yes of the user"));
}

#[test]
fn a_project_starts_no_mcp_server_and_one_that_fails_is_told() {
    let chat = Chat::new([Step::text("Hello."), Step::text("Hello."), Step::text("Hello.")]);
    let marker = chat.world.home.join("started");
    chat.world.write("project/.epitome.toml", mcp_settings(&chat, ""));
    let (status, _, notes) = chat.run("anthropic", &["-p", "Hello."]);
    assert_eq!(status, 0, "{notes}");
    assert!(notes.contains("chat.mcp, which only your own settings can"), "{notes}");
    assert!(!marker.exists());
    assert!(!chat.sent()[0].contains("mcp__srv"));

    let own = "[chat.mcp.srv]\ncommand = \"no-such-program-anywhere\"\n";
    chat.world.write(".config/epitome/epitome.toml", own);
    let (status, _, notes) = chat.run("anthropic", &["-p", "Hello."]);
    assert_eq!(status, 0, "{notes}");
    assert!(
        notes.contains("MCP server srv has no tools: no-such-program-anywhere cannot"),
        "{notes}"
    );
    let own = "[chat.mcp.srv]\ncommand = \"sh\"\nenv = { A = \"${NOT_SET}\" }\n";
    chat.world.write(".config/epitome/epitome.toml", own);
    let (status, _, notes) = chat.run("anthropic", &["-p", "Hello."]);
    assert_eq!(status, 0, "{notes}");
    let unset = "MCP server srv has no tools: the variable NOT_SET is not set";
    assert!(notes.contains(unset), "{notes}");
    for (settings, expect) in [
        ("[chat.mcp.srv]\nargs = []\n", "chat.mcp.srv has neither `command` nor `url`"),
        ("[chat.mcp.\"a b\"]\ncommand = \"sh\"\n", "`a b` is no name of a server"),
        ("[chat.mcp.srv]\ncomand = \"sh\"\n", "chat.mcp is"),
    ] {
        chat.world.write(".config/epitome/epitome.toml", settings);
        let (status, _, notes) = chat.run("anthropic", &["-p", "Hello."]);
        assert!(status == 2 && notes.contains(expect), "{settings}: {status} {notes}");
    }
}
