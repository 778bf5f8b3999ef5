//! Chunks of a streamed completion:
//! <https://platform.openai.com/docs/api-reference/chat-streaming>.

use epitome_json::Value;
use epitome_model::encode;

use crate::response::{count, raw, wrong};
use crate::stream::{Assembler, unfinished};
use crate::{BadResponse, Delta, OnDelta};

/// The first choice of a response, as far as it has arrived. Reasoning that is streamed as a list
/// of details is left out: its fragments cannot be joined exactly.
#[derive(Default)]
pub struct Chunks {
    content: String,
    refusal: String,
    reasoning: [String; 2],
    calls: Vec<Call>,
    finish: Option<String>,
    usage: Option<String>,
    model: Option<String>,
}

#[derive(Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
}

/// Keys under which vendors stream readable reasoning.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

impl Assembler for Chunks {
    fn event(&mut self, event: &Value<'_>, on: OnDelta<'_>) -> Result<(), BadResponse> {
        if let Some(usage) = event.any(&["usage"]) {
            self.usage = Some(raw(usage));
        }
        if let Some(model) = event.any(&["model"]) {
            self.model = Some(raw(model));
        }
        let mut choices = event.list_of("choices").iter();
        let first = choices.find(|choice| count(Some(choice), "index").unwrap_or_default().0 == 0);
        let Some(choice) = first else { return Ok(()) };
        if let Some(delta) = choice.get("delta") {
            self.delta(delta, on)?;
        }
        if let Some(finish) = choice.any(&["finish_reason"]) {
            self.finish = Some(raw(finish));
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<String, BadResponse> {
        let finish = self.finish.ok_or_else(unfinished)?;
        let content = if self.content.is_empty() { "null".into() } else { encode(&self.content) };
        let mut message = vec![format!(r#""content":{content}"#)];
        let texts = REASONING.into_iter().zip(self.reasoning).chain([("refusal", self.refusal)]);
        let texts = texts.filter(|(_, text)| !text.is_empty());
        message.extend(texts.map(|(key, text)| format!(r#""{key}":{}"#, encode(&text))));
        if !self.calls.is_empty() {
            let calls: Vec<String> = self.calls.iter().map(Call::json).collect();
            message.push(format!(r#""tool_calls":[{}]"#, calls.join(",")));
        }
        let message = message.join(",");
        let choice = format!(r#"{{"message":{{{message}}},"finish_reason":{finish}}}"#);
        let usage = self.usage.unwrap_or_else(|| "null".into());
        let model = self.model.unwrap_or_else(|| "null".into());
        Ok(format!(r#"{{"model":{model},"choices":[{choice}],"usage":{usage}}}"#))
    }
}

impl Chunks {
    fn delta(&mut self, delta: &Value<'_>, on: OnDelta<'_>) -> Result<(), BadResponse> {
        for (key, text) in REASONING.into_iter().zip(&mut self.reasoning) {
            if let Some(piece) = delta.text_of(key) {
                on(Delta::Thinking(&piece));
                text.push_str(&piece);
            }
        }
        if let Some(piece) = delta.text_of("content").filter(|piece| !piece.is_empty()) {
            on(Delta::Text(&piece));
            self.content.push_str(&piece);
        }
        self.refusal.push_str(&delta.text_of("refusal").unwrap_or_default());
        delta.list_of("tool_calls").iter().try_for_each(|call| self.call(call, &mut *on))
    }

    fn call(&mut self, piece: &Value<'_>, on: OnDelta<'_>) -> Result<(), BadResponse> {
        let id = piece.text_of("id").filter(|id| !id.is_empty());
        let name = piece.get("function").and_then(|function| function.text_of("name"));
        let name = name.filter(|name| !name.is_empty());
        // Some services do not number their calls: an id with a name begins a new call.
        let begins = id.is_some() && name.is_some();
        let last = self.calls.len().saturating_sub(usize::from(!begins));
        let place = count(Some(piece), "index").map_or(last, |place| place.0 as usize);
        if place > self.calls.len() || place == self.calls.len() && !begins {
            return Err(wrong("a piece of a call comes before its beginning"));
        }
        if place == self.calls.len() {
            self.calls.push(Call::default());
        }
        let call = &mut self.calls[place];
        if let Some(id) = id {
            call.id = id.into_owned();
        }
        if let Some(name) = name {
            on(Delta::Call(&name));
            call.name = name.into_owned();
        }
        let arguments = piece.get("function").and_then(|function| function.text_of("arguments"));
        call.arguments.push_str(&arguments.unwrap_or_default());
        Ok(())
    }
}

impl Call {
    fn json(&self) -> String {
        let arguments = if self.arguments.is_empty() { "{}" } else { &self.arguments };
        let id = encode(&self.id);
        let name = encode(&self.name);
        let arguments = encode(arguments);
        let function = format!(r#"{{"name":{name},"arguments":{arguments}}}"#);
        format!(r#"{{"id":{id},"type":"function","function":{function}}}"#)
    }
}
