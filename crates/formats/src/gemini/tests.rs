mod pictures;

use serde_json::{Value, json};

use epitome_model::{
    At, Block, Edit, Entry, FieldRemainder, HiddenField, Item, Role, Source, Summary, Tokens,
    ToolKind, Transcript, Verb,
};

use super::{FORMAT, read};
use crate::Native;

fn log(records: &[Value]) -> Vec<u8> {
    let header = json!({"sessionId": "s-1", "projectHash": "p", "kind": "main"});
    let lines = std::iter::once(&header).chain(records).map(|record| format!("{record}\n"));
    lines.collect::<String>().into_bytes()
}

fn read_log(records: &[Value]) -> (Transcript, Vec<u8>) {
    let bytes = log(records);
    (read::read(&bytes, &mut ()), bytes)
}

/// Each entry that a resume sends, as one line.
fn sent(transcript: &Transcript, source: &dyn Source) -> Vec<String> {
    transcript.context().map(|(_, entry)| describe(entry, source)).collect()
}

fn describe(entry: &Entry, source: &dyn Source) -> String {
    let block = |block: &Block| match block {
        Block::Text(text) => text.read(source).into_owned(),
        Block::Summary(text) => format!("summary {}", text.read(source)),
        Block::Thinking(_) => "signature".into(),
        Block::Call(call) => format!("call {}", call.id),
        Block::Output(output) => format!("{} {}", output.call, output.text(source)),
        Block::Repeated(again) => format!("again {}", again.output.call),
        Block::Image(_) => "picture".into(),
        _ => "opaque".into(),
    };
    let block_texts: Vec<String> = entry.blocks.iter().map(block).collect();
    format!("{:?}: {}", entry.role, block_texts.join(" + "))
}

fn check(records: &[Value], expect: &[&str]) {
    let (transcript, bytes) = read_log(records);
    assert_eq!(sent(&transcript, &bytes), expect);
}

fn message(id: &str, kind: &str, content: Value) -> Value {
    json!({"id": id, "type": kind, "content": content})
}

fn set(messages: &[Value]) -> Value {
    json!({"$set": {"messages": messages}})
}

fn response(id: &str, text: &str) -> Value {
    json!({"functionResponse": {"id": id, "name": "glob", "response": {"output": text}}})
}

fn function_call(id: &str) -> Value {
    json!({"functionCall": {"id": id, "name": "glob", "args": {"pattern": "*"}}})
}

/// A response with one call and its result.
fn called(id: &str, content: Value, result: Value) -> Value {
    let call = json!({"id": "a", "name": "glob", "args": {"pattern": "*"}, "result": result,
        "resultDisplay": "shown"});
    json!({"id": id, "type": "gemini", "content": content, "toolCalls": [call],
        "thoughts": [{"subject": "", "description": "why"}]})
}

#[test]
fn a_result_that_stands_twice_is_said_again() {
    check(
        &[
            message("1", "user", json!("go")),
            called("2", json!("I look."), json!([response("a", "x.rs")])),
            message("3", "user", json!([response("a", "x.rs")])),
        ],
        &["User: go", "Assistant: I look. + call a", "Tool: a x.rs", "Tool: again a"],
    );
}

#[test]
fn results_that_differ_are_both_results() {
    check(
        &[
            called("2", json!(""), json!([response("a", "x.rs")])),
            message("3", "user", json!([response("a", "y.rs")])),
        ],
        &["Assistant: call a", "Tool: a x.rs", "Tool: a y.rs"],
    );
}

#[test]
fn stubs_that_say_no_more_than_a_number_are_not_the_same() {
    let counted = response("a", "[output: 3 lines]");
    check(
        &[called("2", json!(""), json!([counted])), message("3", "user", json!([counted]))],
        &["Assistant: call a", "Tool: a [output: 3 lines]", "Tool: a [output: 3 lines]"],
    );
}

#[test]
fn a_message_written_again_stands_where_it_stood_and_counts_once() {
    let records = [
        message("1", "gemini", json!("half")),
        message("2", "user", json!("and")),
        message("1", "gemini", json!("whole")),
    ];
    check(&records, &["Assistant: whole", "User: and"]);
    let (transcript, bytes) = read_log(&records);
    let Item::Hidden(kept) = &transcript.items[1] else { panic!("it is a copy") };
    let [HiddenField { name: "content", value, left: FieldRemainder::EmptyText }] =
        kept.hidden_fields[..]
    else {
        panic!("{:?}", kept.hidden_fields)
    };
    assert_eq!(*bytes.at(value), *b"\"half\"");
}

