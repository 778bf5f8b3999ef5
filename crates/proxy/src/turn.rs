//! Whether a request begins a turn of the user.

use epitome_api::Api;
use epitome_model::{Block, Entry, Role};

use crate::body::Messages;

/// Whether the messages after the last response contain a message of the user and no result of a
/// call.
pub(crate) fn begins_turn(api: &Api, body: &[u8], messages: &Messages) -> bool {
    let new = messages.all.iter().rev().take_while(|message| !message.is_model).count();
    let first = messages.all.len() - new;
    let Some(first) = messages.all.get(first) else { return false };
    let head = format!(r#"{{"{}":["#, api.list);
    let tail = [head.as_bytes(), &body[first.span.start..messages.list.end - 1], b"]}"].concat();
    let transcript = (api.format.read)(&tail, &mut ());
    let is_of_user = |entry: &Entry| entry.role == Role::User;
    let has_result = |entry: &Entry| {
        entry.blocks.iter().any(|block| matches!(block, Block::Output(_) | Block::Repeated(_)))
    };
    let entries = || transcript.entries().map(|(_, entry)| entry);
    entries().any(is_of_user) && !entries().any(has_result)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(api: &str, list: &Value, expect: bool) {
        let api = epitome_api::find_api(api).expect("an API");
        let body = json!({ "model": "m", api.list: list }).to_string();
        let messages = Messages::find(body.as_bytes(), api.list).expect("messages");
        assert_eq!(begins_turn(api, body.as_bytes(), &messages), expect, "{body}");
    }

    #[test]
    fn a_turn_begins_with_a_message_of_the_user() {
        let hi = json!({"role": "user", "content": "Hi"});
        let text = json!({"type": "text", "text": "a reminder"});
        let result = json!({"type": "tool_result", "tool_use_id": "c", "content": "a"});
        let call = json!({"type": "tool_use", "id": "c", "name": "Bash", "input": {}});
        let called = json!({"role": "assistant", "content": [call]});
        let answer = json!({"role": "user", "content": [result, text]});
        check("anthropic", &json!([hi]), true);
        check("anthropic", &json!([hi, called, answer]), false);
        check("anthropic", &json!([hi, called, answer, hi]), false);
        let message = json!({"role": "assistant", "content": "Hello"});
        check("anthropic", &json!([hi, message, hi]), true);
        check("anthropic", &json!([hi, message]), false);
        let tool = json!({"role": "tool", "tool_call_id": "c", "content": "a"});
        check("openai-chat", &json!([hi, message, tool]), false);
        check("openai-chat", &json!([hi, message, tool, hi]), false);
        check("openai-chat", &json!([hi, message, hi]), true);
        let output = json!({"type": "function_call_output", "call_id": "c", "output": "a"});
        check("openai-responses", &json!([hi, output]), false);
        check("openai-responses", &json!([hi, message, output, hi]), false);
        let parts = json!({"role": "user", "parts": [{"text": "Hi"}]});
        check("gemini-api", &json!([parts]), true);
        let response = json!({"name": "Bash", "response": {"output": "a"}});
        let parts = json!({"role": "user", "parts": [{"functionResponse": response}]});
        check("gemini-api", &json!([parts]), false);
    }
}
