//! `epitome chat --acp` with a scripted editor.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use model_server::{Ending, Script, Step};
use serde_json::{Value, json};

use super::{Chat, calls};

/// A client of the protocol.
struct Editor {
    child: Child,
    to: Option<ChildStdin>,
    from: Lines<BufReader<ChildStdout>>,
    requests: u64,
    /// The method of each request.
    methods: Vec<String>,
    schema: Value,
    /// The user's answers about calls.
    answers: VecDeque<&'static str>,
    /// The updates that the agent sent.
    updates: Vec<Value>,
    /// The questions that the agent asked.
    asked: Vec<Value>,
    project: String,
}

impl Editor {
    fn start(chat: &Chat, args: &[&str]) -> Editor {
        let mut command = chat.command("anthropic", &[&["--acp"], args].concat());
        // The session's folder is the one that the editor sends.
        command.current_dir(&chat.world.home);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program runs");
        let project = chat.world.home.join("project").canonicalize().expect("a folder");
        let from = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Editor {
            to: child.stdin.take(),
            child,
            from,
            requests: 0,
            methods: Vec::new(),
            schema: serde_json::from_str(include_str!("acp.schema.json")).expect("a schema"),
            answers: VecDeque::new(),
            updates: Vec::new(),
            asked: Vec::new(),
            project: project.display().to_string(),
        }
    }

    fn initialize(&mut self) -> Value {
        let capabilities = json!({"fs": {"readTextFile": true, "writeTextFile": true}});
        self.initialize_with(capabilities)
    }

    fn initialize_with(&mut self, capabilities: Value) -> Value {
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        self.request("initialize", params)
    }

    /// Starts a session. Returns its id.
    fn begin(&mut self) -> String {
        self.initialize();
        let begun = self.request("session/new", json!({"cwd": self.project, "mcpServers": []}));
        begun["result"]["sessionId"].as_str().expect("an id").to_owned()
    }

    fn send(&mut self, message: &Value) {
        let to = self.to.as_mut().expect("the stream is open");
        writeln!(to, "{message}").expect("it reads");
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request. Returns the response.
    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin_request(method, params);
        self.response(id)
    }