#[test]
fn a_log_that_grows_has_the_same_records_at_its_beginning() {
    let records = [
        message("1", "user", json!("go")),
        called("2", json!("I look."), json!([response("a", "x.rs")])),
        message("3", "user", json!([response("a", "x.rs")])),
        called("2", json!("I look."), json!([response("a", "[stub]")])),
        message("3", "user", json!([])),
    ];
    let places = |n: usize| -> Vec<epitome_model::Record> {
        read_log(&records[..n]).0.items.iter().map(Item::record).collect()
    };
    let whole = places(records.len());
    for n in 0..records.len() {
        let part = places(n);
        assert_eq!(whole[..part.len()], part, "{n} records");
    }
    check(&records, &["User: go", "Assistant: I look. + call a", "Tool: a [stub]", "Tool: "]);
}

#[test]
fn what_is_taken_back_is_not_sent_but_read() {
    let records = [
        message("1", "user", json!("one")),
        message("2", "user", json!("two")),
        json!({"$rewindTo": "2"}),
        message("3", "user", json!("three")),
    ];
    check(&records, &["User: one", "User: three"]);
    assert_eq!(read_log(&records).0.entries().count(), 3);
}

#[test]
fn a_list_that_another_repeats_is_a_copy_but_for_its_accounting() {
    let both = [message("1", "user", json!("one")), message("2", "gemini", json!("two"))];
    let records = [set(&both), set(&both), message("3", "user", json!("three"))];
    check(&records, &["User: one", "Assistant: two", "User: three"]);
    let (transcript, bytes) = read_log(&records);
    let Item::Hidden(kept) = &transcript.items[1] else { panic!("it is a copy") };
    let hidden_fields: Vec<_> = kept
        .hidden_fields
        .iter()
        .map(|field| (field.name, bytes.at(field.value).into_owned()))
        .collect();
    assert_eq!(hidden_fields, [("content", b"\"one\"".to_vec()), ("content", b"\"two\"".to_vec())]);
}

#[test]
fn a_list_with_something_that_nothing_repeats_is_read() {
    let one = message("1", "user", json!("one"));
    let two = message("2", "user", json!("two"));
    let records = [set(&[one.clone(), two]), set(&[one])];
    check(&records, &["User: one"]);
    assert_eq!(read_log(&records).0.entries().count(), 2);
}

#[test]
fn texts_of_the_agent_and_its_commands_are_not_sent() {
    let context = "<session_context>\nThis\n- **Workspace Directories:**\n  - /p/q\n";
    let records = [
        message("1", "user", json!([{"text": context}])),
        message("2", "user", json!("/stats")),
        message("3", "user", json!("  ?")),
        message("4", "info", json!("note")),
        message("5", "user", json!("go")),
    ];
    check(&records, &["User: go"]);
    let head = read_log(&records).0.head;
    assert_eq!(head.cwd.as_deref(), Some("/p/q"));
    assert_eq!(head.title.as_deref(), Some("go"));
    assert_eq!(head.id.as_deref(), Some("s-1"));
}

#[test]
fn calls_in_the_content_count_before_those_beside_it() {
    let inside = json!([{"text": "why", "thought": true}, {"text": "I look."}, function_call("a")]);
    let records = [called("2", inside, json!([response("a", "x")]))];
    check(&records, &["Assistant: I look. + call a", "Tool: a x"]);
    let names: Vec<&str> =
        read_log(&records).0.items[1].hidden_fields().iter().map(|field| field.name).collect();
    assert_eq!(names, ["thought", "resultDisplay", "args", "thoughts"]);
}

#[test]
fn calls_beside_a_thought_are_not_sent_and_the_thought_stays() {
    let records =
        [called("2", json!([{"text": "t", "thought": true}]), json!([response("a", "x")]))];
    check(&records, &["Assistant: ", "Tool: a x"]);
    let (transcript, bytes) = read_log(&records);
    let names: Vec<&str> =
        transcript.items[1].hidden_fields().iter().map(|field| field.name).collect();
    assert_eq!(names, ["resultDisplay", "thoughts"]);
    let violations = FORMAT.invariants.check(&transcript, &bytes);
    assert_eq!(violations.len(), 1, "{violations:?}");
}

