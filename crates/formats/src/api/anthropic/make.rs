//! A transcript into a body.

use epitome_model::{Block, Source, Transcript, encode};

use crate::api::{Conversation, Left, Made, OPENING, Piece, SummaryAs, Tool, name};
use crate::document::{Document, Value};

/// Characters of an id.
const ID: usize = 64;

/// The body of a request that says what the transcript's context says.
pub fn make(transcript: &Transcript, source: &dyn Source) -> Made {
    make_as(transcript, source, SummaryAs::User)
}

/// The same, with its summary as whose words it is.
pub fn make_as(transcript: &Transcript, source: &dyn Source, summary: SummaryAs) -> Made {
    let mut all = Conversation::told(transcript, source, ID, summary).carrying(carries);
    let mut messages = Messages::default();
    for step in std::mem::take(&mut all.steps) {
        let reply = reply(&mut all, &step.reply);
        if !reply.is_empty() && messages.all.is_empty() {
            messages.say("user", vec![text(OPENING)]);
        }
        messages.say("assistant", reply);
        let mut heard: Vec<String> = Vec::new();
        for answer in &step.results {
            let parts: Vec<String> = all.parts(answer.output).iter().map(block).collect();
            let failed = if answer.output.error { r#","is_error":true"# } else { "" };
            heard.push(format!(
                r#"{{"type":"tool_result","tool_use_id":{},"content":[{}]{failed}}}"#,
                encode(all.id(answer.call)),
                parts.join(","),
            ));
        }
        for said in &step.words {
            heard.extend(all.words(&[*said]).iter().map(block));
        }
        messages.say("user", heard);
    }
    let prompt: Vec<String> = all.prompt.iter().map(|words| text(words)).collect();
    let system = match prompt.is_empty() {
        true => String::new(),
        false => format!(r#""system":[{}],"#, prompt.join(",")),
    };
    let n = messages.all.len();
    let body = format!(r#"{{{system}"messages":[{}]}}"#, messages.render());
    all.finish(body, n)
}

/// A tool as an element of `tools`.
pub fn tool(tool: &Tool<'_>) -> String {
    let (name, about) = (encode(tool.name), encode(tool.description));
    let schema = tool.parameters;
    format!(r#"{{"name":{name},"description":{about},"input_schema":{schema}}}"#)
}

/// Blocks of the user and parts of results that are taken as they stand: words and pictures too,
/// when they carry a marker.
const CARRIED: [&str; 5] = ["document", "search_result", "tool_reference", "text", "image"];

fn carries(block: &Value<'_>) -> bool {
    block.word("type").is_some_and(|kind| CARRIED.contains(&&*kind))
}

/// Reasoning that this wire signed, texts, then calls: a text behind a call is refused.
fn reply(all: &mut Conversation<'_>, blocks: &[&Block]) -> Vec<String> {
    let (mut said, mut calls) = (Vec::new(), Vec::new());
    for block in blocks {
        match block {
            Block::Text(words) => said.push(text(&all.text(words))),
            Block::Thinking(thinking) => match signed(&all.raw(thinking.whole)) {
                // Between calls it stays between them.
                Some(raw) if calls.is_empty() => said.push(raw),
                Some(raw) => calls.push(raw),
                None => all.leave(Left::Reasoning),
            },
            Block::Call(call) => calls.push(format!(
                r#"{{"type":"tool_use","id":{},"name":{},"input":{}}}"#,
                encode(all.id(call)),
                encode(&name(&call.name)),
                all.arguments(call).object(),
            )),
            _ => all.leave(Left::Opaque),
        }
    }
    let spoken = said.iter().chain(&calls).any(|block| !block.starts_with(THINKING));
    if !spoken {
        // Reasoning alone is no reply.
        said.iter().chain(&calls).for_each(|_| all.leave(Left::Reasoning));
        return Vec::new();
    }
    said.extend(calls);
    said
}

/// How a block of reasoning begins when we write it.
const THINKING: &str = r#"{"type":"thinking""#;

/// A block of reasoning as it came, if this wire signed it.
fn signed(raw: &str) -> Option<String> {
    let document = Document::parse(raw.as_bytes()).ok()?;
    let block = &document.root;
    let (words, signature) = (block.get("thinking")?, block.get("signature")?);
    let whole = block.is("type", "thinking") && words.is_text() && signature.range().len() > 2;
    let raw = |value: &Value<'_>| String::from_utf8_lossy(value.raw()).into_owned();
    whole.then(|| {
        format!(r#"{THINKING},"thinking":{},"signature":{}}}"#, raw(words), raw(signature))
    })
}

fn text(words: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, encode(words))
}

fn block(piece: &Piece<'_>) -> String {
    match piece {
        Piece::Text(words) => text(words),
        Piece::Picture { media, data } => format!(
            r#"{{"type":"image","source":{{"type":"base64","media_type":"{media}","data":{}}}}}"#,
            encode(data),
        ),
        Piece::Carried(raw) => raw.clone(),
    }
}

/// Messages, of which neighbours of one role are one.
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
