use std::sync::Arc;

use epitome_passes::{BUILT_IN, built_in};
use epitome_tokens::Estimate;
use serde_json::{Value, json};

use crate::pipe::{Server, ServerOptions, Size};

/// A server whose contexts are kept in memory and have a small window, which is soon full.
fn server(recipe: &str) -> Server {
    let recipe = built_in(recipe).expect("a recipe of the program");
    let api = "anthropic".to_owned();
    let options =
        ServerOptions { api, recipe, logs: None, counter: Arc::new(Estimate::new()), model: None };
    Server::new(options, Size { window: 12_000, ..Size::default() })
}

fn answer(server: &mut Server, op: &str, messages: &[Value]) -> Value {
    let request = json!({ "op": op, "messages": messages }).to_string();
    let answer: Value = serde_json::from_str(&server.answer(request.into_bytes())).expect("JSON");
    assert!(answer["error"].is_null(), "{op}: {answer}");
    answer
}

/// The new messages in the client's request number `n`: a message of the user if `n` is 0,
/// otherwise a call with its result.
fn new_messages(n: usize) -> Vec<Value> {
    if n == 0 {
        return vec![json!({"role": "user", "content": [{"type": "text", "text": "Build it."}]})];
    }
    let id = format!("c{n}");
    let input = json!({ "command": format!("make part-{}", n % 7) });
    let result: String =
        (0..n % 40).map(|line| format!("part {line} of run {n} is made\n")).collect();
    let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": input});
    let result = json!({"type": "tool_result", "tool_use_id": id, "content": result});
    vec![
        json!({"role": "assistant", "content": [call]}),
        json!({"role": "user", "content": [result]}),
    ]
}

/// A client appends its messages to its own list as long as the server reports no other change.
/// Then this list equals the list that `call` returns.
#[test]
fn a_list_that_is_appended_to_is_the_view() {
    let mut all_changes = 0;
    for (name, _) in BUILT_IN {
        let mut stepping = server(name);
        let mut calling = server(name);
        let mut list: Vec<Value> = Vec::new();
        let mut changes = 0;
        for n in 0..120 {
            let new = new_messages(n);
            let step = answer(&mut stepping, "step", &new);
            let view = answer(&mut calling, "call", &new)["messages"].clone();
            let view = view.as_array().expect("a list").clone();
            list.extend(new);
            if step["changed"] == true {
                changes += 1;
                // The server reports a change only if the view is not the appended list.
                assert_ne!(list, view, "{name}, request {n}");
                list = answer(&mut stepping, "call", &[])["messages"]
                    .as_array()
                    .expect("a list")
                    .clone();
            }
            assert_eq!(list, view, "{name}, request {n}");
        }
        assert!(changes < 120, "{name}");
        all_changes += changes;
    }
    assert!(all_changes > 20, "{all_changes}");
}