#[test]
fn a_signature_is_a_block_of_its_own_unless_it_holds_up_a_text_of_nothing() {
    let mut call = function_call("a");
    call["thoughtSignature"] = json!("c2ln");
    let nothing = json!({"text": "", "thoughtSignature": "c2ln"});
    check(
        &[message("2", "gemini", json!([call, nothing]))],
        &["Assistant: signature + call a + opaque"],
    );
}

#[test]
fn calls_and_results_without_ids_follow_each_other() {
    let call = json!({"functionCall": {"name": "glob", "args": {}}});
    let result = json!({"functionResponse": {"name": "glob", "response": {"output": "x"}}});
    check(
        &[
            message("1", "gemini", json!([call, call])),
            message("2", "user", json!([result, result])),
        ],
        &["Assistant: call glob#1 + call glob#2", "Tool: glob#1 x + glob#2 x"],
    );
}

#[test]
fn a_summary_of_the_agents_own_is_one() {
    let thanks = "Got it. Thanks for the additional context!";
    check(
        &[
            message("0", "user", json!("before")),
            set(&[
                message("1", "user", json!([{"text": "all of it"}])),
                message("2", "gemini", json!([{"text": thanks}])),
            ]),
            message("3", "user", json!("on")),
        ],
        &["System: summary all of it", &format!("System: {thanks}"), "User: on"],
    );
}

#[test]
fn a_picture_beside_a_result_is_no_word_of_the_user() {
    let picture = json!({"inlineData": {"mimeType": "image/png", "data": "QUJD"}});
    let stub = json!({"text": "[epitome k7f3a9c2: image/png, 3 B]"});
    let roles = |content: Value| -> Vec<Role> {
        let (transcript, _) = read_log(&[message("1", "user", content)]);
        transcript.context().map(|(_, entry)| entry.role).collect()
    };
    assert_eq!(roles(json!([response("a", "x"), picture])), [Role::Tool]);
    assert_eq!(roles(json!([picture])), [Role::Tool]);
    assert_eq!(roles(json!([stub])), [Role::Tool]);
    assert_eq!(roles(json!([])), [Role::Tool]);
    assert_eq!(roles(json!([{"text": "see"}, picture])), [Role::User]);
}

#[test]
fn the_one_object_of_older_versions_is_read_over_all_its_lines() {
    let messages = [message("1", "user", json!("one")), message("2", "gemini", json!("two"))];
    let whole = json!({"sessionId": "s-1", "projectHash": "p", "messages": messages});
    let pretty = serde_json::to_string_pretty(&whole).unwrap().into_bytes();
    let line = format!("{whole}\n").into_bytes();
    for bytes in [pretty, line] {
        assert!(read::sniff(&bytes), "it is known");
        let transcript = read::read(&bytes, &mut ());
        assert_eq!(sent(&transcript, &bytes), ["User: one", "Assistant: two"]);
    }
}

#[test]
fn other_sessions_are_not_taken_for_one() {
    let cases: &[(&[u8], bool)] = &[
        (b"{\"sessionId\":\"s\",\"projectHash\":\"p\"}\n", true),
        (b"garbage\n{\"sessionId\":\"s\",\"projectHash\":\"p\"}\n", true),
        (b"{\"sessionId\":\"s\",\"projectHash\":\"p\",\"messages\":[{\"id\":\"1", true),
        (b"{\n  \"sessionId\": \"s\",\n  \"projectHash\": \"p\",\n", true),
        (b"{\"type\":\"user\",\"sessionId\":\"s\",\"uuid\":\"u\"}\n", false),
        (b"{\"type\":\"session\",\"id\":\"s\"}\n", false),
        (b"", false),
    ];
    for (head, expect) in cases {
        assert_eq!(read::sniff(head), *expect, "{}", String::from_utf8_lossy(head));
    }
}

