//! Converts a transcript into a request body.

use epitome_json::{Document, Value};
use epitome_model::{Block, Source, Transcript, encode};

use crate::response::raw;
use crate::{Conversation, LeftBehind, OPENING, RequestBody, SummaryAs, TextOrImage, Tool, name};

/// Maximum length of a call id in characters.
const ID: usize = 64;

/// The body of a request with the context of a transcript.
pub fn make(transcript: &Transcript, source: &dyn Source) -> RequestBody {
    make_as(transcript, source, SummaryAs::User)
}

/// Like [`make`], but sends a summary as `summary` says.
pub fn make_as(transcript: &Transcript, source: &dyn Source, summary: SummaryAs) -> RequestBody {
    let mut all = Conversation::with_summary(transcript, source, ID, summary).carrying(carries);
    let mut messages = Messages::default();
    for step in std::mem::take(&mut all.steps) {
        let reply = reply(&mut all, &step.reply);
        if !reply.is_empty() && messages.all.is_empty() {
            messages.say("user", vec![text(OPENING)]);
        }
        messages.say("assistant", reply);
        let mut user_blocks: Vec<String> = Vec::new();
        for answer in &step.results {
            let parts: Vec<String> = all.parts(answer.output).iter().map(block).collect();
            let failed = if answer.output.error { r#","is_error":true"# } else { "" };
            user_blocks.push(format!(
                r#"{{"type":"tool_result","tool_use_id":{},"content":[{}]{failed}}}"#,
                encode(all.id(answer.call)),
                parts.join(","),
            ));
        }
        for said in &step.words {
            user_blocks.extend(all.text_and_images(&[*said]).iter().map(block));
        }
        messages.say("user", user_blocks);
    }
    let prompt: Vec<String> = all.prompt.iter().map(|words| text(words)).collect();
    let system = if prompt.is_empty() {
        String::new()
    } else {
        format!(r#""system":[{}],"#, prompt.join(","))
    };
    let n = messages.all.len();
    let body = format!(r#"{{{system}"messages":[{}]}}"#, messages.render());
    all.finish(body, n)
}

/// A tool as an element of `tools`.
pub fn tool(tool: &Tool<'_>) -> String {
    let name = encode(tool.name);
    let about = encode(tool.description);
    let schema = tool.parameters;
    format!(r#"{{"name":{name},"description":{about},"input_schema":{schema}}}"#)
}

/// Kinds of opaque blocks that are sent unchanged in user messages and in results. The reader makes
/// a `text` opaque if it is a part of a result and has a cache marker, and an `image` if it has a
/// cache marker or if its bytes are not in the body.
const CARRIED: [&str; 5] = ["document", "search_result", "tool_reference", "text", "image"];

fn carries(block: &Value<'_>) -> bool {
    block.text_of("type").is_some_and(|kind| CARRIED.contains(&&*kind))
}

/// The blocks of a response, as JSON: first all texts and the signed reasoning that is before the
/// first call, then the calls and the signed reasoning that is after the first call. The API
/// refuses a text after a call. Empty if the response has neither a text nor a call.
fn reply(all: &mut Conversation<'_>, blocks: &[&Block]) -> Vec<String> {
    let mut contents = Vec::new();
    let mut calls = Vec::new();
    for block in blocks {
        match block {
            Block::Text(words) => contents.push(text(&all.text(words))),
            Block::Thinking(thinking) => match signed(&all.raw(thinking.whole)) {
                // Reasoning after a call stays after that call.
                Some(raw) if calls.is_empty() => contents.push(raw),
                Some(raw) => calls.push(raw),
                None => all.leave(LeftBehind::Reasoning),
            },
            Block::Call(call) => calls.push(format!(
                r#"{{"type":"tool_use","id":{},"name":{},"input":{}}}"#,
                encode(all.id(call)),
                encode(&name(&call.name)),
                all.arguments(call).object(),
            )),
            _ => all.leave(LeftBehind::Opaque),
        }
    }
    let spoken = contents.iter().chain(&calls).any(|block| !block.starts_with(THINKING));
    if !spoken {
        // A message of reasoning alone is not sent.
        contents.iter().chain(&calls).for_each(|_| all.leave(LeftBehind::Reasoning));
        return Vec::new();
    }
    contents.extend(calls);
    contents
}

/// The beginning of a reasoning block in the JSON that this module writes.
const THINKING: &str = r#"{"type":"thinking""#;

/// A reasoning block with its text and its signature unchanged. `None` if `text` is not a
/// `thinking` block of this API with a text and a signature.
fn signed(text: &str) -> Option<String> {
    let document = Document::parse(text.as_bytes()).ok()?;
    let block = &document.root;
    let words = block.get("thinking")?;
    let signature = block.get("signature")?;
    let whole = block.is("type", "thinking") && words.is_text() && signature.range().len() > 2;
    whole.then(|| {
        format!(r#"{THINKING},"thinking":{},"signature":{}}}"#, raw(words), raw(signature))
    })
}

fn text(words: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, encode(words))
}

fn block(piece: &TextOrImage<'_>) -> String {
    match piece {
        TextOrImage::Text(words) => text(words),
        TextOrImage::Picture { media, data } => format!(
            r#"{{"type":"image","source":{{"type":"base64","media_type":"{media}","data":{}}}}}"#,
            encode(data),
        ),
        TextOrImage::Carried(raw) => raw.clone(),
    }
}

/// The messages of a request body; consecutive messages of one role are joined.
#[derive(Default)]
struct Messages {
    all: Vec<(&'static str, Vec<String>)>,
}

impl Messages {
    fn say(&mut self, role: &'static str, blocks: Vec<String>) {
        match self.all.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, before)) if *last == role => before.extend(blocks),
            Some(_) | None => self.all.push((role, blocks)),
        }
    }

    fn render(&self) -> String {
        let messages = self.all.iter().map(|(role, blocks)| {
            format!(r#"{{"role":"{role}","content":[{}]}}"#, blocks.join(","))
        });
        messages.collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_signed_reasoning_is_sent() {
        let block = r#"{"type": "thinking", "signature": "c2ln", "thinking": "a\n", "more": 1}"#;
        let expect = r#"{"type":"thinking","thinking":"a\n","signature":"c2ln"}"#;
        assert_eq!(signed(block).as_deref(), Some(expect));
        for block in [
            r#"{"type": "thinking", "thinking": "a"}"#,
            r#"{"type": "thinking", "thinking": "a", "signature": ""}"#,
            r#"{"type": "thinking", "thinking": null, "signature": "c2ln"}"#,
            r#"{"type": "reasoning", "thinking": "a", "signature": "c2ln"}"#,
            "hm",
        ] {
            assert_eq!(signed(block), None, "{block}");
        }
    }
}
