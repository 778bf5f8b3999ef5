//! The updates that an editor gets for events.

use std::collections::BTreeMap;

use epitome_model::Tokens;

use super::*;

fn updates(abilities: Abilities) -> Updates {
    // A folder without files.
    let folder = tempfile::tempdir().unwrap();
    Updates::new(abilities, Workplace::new(folder.path()).unwrap())
}

fn call(id: &str, tool: &str, arguments: &Value) -> Event {
    Event::Call { id: id.to_owned(), tool: tool.to_owned(), arguments: arguments.to_string() }
}

fn result(id: &str, text: &str) -> Event {
    Event::Result { id: id.to_owned(), error: false, text: text.to_owned() }
}

#[test]
fn an_id_that_a_service_uses_again_names_another_call() {
    let mut updates = updates(Abilities::default());
    let mut ids = Vec::new();
    for _ in 0..2 {
        let shell = call("call_0", "shell", &json!({"command": "echo `ls`"}));
        let both = [updates.live(&shell), updates.live(&result("call_0", "a ``` b\n"))].concat();
        for update in both {
            ids.push(update["toolCallId"].as_str().unwrap().to_owned());
            let content = &update["content"][0]["content"]["text"];
            assert!(content.is_null() || content == "````\na ``` b\n````", "{update}");
        }
    }
    assert_eq!(ids, ["call_0", "call_0", "call_0~2", "call_0~2"]);
    assert_eq!(updates.live(&result("call_0", "late")), Vec::<Value>::new());
}

#[test]
fn calls_of_a_task_are_calls_with_names_of_their_own() {
    let mut updates = updates(Abilities::default());
    let within = |inner| Event::Task { id: "t".to_owned(), inner: Box::new(inner) };
    let task = call("t", "task", &json!({"description": "look", "prompt": "Look."}));
    let inner = call("c", "glob", &json!({"pattern": "*.rs"}));
    let event = Event::Text { text: "I look.".to_owned() };
    let all =
        [task, within(inner), within(event), within(result("c", "a.rs")), result("t", "One.")];
    let updates_sent: Vec<Value> = all.iter().flat_map(|it| updates.live(it)).collect();
    let short = |it: &Value| (it["toolCallId"].clone(), it["title"].clone(), it["status"].clone());
    let updates_sent: Vec<(Value, Value, Value)> = updates_sent.iter().map(short).collect();
    let expect = [
        (json!("t"), json!("task look"), json!("in_progress")),
        (json!("t/c"), json!("glob *.rs"), json!("in_progress")),
        (json!("t/c"), Value::Null, json!("completed")),
        (json!("t"), Value::Null, json!("completed")),
    ];
    assert_eq!(updates_sent, expect);
}

#[test]
fn a_compaction_is_told_as_one_where_an_editor_knows_them_and_in_a_line_elsewhere() {
    let started = ContextEvent::Started {
        why: EventReason::Hard,
        tokens: Tokens(900),
        target: None,
        usable: None,
    };
    let finished = ContextEvent::Finished {
        why: EventReason::Hard,
        before: Tokens(900),
        after: Tokens(300),
        by_stage: BTreeMap::from([("results".to_owned(), 3)]),
        over_target: None,
        no_summary: None,
    };
    let events = [started, finished].map(|event| Event::Context { event });
    let line = "context compacted (900 → 300 tokens): results 3";
    let all = |abilities: Abilities| {
        let mut updates = updates(abilities);
        events.iter().flat_map(|event| updates.live(event)).collect::<Vec<_>>()
    };
    let message = json!({"type": "text", "text": format!("\n\n{line}\n\n")});
    let expect =
        json!({"sessionUpdate": "agent_message_chunk", "content": message, "messageId": "m1"});
    assert_eq!(all(Abilities::default()), [expect]);
    let notices = Abilities { notices: true, ..Abilities::default() };
    let expect = json!({"sessionUpdate": "notice", "severity": "info", "title": line});
    assert_eq!(all(notices), [expect]);
    let compactions = Abilities { compactions: true, ..Abilities::default() };
    let id = "compaction-1";
    let summary = json!([{"type": "text", "text": line}]);
    let expect = [
        json!({"sessionUpdate": "compaction_update", "compactionId": id, "status": "in_progress"}),
        json!({
            "sessionUpdate": "compaction_update", "compactionId": id, "status": "completed",
            "summary": summary,
        }),
    ];
    assert_eq!(all(compactions), expect);
}

#[test]
fn messages_have_ids_and_what_the_user_typed_is_told_only_when_it_is_replayed() {
    let mut updates = updates(Abilities::default());
    let user = Event::User { text: "Hello".to_owned() };
    let text = |text: &str| Event::Text { text: text.to_owned() };
    let thinking = Event::Thinking { text: "Hm.".to_owned() };
    let short = |updates: Vec<Value>| {
        let short = |it: &Value| (it["sessionUpdate"].clone(), it["messageId"].clone());
        updates.iter().map(short).collect::<Vec<_>>()
    };
    assert_eq!(short(updates.live(&user)), []);
    assert_eq!(short(updates.replayed(&user)), [(json!("user_message_chunk"), json!("m1"))]);
    let all = [thinking, text("a"), text("b"), Event::Restart, text("c")];
    let updates_sent: Vec<(Value, Value)> =
        all.iter().flat_map(|it| short(updates.live(it))).collect();
    let expect = [
        (json!("agent_thought_chunk"), json!("m2")),
        (json!("agent_message_chunk"), json!("m3")),
        (json!("agent_message_chunk"), json!("m3")),
        (json!("agent_message_chunk"), json!("m4")),
        (json!("agent_message_chunk"), json!("m5")),
    ];
    assert_eq!(updates_sent, expect);
}

#[test]
fn an_answer_that_broke_off_is_void_whether_it_is_requested_again_or_not() {
    let abilities = Abilities { notices: true, ..Abilities::default() };
    let title = "(The answer so far is void.)";
    let expect = json!({"sessionUpdate": "notice", "severity": "info", "title": title});
    assert_eq!(updates(abilities).live(&Event::Restart), [expect]);
}

#[test]
fn each_replayed_message_of_the_user_has_an_id_of_its_own() {
    let mut updates = updates(Abilities::default());
    let mut replayed = |text: &str| updates.replayed(&Event::User { text: text.to_owned() });
    let message = |text: &str, id: &str| {
        let content = json!({"type": "text", "text": text});
        json!({"sessionUpdate": "user_message_chunk", "content": content, "messageId": id})
    };
    assert_eq!(replayed("One."), [message("One.", "m1")]);
    assert_eq!(replayed("Two."), [message("Two.", "m2")]);
}