#[test]
fn tools_are_known_by_what_they_do() {
    let cases = [
        ("read_file", json!({"file_path": "a.rs"}), ToolKind::Read, Some("a.rs"), vec![]),
        (
            "write_file",
            json!({"file_path": "a", "content": "c"}),
            ToolKind::Write,
            Some("a"),
            vec!["content"],
        ),
        (
            "replace",
            json!({"file_path": "a", "old_string": "o", "new_string": "n"}),
            ToolKind::Edit,
            Some("a"),
            vec!["new_string", "old_string"],
        ),
        (
            "run_shell_command",
            json!({"command": "ls", "description": "d"}),
            ToolKind::Shell,
            Some("ls"),
            vec!["command"],
        ),
        ("search_file_content", json!({"pattern": "x"}), ToolKind::Search, Some("x"), vec![]),
        (
            "invoke_agent",
            json!({"agent_name": "g", "prompt": "p"}),
            ToolKind::Task,
            Some("g"),
            vec!["prompt"],
        ),
        ("mcp_s_t", json!({"note": "x"}), ToolKind::Other, Some("x"), vec!["note"]),
    ];
    for (name, args, kind, target, fields) in cases {
        let call = json!({"functionCall": {"id": "a", "name": name, "args": args}});
        let (transcript, bytes) = read_log(&[message("1", "gemini", json!([call]))]);
        let entry = transcript.items[1].entry().expect("a response");
        let [Block::Call(call)] = entry.blocks.as_slice() else { panic!("{name}") };
        let found = call.target.as_ref().map(|text| text.read(&bytes).into_owned());
        let names: Vec<&str> = call.fields.iter().map(|field| &*field.name).collect();
        assert_eq!((call.kind, found.as_deref(), names), (kind, target, fields), "{name}");
    }
}

#[test]
fn what_the_wire_refuses_is_told() {
    let invariants = |records: &[Value]| -> Vec<String> {
        let (transcript, bytes) = read_log(records);
        FORMAT.invariants.check(&transcript, &bytes).iter().map(ToString::to_string).collect()
    };
    let go = message("1", "user", json!("go"));
    let call = message("2", "gemini", json!([function_call("a")]));
    let result = message("3", "user", json!([response("a", "x")]));
    let on = message("4", "user", json!("on"));
    assert_eq!(
        invariants(&[go.clone(), call.clone(), result.clone(), on.clone()]),
        [] as [&str; 0]
    );
    assert_eq!(invariants(&[go.clone(), call.clone()]), [] as [&str; 0], "it may still run");
    assert_eq!(
        invariants(&[go.clone(), call.clone(), on.clone()]),
        ["line 3: the call a has no result in the turn that follows (pairing)"]
    );
    assert_eq!(
        invariants(&[go.clone(), result.clone(), on]),
        ["line 2: a result without its call a in the turn before (pairing)"]
    );
    let twice = message("5", "user", json!([response("a", "x")]));
    let thrice = message("6", "user", json!([response("a", "x")]));
    let mut answered = vec![go.clone(), call, result, twice];
    assert_eq!(invariants(&answered), [] as [&str; 0], "the agent sends results twice");
    answered.push(thrice);
    assert_eq!(invariants(&answered), ["line 3: the call a is answered more than twice (pairing)"]);
    let empty = message("2", "gemini", json!([{"text": ""}]));
    assert_eq!(invariants(&[go, empty]), ["line 3: an empty text (empty text)"]);
}

