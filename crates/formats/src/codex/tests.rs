use epitome_model::{At, Block, Edit, Entry, Fault, Role, Source, Summary, Transcript, Verb};
use serde_json::{Value, json};

use super::FORMAT;
use crate::Native;

/// The bytes of a rollout of these records, each a type and a payload; its transcript and its
/// faults.
fn read(records: &[(&str, Value)]) -> (Vec<u8>, Transcript, Vec<Fault>) {
    let mut bytes = Vec::new();
    for (n, (kind, payload)) in records.iter().enumerate() {
        let record = json!({"timestamp": "t", "ordinal": n, "type": kind, "payload": payload});
        bytes.extend(format!("{record}\n").into_bytes());
    }
    let mut faults = Vec::new();
    let transcript = (FORMAT.read)(&bytes, &mut faults);
    (bytes, transcript, faults)
}

fn item(payload: Value) -> (&'static str, Value) {
    ("response_item", payload)
}

fn message(role: &str, texts: &[&str]) -> Value {
    let content: Vec<Value> =
        texts.iter().map(|text| json!({"type": "input_text", "text": text})).collect();
    json!({"type": "message", "role": role, "content": content})
}

fn user(text: &str) -> (&'static str, Value) {
    item(message("user", &[text]))
}

fn reasoning() -> Value {
    json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "c2ln"})
}

fn words(bytes: &[u8], entry: &Entry) -> String {
    let block_texts = entry.blocks.iter().map(|block| match block {
        Block::Text(text) => text.read(&bytes).into_owned(),
        Block::Summary(text) => format!("summary: {}", text.read(&bytes)),
        Block::Thinking(thinking) if thinking.removable => "old thinking".into(),
        Block::Thinking(_) => "thinking".into(),
        Block::Call(call) => {
            let text = |text: &epitome_model::Text| text.read(&bytes).into_owned();
            let target = call.target.as_ref().map(text).unwrap_or_default();
            let fields = call.fields.iter().map(|it| format!(" {}={}", it.name, text(&it.text)));
            format!("{:?} {} {target}:{}", call.kind, call.name, fields.collect::<String>())
        }
        Block::Output(output) => {
            let kind = match (output.error, output.from_user) {
                (true, _) => "error",
                (_, true) => "answer",
                _ => "output",
            };
            format!("{kind}: {}", output.text(&bytes))
        }
        Block::Image(image) => {
            format!("{} {}", image.media, String::from_utf8_lossy(&bytes.at(image.data)))
        }
        Block::Opaque(span) => format!("opaque {}", span.len()),
        _ => "?".into(),
    });
    block_texts.collect::<Vec<_>>().join(" + ")
}

/// Checks the role and the text of each message that a resume of a rollout sends.
fn check(records: &[(&str, Value)], expect: &[(Role, &str)]) {
    let (bytes, transcript, _) = read(records);
    let sent: Vec<(Role, String)> =
        transcript.context().map(|(_, entry)| (entry.role, words(&bytes, entry))).collect();
    let sent: Vec<(Role, &str)> = sent.iter().map(|(role, words)| (*role, &**words)).collect();
    assert_eq!(sent, expect);
}

#[test]
fn the_head_is_that_of_the_session() {
    let (_, transcript, faults) = read(&[
        ("session_meta", json!({"id": "a", "cwd": "/p", "cli_version": "0.169.0"})),
        ("session_meta", json!({"id": "forked-from", "cwd": "/q"})),
        user("<environment_context>\n"),
        user("  Fix it.\nSoon."),
        ("world_state", json!({})),
        ("unheard_of", json!({})),
        item(json!({"type": "unheard_of"})),
    ]);
    let head = transcript.head;
    let head_fields = [head.id, head.cwd, head.title, head.version];
    assert_eq!(
        head_fields.map(Option::unwrap).map(String::from),
        ["a", "/p", "Fix it. Soon.", "0.169.0"]
    );
    let lines: Vec<u64> = faults.iter().map(|fault| fault.line).collect();
    assert_eq!(lines, [6, 7]);
}

