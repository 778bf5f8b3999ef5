//! Events of a streamed message: <https://docs.claude.com/en/docs/build-with-claude/streaming>.

use std::collections::BTreeMap;

use epitome_json::Value;
use epitome_model::encode;

use crate::response::{count, raw, wrong};
use crate::stream::{Assembler, unfinished};
use crate::{BadResponse, Delta, OnDelta};

/// A streamed message, as far as it has arrived.
#[derive(Default)]
pub struct Events {
    begun: bool,
    ended: bool,
    model: Option<String>,
    stop: Option<String>,
    /// The usage of the first event, with the values of later events in place of earlier ones.
    usage: BTreeMap<String, String>,
    blocks: Vec<Block>,
}

struct Block {
    open: bool,
    /// The members that the first event of the block contains, except for those that are streamed.
    members: Vec<String>,
    /// For each streamed member, its text as far as it has arrived.
    texts: BTreeMap<&'static str, String>,
    /// The arguments of a call as far as they have arrived: the beginning of a JSON text.
    input: Option<String>,
    citations: Vec<String>,
}

/// The members of a block whose texts are streamed.
const TEXTS: [&str; 3] = ["text", "thinking", "signature"];

impl Assembler for Events {
    fn event(&mut self, event: &Value<'_>, on: OnDelta<'_>) -> Result<(), BadResponse> {
        let kind = event.text_of("type").unwrap_or_default();
        let begins = kind == "message_start";
        let known = begins || kind.starts_with("content_block_") || kind.starts_with("message_");
        if !known || self.ended {
            return Ok(());
        }
        if begins == self.begun {
            return Err(wrong(format!("`{kind}` comes in the wrong place")));
        }
        match &*kind {
            "message_start" => {
                self.begun = true;
                let message = event.get("message");
                self.model = message.and_then(|message| message.any(&["model"])).map(raw);
                self.count(message.and_then(|message| message.get("usage")));
            }
            "content_block_start" => self.start(event, on)?,
            "content_block_delta" => self.delta(event, on)?,
            "content_block_stop" => self.block(event)?.open = false,
            "message_delta" => {
                let stop = event.get("delta").and_then(|delta| delta.any(&["stop_reason"]));
                self.stop = stop.map(raw).or(self.stop.take());
                self.count(event.get("usage"));
            }
            "message_stop" if self.blocks.iter().any(|block| block.open) => {
                return Err(wrong("the message ends before its last block"));
            }
            "message_stop" => self.ended = true,
            _ => {}
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<String, BadResponse> {
        let Events { ended, model, stop, usage, blocks, .. } = *self;
        if !ended {
            return Err(unfinished());
        }
        let cut = stop.as_deref() == Some(r#""max_tokens""#);
        let last = blocks.len().saturating_sub(1);
        let mut content = Vec::new();
        for (idx, block) in blocks.into_iter().enumerate() {
            match block.json() {
                Some(block) => content.push(block),
                // The output limit cut the arguments of this call off: the call is left out.
                None if cut && idx == last => {}
                None => return Err(wrong("the arguments of a call are not JSON")),
            }
        }
        let usage: Vec<String> =
            usage.iter().map(|(key, value)| format!("{}:{value}", encode(key))).collect();
        Ok(format!(
            r#"{{"model":{},"content":[{}],"stop_reason":{},"usage":{{{}}}}}"#,
            model.unwrap_or_else(|| "null".to_owned()),
            content.join(","),
            stop.unwrap_or_else(|| "null".to_owned()),
            usage.join(","),
        ))
    }
}

impl Events {
    fn count(&mut self, usage: Option<&Value<'_>>) {
        let members = usage.map_or(&[][..], Value::members).iter();
        let members = members.filter(|(_, value)| !value.is_null());
        self.usage.extend(members.map(|(key, value)| (key.to_string(), raw(value))));
    }

    fn start(&mut self, event: &Value<'_>, on: OnDelta<'_>) -> Result<(), BadResponse> {
        let place = count(Some(event), "index").map(|place| place.0);
        if place != Some(self.blocks.len() as u64) {
            return Err(wrong("the blocks are not in order"));
        }
        let block = event.get("content_block").filter(|block| block.is_object());
        let block = block.ok_or_else(|| wrong("a block is not an object"))?;
        let is_call = block.text_of("type").is_some_and(|kind| kind.ends_with("tool_use"));
        let members = block.members().iter().filter(|(key, _)| {
            let in_pieces = TEXTS.contains(&key.as_ref()) || key == "citations";
            !(in_pieces || is_call && key == "input")
        });
        let members =
            members.map(|(key, value)| format!("{}:{}", encode(key), raw(value))).collect();
        let texts = TEXTS.into_iter();
        let texts = texts.filter_map(|key| Some((key, block.text_of(key)?.into_owned()))).collect();
        let citations = block.list_of("citations").iter().map(raw).collect();
        let input = is_call.then(String::new);
        if let Some(name) = block.text_of("name").filter(|_| is_call) {
            on(Delta::Call(&name));
        }
        self.blocks.push(Block { open: true, members, texts, input, citations });
        Ok(())
    }

    /// The block that an event is about; an error if that block has ended or has not begun.
    fn block(&mut self, event: &Value<'_>) -> Result<&mut Block, BadResponse> {
        let place = count(Some(event), "index").map_or(usize::MAX, |place| place.0 as usize);
        let block = self.blocks.get_mut(place).filter(|block| block.open);
        block.ok_or_else(|| wrong("an event is about a block that is not open"))
    }

    fn delta(&mut self, event: &Value<'_>, on: OnDelta<'_>) -> Result<(), BadResponse> {
        let block = self.block(event)?;
        let delta = event.get("delta").ok_or_else(|| wrong("a delta is missing"))?;
        let text = |key: &str| delta.text_of(key).unwrap_or_default();
        match delta.text_of("type").unwrap_or_default().as_ref() {
            "text_delta" => {
                on(Delta::Text(&text("text")));
                block.texts.entry("text").or_default().push_str(&text("text"));
            }
            "thinking_delta" => {
                on(Delta::Thinking(&text("thinking")));
                block.texts.entry("thinking").or_default().push_str(&text("thinking"));
            }
            "signature_delta" => {
                block.texts.entry("signature").or_default().push_str(&text("signature"));
            }
            "input_json_delta" => match &mut block.input {
                Some(input) => input.push_str(&text("partial_json")),
                None => return Err(wrong("arguments come for a block that is not a call")),
            },
            "citations_delta" => block.citations.extend(delta.get("citation").map(raw)),
            // A delta of an unknown type must not be ignored: the block would not be what the model
            // wrote.
            other => return Err(wrong(format!("a delta of the unknown type `{other}`"))),
        }
        Ok(())
    }
}

impl Block {
    /// The whole block as JSON; `None` if the arguments of the call are not valid JSON.
    fn json(self) -> Option<String> {
        let mut members = self.members;
        members.extend(self.texts.iter().map(|(key, text)| format!(r#""{key}":{}"#, encode(text))));
        if !self.citations.is_empty() {
            members.push(format!(r#""citations":[{}]"#, self.citations.join(",")));
        }
        if let Some(input) = self.input {
            let input = if input.is_empty() { "{}" } else { &input };
            epitome_json::check(input.as_bytes()).ok()?;
            members.push(format!(r#""input":{input}"#));
        }
        Some(format!("{{{}}}", members.join(",")))
    }
}