    fn begin_request(&mut self, method: &str, params: Value) -> u64 {
        self.requests += 1;
        let id = self.requests;
        self.methods.push(method.to_owned());
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn prompt(&mut self, session: &str, text: &str) -> u64 {
        // The scripted server needs long messages; the commands in these tests have no arguments.
        let text = match text.strip_prefix('/') {
            Some(_) => text.to_owned(),
            None => format!("{text} {}", "Take your time. ".repeat(40)),
        };
        let prompt = json!([{"type": "text", "text": text}]);
        self.begin_request("session/prompt", json!({"sessionId": session, "prompt": prompt}))
    }

    /// Sends a message. Returns the reason for the end of the turn.
    fn turn(&mut self, session: &str, text: &str) -> String {
        let id = self.prompt(session, text);
        let response = self.response(id);
        let reason = response["result"]["stopReason"].as_str();
        reason.unwrap_or_else(|| panic!("{response}")).to_owned()
    }

    /// Reads messages until a request is answered.
    fn response(&mut self, id: u64) -> Value {
        loop {
            let message = self.read();
            if message["id"] == id && message["method"].is_null() {
                return message;
            }
        }
    }

    /// Reads a message, and answers it if it is a question.
    fn read(&mut self) -> Value {
        let line = self.from.next().expect("the agent has not ended").expect("a line");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        self.check(&message);
        match message["method"].as_str() {
            Some("session/update") => self.updates.push(message["params"]["update"].clone()),
            Some("elicitation/create") => {
                let answer = self.answers.pop_front().expect("the user answers");
                let result = json!({"action": "accept", "content": {"answer": answer}});
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
            }
            Some("session/request_permission") => {
                self.asked.push(message["params"].clone());
                if let Some(answer) = self.answers.pop_front() {
                    let outcome = json!({"outcome": "selected", "optionId": answer});
                    let result = json!({"outcome": outcome});
                    self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
                }
            }
            _ => {}
        }
        message
    }

    /// Validates a message of the agent against the schema of the protocol's own library.
    fn check(&self, message: &Value) {
        let sent = (&message["params"], &message["result"]);
        let (name, value) = match (message["method"].as_str(), message["id"].as_u64()) {
            (Some("$/cancel_request"), _) => return,
            (Some(method), _) => (method, sent.0),
            (None, Some(id)) if message["error"].is_null() => {
                let at = usize::try_from(id).expect("a small number") - 1;
                (&*self.methods[at], sent.1)
            }
            (None, _) => return,
        };
        let schema = json!({
            "$ref": self.schema["messages"][name]["$ref"], "$defs": self.schema["$defs"],
        });
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let faults: Vec<String> = validator.iter_errors(value).map(|it| it.to_string()).collect();
        assert_eq!(faults, Vec::<String>::new(), "{name}: {value}");
    }

    /// Reads messages until an update is received.
    fn until(&mut self, update: impl Fn(&Value) -> bool) {
        let is_it = |message: &Value| update(&message["params"]["update"]);
        while !is_it(&self.read()) {}
    }

    /// The updates of the agent, a line each; the chunks of a message are joined. Values that
    /// depend on the length of names are left out.
    fn updates(&mut self) -> String {
        let mut lines: Vec<Value> = Vec::new();
        for mut update in std::mem::take(&mut self.updates) {
            if update["sessionUpdate"] == "usage_update" {
                continue;
            }
            match lines.last_mut() {
                Some(last)
                    if update["messageId"].is_string()
                        && last["messageId"] == update["messageId"] =>
                {
                    let whole = format!(
                        "{}{}",
                        last["content"]["text"].as_str().expect("text"),
                        update["content"]["text"].as_str().expect("text")
                    );
                    update["content"]["text"] = whole.into();
                    *last = update;
                }
                _ => lines.push(update),
            }
        }
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        text.replace(&"Take your time. ".repeat(40), "").replace(&self.project, "PROJECT")
    }

    /// Closes the stream. Returns the exit status, and the number of the last lines that are no
    /// JSON.
    fn end(mut self) -> (Option<i32>, usize) {
        self.to = None;
        let rest = self.from.by_ref().map(|line| line.expect("a line"));
        let rest = rest.filter(|line| serde_json::from_str::<Value>(line).is_err()).count();
        (self.child.wait().expect("it has ended").code(), rest)
    }
}

#[test]
fn an_editor_sees_a_turn_and_its_user_is_asked() {
    let edit = json!({"path": "src/lib.rs", "old_string": "41", "new_string": "42"});
    let items = json!([{"text": "Fix it", "state": "doing"}, {"text": "Test it", "state": "open"}]);
    let chat = Chat::new([
        calls(&[("todo", json!({"items": items}))]),
        calls(&[("read", json!({"path": "src/lib.rs"}))]),
        calls(&[("edit", edit)]),
        calls(&[("shell", json!({"command": "echo one"}))]),
        calls(&[("shell", json!({"command": "echo one"}))]),
        calls(&[("write", json!({"path": "new.txt", "content": "x"}))]),
        Step::text("It returns **42** now."),
    ]);
    let mut editor = Editor::start(&chat, &[]);
    let mut initialized = editor.initialize()["result"].take();
    initialized["agentInfo"]["version"] = "VERSION".into();
    insta::assert_snapshot!(format!("{initialized:#}"), @r#"
    {
      "agentCapabilities": {
        "loadSession": true,
        "mcpCapabilities": {
          "http": true
        },
        "promptCapabilities": {
          "embeddedContext": true
        },
        "sessionCapabilities": {
          "close": {},
          "resume": {}
        }
      },
      "agentInfo": {
        "name": "epitome",
        "title": "epitome",
        "version": "VERSION"
      },
      "authMethods": [],
      "protocolVersion": 1
    }
    "#);
    let session = editor.begin();
    assert!(session.starts_with("chat-"), "{session}");
    editor.answers.extend(["once", "always", "never"]);
    assert_eq!(editor.turn(&session, "Fix the answer."), "end_turn");
    insta::assert_snapshot!(editor.updates(), @r#"
    {"availableCommands":[{"description":"make the context small now; FOCUS weighs more","input":{"hint":"[FOCUS]"},"name":"compact"},{"description":"what fills the window","name":"context"},{"description":"take the last compaction back","name":"undo"},{"description":"what was shortened, and how the model gets it back","name":"losses"},{"description":"let another model answer, as PROVIDER/MODEL","input":{"hint":"[MODEL]"},"name":"model"},{"description":"keep the context small by another recipe","input":{"hint":"[RECIPE]"},"name":"recipe"},{"description":"write the session as Markdown, or as a page (.html), without secrets","input":{"hint":"[FILE]"},"name":"export"},{"description":"send no request once this much is spent","input":{"hint":"[DOLLARS]"},"name":"budget"}],"sessionUpdate":"available_commands_update"}
    {"entries":[{"content":"Fix it","priority":"medium","status":"in_progress"},{"content":"Test it","priority":"medium","status":"pending"}],"sessionUpdate":"plan"}
    {"kind":"read","locations":[{"path":"PROJECT/src/lib.rs"}],"name":"read","rawInput":{"path":"src/lib.rs"},"sessionUpdate":"tool_call","status":"in_progress","title":"read src/lib.rs","toolCallId":"toolu_ccf2d5641cfb4b7ac2a9898f"}
    {"content":[{"content":{"text":"```\npub fn answer() -> u32 {\n    41\n}\n```","type":"text"},"type":"content"}],"sessionUpdate":"tool_call_update","status":"completed","toolCallId":"toolu_ccf2d5641cfb4b7ac2a9898f"}
    {"content":[{"newText":"pub fn answer() -> u32 {\n    42\n}\n","oldText":"pub fn answer() -> u32 {\n    41\n}\n","path":"PROJECT/src/lib.rs","type":"diff"}],"kind":"edit","locations":[{"path":"PROJECT/src/lib.rs"}],"name":"edit","rawInput":{"new_string":"42","old_string":"41","path":"src/lib.rs"},"sessionUpdate":"tool_call","status":"in_progress","title":"edit src/lib.rs","toolCallId":"toolu_8937dc1c41d59c985e392afe"}
    {"sessionUpdate":"tool_call_update","status":"in_progress","toolCallId":"toolu_8937dc1c41d59c985e392afe"}
    {"sessionUpdate":"tool_call_update","status":"completed","toolCallId":"toolu_8937dc1c41d59c985e392afe"}
    {"kind":"execute","locations":[],"name":"shell","rawInput":{"command":"echo one"},"sessionUpdate":"tool_call","status":"in_progress","title":"echo one","toolCallId":"toolu_38cdbcb1fc514964bdfa9d73"}
    {"sessionUpdate":"tool_call_update","status":"in_progress","toolCallId":"toolu_38cdbcb1fc514964bdfa9d73"}
    {"content":[{"content":{"text":"```\none\n```","type":"text"},"type":"content"}],"sessionUpdate":"tool_call_update","status":"completed","toolCallId":"toolu_38cdbcb1fc514964bdfa9d73"}
    {"kind":"execute","locations":[],"name":"shell","rawInput":{"command":"echo one"},"sessionUpdate":"tool_call","status":"in_progress","title":"echo one","toolCallId":"toolu_7f05d030cd4a0999ace4cb49"}
    {"content":[{"content":{"text":"```\none\n```","type":"text"},"type":"content"}],"sessionUpdate":"tool_call_update","status":"completed","toolCallId":"toolu_7f05d030cd4a0999ace4cb49"}
    {"content":[{"newText":"x","oldText":null,"path":"PROJECT/new.txt","type":"diff"}],"kind":"edit","locations":[{"path":"PROJECT/new.txt"}],"name":"write","rawInput":{"content":"x","path":"new.txt"},"sessionUpdate":"tool_call","status":"in_progress","title":"write new.txt","toolCallId":"toolu_fb740ac747c22915a3d1db99"}
    {"content":[{"content":{"text":"```\nNot permitted: the user does not allow to write PROJECT/new.txt.\n```","type":"text"},"type":"content"}],"sessionUpdate":"tool_call_update","status":"failed","toolCallId":"toolu_fb740ac747c22915a3d1db99"}
    {"content":{"text":"It returns **42** now.","type":"text"},"messageId":"m1","sessionUpdate":"agent_message_chunk"}
    "#);
    // The second `echo one` is not asked about.
    let asked: Vec<&Value> = editor.asked.iter().map(|it| &it["toolCall"]["name"]).collect();
    assert_eq!(asked, ["edit", "shell", "write"]);
    assert_eq!(editor.asked[0]["sessionId"], *session);
    insta::assert_snapshot!(format!("{:#}", editor.asked[1]["options"]), @r#"
    [
      {
        "kind": "allow_once",
        "name": "Allow",
        "optionId": "once"
      },
      {
        "kind": "allow_always",
        "name": "Always allow this command",
        "optionId": "always"
      },
      {
        "kind": "reject_once",
        "name": "Refuse",
        "optionId": "no"
      },
      {
        "kind": "reject_always",
        "name": "Never allow this command",
        "optionId": "never"
      }
    ]
    "#);
    let project = chat.world.home.join("project");
    let text = std::fs::read_to_string(project.join("src/lib.rs")).expect("a file");
    assert!(text.contains("42") && !project.join("new.txt").exists());
    assert_eq!(chat.refused(), Vec::<String>::new());
    assert_eq!(editor.end(), (Some(0), 0));
}

#[test]
fn an_editor_opens_a_session_again_and_goes_on() {
    let chat = Chat::new([
        calls(&[("read", json!({"path": "src/lib.rs"}))]),
        Step::text("It returns 41."),
    ]);
    let mut editor = Editor::start(&chat, &[]);
    let session = editor.begin();
    assert_eq!(editor.turn(&session, "What does it return?"), "end_turn");
    editor.end();

    chat.server.play(Script::new([Step::text("Because of line 2."), Step::text("Yes.")]));
    let mut editor = Editor::start(&chat, &[]);
    editor.initialize();
    let named = json!({"sessionId": session, "cwd": editor.project, "mcpServers": []});
    let loaded = editor.request("session/load", named.clone());
    assert_eq!(loaded["result"]["configOptions"][0]["currentValue"], "anthropic/scripted");
    insta::assert_snapshot!(editor.updates(), @r#"
    {"content":{"text":"What does it return? ","type":"text"},"messageId":"m1","sessionUpdate":"user_message_chunk"}
    {"kind":"read","locations":[{"path":"PROJECT/src/lib.rs"}],"name":"read","rawInput":{"path":"src/lib.rs"},"sessionUpdate":"tool_call","status":"in_progress","title":"read src/lib.rs","toolCallId":"toolu_3ce6f74d48adbb3dfa0a7ee8"}
    {"content":[{"content":{"text":"```\npub fn answer() -> u32 {\n    41\n}\n```","type":"text"},"type":"content"}],"sessionUpdate":"tool_call_update","status":"completed","toolCallId":"toolu_3ce6f74d48adbb3dfa0a7ee8"}
    {"content":{"text":"It returns 41.","type":"text"},"messageId":"m2","sessionUpdate":"agent_message_chunk"}
    "#);
    assert_eq!(editor.turn(&session, "Why?"), "end_turn");
    let sent = chat.sent().pop().expect("a request");
    assert!(sent.contains("What does it return?") && sent.contains("It returns 41."), "{sent}");
    // Opened again in the same program, without the earlier messages.
    editor.updates.clear();
    assert!(editor.request("session/resume", named)["error"].is_null());
    assert_eq!(editor.turn(&session, "Sure?"), "end_turn");
    assert!(!editor.updates().contains("41"));
    assert_eq!(chat.refused(), Vec::<String>::new());
    assert_eq!(editor.end(), (Some(0), 0));
}

#[test]
fn a_turn_is_cancelled_and_what_runs_ends_with_it() {
    let wait = || calls(&[("shell", json!({"command": "echo $$ > pid; exec sleep 600"}))]);
    let chat = Chat::new([wait(), Step::text("I see."), wait()]);
    let pid = chat.world.home.join("project/pid");
    let is_there = |pid: &str| {
        let mut kill = Command::new("kill");
        kill.args(["-0", pid.trim()]).stderr(Stdio::null()).status().expect("it is run").success()
    };
    let begun = || {
        let read = || std::fs::read_to_string(&pid).ok().filter(|pid| pid.ends_with('\n'));
        std::iter::repeat_with(read).flatten().next().expect("it is asked until it is")
    };
    let runs = |update: &Value| update["status"] == "in_progress" && update["title"].is_null();
    let mut editor = Editor::start(&chat, &[]);
    let session = editor.begin();
    editor.answers.extend(["once", "once"]);
    let turn = editor.prompt(&session, "Wait for it.");
    editor.until(runs);
    let first = begun();
    editor.notify("session/cancel", json!({"sessionId": session}));
    let response = editor.response(turn);
    assert_eq!(response["result"]["stopReason"], "cancelled", "{response}");
    let failed = editor.updates.iter().any(|update| update["status"] == "failed");
    assert!(failed, "{:?}", editor.updates);
    assert_eq!(editor.turn(&session, "Go on."), "end_turn");
    // The command is killed at the next check for the stop.
    while is_there(&first) {}

    // The editor disconnects while a command runs.
    std::fs::remove_file(&pid).expect("a file");
    editor.prompt(&session, "Once more.");
    editor.until(runs);
    let second = begun();
    assert_eq!(editor.end(), (Some(0), 0));
    assert!(!is_there(&second));
    assert_eq!(chat.refused(), Vec::<String>::new());
}

#[test]
fn commands_and_options_of_an_editor_change_the_session() {
    let chat = Chat::new([Step::text("Hello."), Step::text("").ending(Ending::Refused)]);
    let mut editor = Editor::start(&chat, &["--budget", "5"]);
    let session = editor.begin();
    for (text, expect) in [
        ("/undo", "there is no compaction to take back"),
        ("/context", "- tools: "),
        ("/recipe ion", "\"currentValue\":\"ion\""),
        ("/losses", " are sent"),
        ("/nothing", "there is no command /nothing"),
        ("/resume x", "an editor opens sessions by itself"),
        ("/help", "- /compact [FOCUS]: make the context small now"),
        ("/budget", "of $5.00 are spent"),
    ] {
        assert_eq!(editor.turn(&session, text), "end_turn", "{text}");
        let updates = editor.updates();
        assert!(updates.contains(expect), "{text}: {updates}");
    }
    let choose =
        |id: &str, value: &str| json!({"sessionId": session, "configId": id, "value": value});
    let method = "session/set_config_option";
    let chosen = editor.request(method, choose("recipe", "s06"));
    assert_eq!(chosen["result"]["configOptions"][1]["currentValue"], "s06", "{chosen}");
    let unknown = editor.request(method, choose("recipe", "none"));
    assert_eq!(unknown["result"]["configOptions"][1]["currentValue"], "s06", "{unknown}");
    let wrong = editor.request(method, choose("colour", "red"));
    assert_eq!(wrong["error"]["message"], "there is no option colour");
    assert_eq!(editor.turn(&session, "Hello?"), "end_turn");
    let turn = editor.prompt(&session, "And now?");
    let failed = editor.response(turn);
    assert_eq!(failed["error"]["message"], "the model declined to answer", "{failed}");

    let closed = editor.request("session/close", json!({"sessionId": session}));
    assert!(closed["error"].is_null(), "{closed}");
    let turn = editor.prompt(&session, "Still there?");
    let gone = editor.response(turn);
    assert_eq!(gone["error"]["message"], format!("no session {session} is open"));
    for (cwd, id, expect) in [
        ("project", None, "project is no absolute path of a folder"),
        (&*editor.project.clone(), Some("chat-none"), "there is no session chat-none"),
    ] {
        let method = if id.is_some() { "session/load" } else { "session/new" };
        let params = json!({"cwd": cwd, "mcpServers": [], "sessionId": id});
        let refused = editor.request(method, params);
        assert_eq!(refused["error"]["message"], expect);
    }
    assert_eq!(editor.end(), (Some(0), 0));
}

#[test]
fn an_editor_with_forms_asks_its_user_and_one_that_knows_compactions_is_told_of_them() {
    let ask = json!({"question": "Which version?", "choices": ["1.1", "2.0"]});
    let chat = Chat::new([
        calls(&[("ask", ask)]),
        calls(&[("read", json!({"path": "src/long.rs"}))]),
        Step::text("It is 2.0."),
    ]);
    chat.world.write("project/src/long.rs", "fn one() { two(); three(); }\n".repeat(400));
    let mut editor = Editor::start(&chat, &["--recipe", "s06"]);
    let session = json!({"compaction": {}, "notices": {}});
    editor.initialize_with(json!({"elicitation": {"form": {}}, "session": session}));
    let begun = editor.request("session/new", json!({"cwd": editor.project, "mcpServers": []}));
    let session = begun["result"]["sessionId"].as_str().expect("an id").to_owned();
    editor.answers.push_back("2.0");
    assert_eq!(editor.turn(&session, "Release it."), "end_turn");
    assert!(chat.sent()[1].contains("\"2.0\""), "{}", chat.sent()[1]);
    editor.updates.clear();
    assert_eq!(editor.turn(&session, "/compact"), "end_turn");
    let updates = std::mem::take(&mut editor.updates);
    let kinds: Vec<&str> =
        updates.iter().filter_map(|update| update["sessionUpdate"].as_str()).collect();
    assert!(kinds.contains(&"compaction_update") || kinds.contains(&"notice"), "{updates:?}");
    assert!(!kinds.contains(&"agent_message_chunk"), "{updates:?}");
    assert_eq!(editor.end(), (Some(0), 0));
}

#[test]
fn what_is_no_message_is_refused_and_the_connection_goes_on() {
    let chat = Chat::new([]);
    let mut editor = Editor::start(&chat, &[]);
    let to = editor.to.as_mut().expect("the stream is open");
    to.write_all(b"\n{]\n\xff\n").expect("it reads");
    for _ in 0..2 {
        assert_eq!(editor.read()["error"]["code"], -32700);
    }
    let unknown = editor.request("session/fork", json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let wrong = editor.request("session/new", json!({"cwd": 7}));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    editor.notify("nothing/known", json!({}));
    assert_eq!(editor.initialize()["result"]["protocolVersion"], 1);
    assert_eq!(editor.end(), (Some(0), 0));
}

#[test]
fn mcp_servers_that_an_editor_names_are_started_and_asked_about() {
    let chat = Chat::new([
        calls(&[("mcp__my-server__echo", json!({"text": "hello from afar"}))]),
        Step::text("It answers."),
    ]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../chat/tests/mcp/server.sh");
    let mut editor = Editor::start(&chat, &[]);
    editor.initialize();
    let servers = json!([
        {"name": "my server", "command": "sh", "args": [script], "env": []},
        {"name": "old", "type": "sse", "url": "http://127.0.0.1:1", "headers": []},
    ]);
    let begun =
        editor.request("session/new", json!({"cwd": editor.project, "mcpServers": servers}));
    let session = begun["result"]["sessionId"].as_str().expect("an id").to_owned();
    editor.answers.push_back("once");
    assert_eq!(editor.turn(&session, "Ask it."), "end_turn");
    assert_eq!(editor.asked[0]["toolCall"]["name"], "mcp__my-server__echo");
    let sent = chat.sent().pop().expect("a request");
    assert!(sent.contains("hello from afar"), "{sent}");
    assert_eq!(chat.refused(), Vec::<String>::new());
    assert_eq!(editor.end(), (Some(0), 0));
}