#[test]
fn words_of_the_user_are_told_from_what_codex_says() {
    let mut tagged = message("user", &["# AGENTS.md instructions for me"]);
    tagged["internal_chat_message_metadata_passthrough"] =
        json!({"content_item_kinds": ["user.text"]});
    let mut user_message = message("user", &["plain words"]);
    user_message["internal_chat_message_metadata_passthrough"] =
        json!({"content_item_kinds": ["environments.environment_context"]});
    let summary = "Another language model started to solve this problem and produced a summary of \
                   its thinking process. Done.";
    check(
        &[
            item(message("developer", &["rules"])),
            item(message("user", &["# AGENTS.md instructions for /p", "<environment_context>"])),
            item(message("user", &["<environment_context>", "and mine"])),
            item(tagged),
            item(user_message),
            user(summary),
            item(message("assistant", &["hello"])),
        ],
        &[
            (Role::System, "rules"),
            (Role::System, "# AGENTS.md instructions for /p + <environment_context>"),
            (Role::User, "<environment_context> + and mine"),
            (Role::User, "# AGENTS.md instructions for me"),
            (Role::System, "plain words"),
            (Role::System, &format!("summary: {summary}")),
            (Role::Assistant, "hello"),
        ],
    );
}

#[test]
fn arguments_are_found_within_their_strings() {
    let function = |name: &str, arguments: &str| {
        item(json!({"type": "function_call", "name": name, "arguments": arguments,
            "call_id": "c"}))
    };
    let custom = |name: &str, input: &str| {
        item(json!({"type": "custom_tool_call", "name": name, "input": input, "call_id": "c"}))
    };
    let patch = "*** Begin Patch\n*** Update File: a.rs\n+\"x\"\n*** End Patch";
    check(
        &[
            function("exec_command", r#"{"cmd":"echo \"a\\n\" é","workdir":"/p"}"#),
            function("shell", r#"{"command":["bash","-lc","ls"]}"#),
            function("mcp_tool", r#"{"n":1,"note":"a\tb"}"#),
            function("exec_command", r#"{"cmd":"open"#),
            item(json!({"type": "local_shell_call", "call_id": "c", "action":
                {"type": "exec", "command": ["ls", "-l"]}})),
            custom("apply_patch", patch),
            custom("exec", "tools.exec_command({cmd: `a\\nb`}); text('it\\'s ' + 1)"),
            custom("exec", &format!("tools.apply_patch({})", json!(patch))),
            custom("exec", "1 + 1"),
            custom("exec", "[epitome k7f3a9c2: 3 lines]\ntools.exec_command({cmd: 'x'})"),
        ],
        &[
            (Role::Assistant, "Shell exec_command echo \"a\\n\" é: cmd=echo \"a\\n\" é"),
            (Role::Assistant, "Shell shell ls: command[0]=bash command[1]=-lc command[2]=ls"),
            (Role::Assistant, "Other mcp_tool a\tb: note=a\tb"),
            (Role::Assistant, "Shell exec_command :"),
            (Role::Assistant, "Shell local_shell ls: command[0]=ls command[1]=-l"),
            (Role::Assistant, &format!("Patch apply_patch a.rs: input={patch}")),
            (Role::Assistant, "Shell exec a\nb: exec_command.cmd=a\nb text=it's "),
            (Role::Assistant, &format!("Patch exec a.rs: apply_patch={patch}")),
            (Role::Assistant, "Shell exec : input=1 + 1"),
            (
                Role::Assistant,
                "Shell exec : input=[epitome k7f3a9c2: 3 lines]\ntools.exec_command({cmd: 'x'})",
            ),
        ],
    );
}

#[test]
fn events_tell_which_calls_failed() {
    let call = |id: &str, name: &str| {
        item(json!({"type": "function_call", "name": name, "arguments": "{}", "call_id": id}))
    };
    let output =
        |id: &str| item(json!({"type": "function_call_output", "call_id": id, "output": "x"}));
    check(
        &[
            call("a", "exec_command"),
            call("b", "exec_command"),
            call("c", "request_user_input"),
            (
                "event_msg",
                json!({"type": "item_completed", "item": {"type": "CommandExecution",
                "id": "a", "status": "failed", "exit_code": 3}}),
            ),
            output("a"),
            output("b"),
            output("c"),
            ("event_msg", json!({"type": "exec_command_end", "call_id": "b", "exit_code": 0})),
        ],
        &[
            (Role::Assistant, "Shell exec_command :"),
            (Role::Assistant, "Shell exec_command :"),
            (Role::Assistant, "Ask request_user_input :"),
            (Role::Tool, "error: x"),
            (Role::Tool, "output: x"),
            (Role::Tool, "answer: x"),
        ],
    );
}

#[test]
fn a_compaction_replaces_what_stood_before() {
    let history = json!([message("user", &["first"]), reasoning(), {"type": "compaction",
        "encrypted_content": "x"}]);
    check(
        &[
            user("first"),
            item(message("assistant", &["gone"])),
            ("compacted", json!({"message": "", "replacement_history": history})),
            item(reasoning()),
            user("then"),
            item(reasoning()),
        ],
        &[
            (Role::User, "first"),
            (Role::Assistant, "old thinking"),
            (Role::System, "opaque 45"),
            (Role::Assistant, "old thinking"),
            (Role::User, "then"),
            (Role::Assistant, "thinking"),
        ],
    );
    check(
        &[
            item(message("developer", &["rules"])),
            user("first"),
            item(message("assistant", &["gone"])),
            ("compacted", json!({"message": "all of it"})),
        ],
        &[(Role::User, "first"), (Role::System, "summary: all of it")],
    );
}

#[test]
fn turns_that_are_taken_back_are_not_sent() {
    let back = |n: u64| ("event_msg", json!({"type": "thread_rolled_back", "num_turns": n}));
    let turns = [
        item(message("developer", &["rules"])),
        user("one"),
        item(message("assistant", &["1"])),
        user("two"),
    ];
    let rules = (Role::System, "rules");
    let cases: [(u64, &[(Role, &str)]); 3] = [
        (0, &[rules, (Role::User, "one"), (Role::Assistant, "1"), (Role::User, "two")]),
        (1, &[rules, (Role::User, "one"), (Role::Assistant, "1")]),
        (9, &[rules]),
    ];
    for (n, expect) in cases {
        check(&[&turns[..], &[back(n)]].concat(), expect);
    }
}

#[test]
fn pictures_are_the_base64_in_their_url() {
    let picture = |url: &str| {
        item(json!({"type": "message", "role": "user", "content": [
            {"type": "input_image", "image_url": url}]}))
    };
    check(
        &[picture("data:image/png;base64,QUJD"), picture("https://example.org/a.png")],
        &[(Role::User, "image/png QUJD"), (Role::User, "opaque 62")],
    );
}

#[test]
fn a_response_is_a_run_of_what_the_model_says() {
    let call = |id: &str| {
        item(json!({"type": "function_call", "name": "f", "arguments": "{}", "call_id": id}))
    };
    let output =
        |id: &str| item(json!({"type": "function_call_output", "call_id": id, "output": ""}));
    let usage = json!({"usage": {"input_tokens": 7, "output_tokens": 2}});
    let (_, transcript, _) = read(&[
        ("turn_context", json!({"model": "gpt-5.5"})),
        item(reasoning()),
        call("a"),
        call("b"),
        ("token_usage_record", usage),
        output("a"),
        output("b"),
        item(json!({"type": "other"})),
        call("c"),
    ]);
    let responses: Vec<_> = transcript
        .entries()
        .map(|(_, entry)| (entry.group.as_deref(), entry.usage.map(|usage| usage.input)))
        .collect();
    let (one, two) = (Some("1"), Some("2"));
    assert_eq!(
        responses,
        [
            (one, None),
            (one, None),
            (one, Some(7)),
            (None, None),
            (None, None),
            (two, None),
            (two, None)
        ]
    );
    assert!(transcript.entries().all(|(_, entry)| {
        entry.model.as_deref() == (entry.role == Role::Assistant).then_some("gpt-5.5")
    }));
}

#[test]
fn the_state_of_the_world_is_told_again_behind_a_record() {
    let state = |full: bool, n: u64| ("world_state", json!({"full": full, "state": {"n": n}}));
    let call = json!({"type": "function_call", "name": "exec_command", "arguments": "{}",
        "call_id": "a"});
    let output = json!({"type": "function_call_output", "call_id": "a", "output": "long"});
    let (bytes, transcript, _) =
        read(&[state(true, 1), state(true, 2), item(call), state(false, 3), item(output)]);
    let edit =
        Edit { at: At::Block { item: 4, block: 0 }, verb: Verb::Replace("x".into()), pass: "test" };
    let Some(Native::Append(append)) = FORMAT.native else { panic!("Codex has such a record") };
    let appended = (append.write)(&transcript, &bytes, &[edit]).expect("it can be written");
    let records: Vec<Value> = String::from_utf8(appended)
        .expect("text")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a record"))
        .collect();
    let states: Vec<_> = records
        .iter()
        .map(|it| (it["ordinal"].as_u64(), it["type"].as_str(), &it["payload"]["state"]["n"]))
        .collect();
    let (null, two, three) = (json!(null), json!(2), json!(3));
    assert_eq!(
        states,
        [
            (Some(5), Some("compacted"), &null),
            (Some(6), Some("world_state"), &two),
            (Some(7), Some("world_state"), &three),
        ]
    );
    assert_eq!(records[0]["payload"]["replacement_history"][1]["output"], "x");
}

/// The records of a rollout with a call, its `result` and its usage, after the result was replaced
/// with `left`.
fn rewritten(result: &str, left: &str) -> Vec<Value> {
    let usage = json!({"input_tokens": 900, "output_tokens": 100, "total_tokens": 1000});
    let info = json!({"total_token_usage": usage, "last_token_usage": usage});
    let output = json!({"type": "function_call_output", "call_id": "1", "output": result});
    let call = json!({"type": "function_call", "call_id": "1", "name": "exec_command",
        "arguments": "{\"cmd\":\"ls\"}"});
    let count = json!({"type": "token_count", "info": info, "rate_limits": {"primary": null}});
    let records = [user("list"), item(call), item(output), ("event_msg", count)];
    let (bytes, transcript, _) = read(&records);
    let crate::Writing::Splices(write) = FORMAT.writing else { panic!("it is written") };
    let at = At::Block { item: 2, block: 0 };
    let edit = Edit { at, verb: Verb::Replace(left.into()), pass: "results" };
    let splices = write(&transcript, &bytes, &[edit]).expect("it can be written");
    let mut after = bytes.clone();
    for (splice, _) in splices.iter().rev() {
        after.splice(splice.span.start as usize..splice.span.end as usize, splice.with.to_vec());
    }
    assert!(after.len() < bytes.len(), "it is smaller");
    let lines = after.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("JSON")).collect()
}

#[test]
fn what_was_billed_stays_and_the_smaller_context_is_told_behind_it() {
    let records = rewritten(&"a".repeat(3000), "gone");
    assert_eq!(records.len(), 5);
    let info = |n: usize| &records[n]["payload"]["info"];
    assert_eq!(info(3)["last_token_usage"]["total_tokens"], 1000);
    assert_eq!(info(4)["total_token_usage"], info(3)["total_token_usage"]);
    let last_usage = &info(4)["last_token_usage"];
    assert_eq!((&last_usage["input_tokens"], &last_usage["output_tokens"]), (&json!(0), &json!(0)));
    let total = last_usage["total_tokens"].as_u64().expect("a number");
    assert!((50..400).contains(&total), "{total}");
}

#[test]
fn a_count_that_takes_more_than_was_saved_is_not_written() {
    assert_eq!(rewritten(&"a".repeat(200), "gone").len(), 4);
}

/// The new records of a summary that keeps the last `kept` items, and what a resume sends after
/// these records were appended.
fn summarised(records: &[(&str, Value)], kept: usize) -> (Vec<Value>, Vec<(Role, String)>) {
    let (mut bytes, transcript, _) = read(records);
    let kept = &transcript.context[transcript.context.len() - kept..];
    let tokens = epitome_model::Tokens(9);
    let summary = Summary { text: "It went \"well\".".into(), kept: kept.to_vec(), tokens };
    let write = FORMAT.summarise.expect("Codex has such a record");
    let lines = write(&transcript, &bytes, &summary).expect("it can be written");
    let added: Vec<Value> = lines
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("a record"))
        .collect();
    bytes.extend(lines);
    let mut faults = Vec::new();
    let transcript = (FORMAT.read)(&bytes, &mut faults);
    assert_eq!(faults, []);
    let sent = transcript.context().map(|(_, entry)| (entry.role, words(&bytes, entry)));
    (added, sent.collect())
}

#[test]
fn a_summary_stands_where_codex_puts_its_own() {
    let call = json!({"type": "function_call", "name": "f", "arguments": "{}", "call_id": "a"});
    let output = json!({"type": "function_call_output", "call_id": "a", "output": "done"});
    let records = [
        item(json!({"type": "additional_tools", "tools": []})),
        item(message("developer", &["rules"])),
        user("<environment_context>here"),
        user("one"),
        ("compacted", json!({"message": "of old"})),
        item(reasoning()),
        item(message("assistant", &["1"])),
        user("<turn_aborted>"),
        ("world_state", json!({"full": true})),
        ("turn_context", json!({"model": "m"})),
        user("two"),
        item(reasoning()),
        item(call),
        item(output),
    ];
    let (added, sent) = summarised(&records, 4);
    let kinds: Vec<&str> = added.iter().filter_map(|record| record["type"].as_str()).collect();
    assert_eq!(kinds, ["compacted", "world_state", "turn_context"]);
    let message = added[0]["payload"]["message"].as_str().expect("a text");
    assert!(message.ends_with("your own analysis:\nIt went \"well\"."), "{message}");
    let summary = format!("summary: {message}");
    let sent: Vec<(Role, &str)> = sent.iter().map(|(role, words)| (*role, &**words)).collect();
    assert_eq!(
        sent,
        [
            (Role::User, "one"),
            (Role::System, &*summary),
            (Role::User, "two"),
            (Role::Assistant, "thinking"),
            (Role::Assistant, "Other f :"),
            (Role::Tool, "output: done"),
        ]
    );
}

#[test]
fn a_summary_leaves_what_codex_tells_at_the_beginning_and_the_newest_words() {
    let long = "w".repeat(50_000);
    let records = [
        item(json!({"type": "additional_tools", "tools": []})),
        item(message("developer", &["rules"])),
        user("<environment_context>here"),
        user("oldest"),
        user(&long),
        user("<turn_aborted>"),
        item(message("assistant", &["1"])),
        user("newer"),
        user(&long.replace('w', "v")),
    ];
    let (_, sent) = summarised(&records, 0);
    let begins: Vec<(Role, &str)> =
        sent.iter().map(|(role, words)| (*role, &words[..words.len().min(5)])).collect();
    let tools =
        format!("opaque {}", json!({"type": "additional_tools", "tools": []}).to_string().len());
    assert_eq!(sent[0].1, tools);
    assert_eq!(
        begins[1..],
        [
            (Role::System, "rules"),
            (Role::System, "<envi"),
            (Role::User, "newer"),
            (Role::User, "vvvvv"),
            (Role::System, "summa"),
        ]
    );
}