/// The records in the bytes that were appended to a log.
fn behind(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn edit(at: At, verb: Verb) -> Edit {
    Edit { at, verb, pass: "results" }
}

fn shortened(item: usize) -> Edit {
    edit(At::Block { item, block: 0 }, Verb::Replace("short".into()))
}

#[test]
fn a_shortened_message_is_written_again_whole() {
    let (transcript, bytes) = read_log(&[
        message("1", "user", json!("go")),
        called("2", json!("I look."), json!([response("a", "x.rs")])),
        message("3", "user", json!([response("a", "x.rs")])),
    ]);
    let again = edit(At::Block { item: 4, block: 0 }, Verb::Drop);
    let display = edit(At::HiddenField { item: 2, field: 0 }, Verb::Drop);
    let append = own_records();
    let written = append(&transcript, &bytes, &[display, shortened(3), again]).unwrap();
    let mut short = called("2", json!("I look."), json!([response("a", "short")]));
    short["toolCalls"][0].as_object_mut().unwrap().remove("resultDisplay");
    assert_eq!(behind(&written), [short, message("3", "user", json!([]))]);
    assert_eq!(append(&transcript, &bytes, &[]).unwrap(), b"");
}

#[test]
fn nothing_stands_behind_the_one_object_of_older_versions() {
    let list = [
        message("1", "gemini", json!([function_call("a")])),
        message("2", "user", json!([response("a", "x.rs")])),
    ];
    let whole = json!({"sessionId": "s-1", "projectHash": "p", "messages": list});
    for bytes in [whole.to_string().into_bytes(), serde_json::to_vec_pretty(&whole).unwrap()] {
        let transcript = read::read(&bytes, &mut ());
        let why = "it is one object of an older version, not a log";
        let append = own_records();
        let refused = append(&transcript, &bytes, &[shortened(1)]).unwrap_err();
        assert_eq!((refused.at, refused.why), (shortened(1).at, why));
        let summary = Summary { text: "all".into(), kept: Vec::new(), tokens: Tokens(9) };
        let summarise = FORMAT.summarise.expect("it can be summarised");
        assert_eq!(summarise(&transcript, &bytes, &summary), Err(why));
    }
}

#[test]
fn a_summary_is_written_as_the_agents_own() {
    let context = message("0", "user", json!([{"text": "<session_context>\nnow"}]));
    let kept = called("3", json!("I look."), json!([response("a", "x.rs")]));
    let records = [
        set(std::slice::from_ref(&context)),
        message("1", "user", json!("go")),
        message("2", "gemini", json!("first")),
        message("2b", "info", json!("note")),
        kept.clone(),
    ];
    let (transcript, mut bytes) = read_log(&records);
    let summarise = FORMAT.summarise.expect("it can be summarised");
    let end = [5, 6];
    let summary = Summary { text: "All of it.".into(), kept: end.to_vec(), tokens: Tokens(9) };
    let written = summarise(&transcript, &bytes, &summary).unwrap();
    let [set] = behind(&written).try_into().expect("one record");
    let messages = set["$set"]["messages"].as_array().unwrap();
    let [first, said, thanks, last] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!((first, last), (&context, &kept));
    let text = "<state_snapshot>\nAll of it.\n</state_snapshot>";
    let parts = |message: &Value| [message["type"].clone(), message["content"].clone()];
    assert_eq!(parts(said), [json!("user"), json!([{"text": text}])]);
    let answer = "Got it. Thanks for the additional context!";
    assert_eq!(parts(thanks), [json!("gemini"), json!([{"text": answer}])]);

    bytes.extend(written);
    let after = read::read(&bytes, &mut ());
    let summary = format!("System: summary {text}");
    let expect = [
        &summary,
        "System: Got it. Thanks for the additional context!",
        "Assistant: I look. + call a",
        "Tool: a x.rs",
    ];
    assert_eq!(sent(&after, &bytes), expect);

    let within = Summary { text: "All".into(), kept: end[1..].to_vec(), tokens: Tokens(9) };
    let why = "what is kept begins with results of calls that are not kept";
    assert_eq!(summarise(&transcript, &bytes, &within), Err(why));
}

#[test]
fn a_summary_is_never_taken_for_a_command() {
    let wrapped = |text: &str| format!("<state_snapshot>\n{text}\n</state_snapshot>");
    let own = "<state_snapshot>\n<overall_goal>g</overall_goal>\n</state_snapshot>";
    let hidden = format!("/compress\n{own}");
    for (text, expect) in [
        ("/quit", wrapped("/quit")),
        (" ? who", wrapped(" ? who")),
        ("<session_context> x", wrapped("<session_context> x")),
        (own, own.into()),
        (&hidden, wrapped(&hidden)),
    ] {
        let (transcript, bytes) = read_log(&[message("1", "user", json!("go"))]);
        let summary = Summary { text: text.into(), kept: Vec::new(), tokens: Tokens(9) };
        let summarise = FORMAT.summarise.expect("it can be summarised");
        let written = behind(&summarise(&transcript, &bytes, &summary).unwrap());
        assert_eq!(written[0]["$set"]["messages"][0]["content"][0]["text"], json!(expect));
    }
}

fn own_records() -> crate::WriteAppended {
    match FORMAT.native {
        Some(Native::Append(append)) => append.write,
        Some(Native::Mark(_)) | None => panic!("it can be appended to"),
    }
}
