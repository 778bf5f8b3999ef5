//! Lines of a streamed response: each is a response with the next part of the message.

use epitome_json::Value;
use epitome_model::encode;

use crate::response::raw;
use crate::stream::{Assembler, unfinished};
use crate::{BadResponse, Delta, OnDelta};

#[derive(Default)]
pub struct Lines {
    content: String,
    thinking: String,
    calls: Vec<String>,
    /// The members of the last line, without its message.
    last: Option<Vec<String>>,
}

impl Assembler for Lines {
    fn event(&mut self, event: &Value<'_>, on: OnDelta<'_>) -> Result<(), BadResponse> {
        if let Some(message) = event.get("message") {
            if let Some(piece) = message.text_of("thinking").filter(|piece| !piece.is_empty()) {
                on(Delta::Thinking(&piece));
                self.thinking.push_str(&piece);
            }
            if let Some(piece) = message.text_of("content").filter(|piece| !piece.is_empty()) {
                on(Delta::Text(&piece));
                self.content.push_str(&piece);
            }
            for call in message.list_of("tool_calls") {
                if let Some(name) = call.get("function").and_then(|it| it.text_of("name")) {
                    on(Delta::Call(&name));
                }
                self.calls.push(raw(call));
            }
        }
        if event.get("done").is_some_and(Value::is_true) {
            let members = event.members().iter().filter(|(key, _)| key != "message");
            let members = members.map(|(key, value)| format!("{}:{}", encode(key), raw(value)));
            self.last = Some(members.collect());
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<String, BadResponse> {
        let mut members = self.last.ok_or_else(unfinished)?;
        members.push(format!(
            r#""message":{{"content":{},"thinking":{},"tool_calls":[{}]}}"#,
            encode(&self.content),
            encode(&self.thinking),
            self.calls.join(","),
        ));
        Ok(format!("{{{}}}", members.join(",")))
    }
}
