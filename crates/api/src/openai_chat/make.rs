//! Converts a transcript into a request body.

use epitome_json::Value;
use epitome_model::{Block, Source, Transcript, encode};

use super::message::CARRIED;
use crate::{
    Conversation, Exchange, LeftBehind, OPENING, RequestBody, SummaryAs, TextOrImage, Tool, name,
};

/// Maximum length of a call id in characters.
const ID: usize = 40;

/// The body of a request with the context of a transcript.
pub fn make(transcript: &Transcript, source: &dyn Source) -> RequestBody {
    make_as(transcript, source, SummaryAs::User)
}

/// Like [`make`], but sends a summary as `summary` says.
pub fn make_as(transcript: &Transcript, source: &dyn Source, summary: SummaryAs) -> RequestBody {
    let mut all = Conversation::with_summary(transcript, source, ID, summary).carrying(carries);
    let mut messages: Vec<String> = Vec::new();
    if !all.prompt.is_empty() {
        let words = all.prompt.iter().map(|words| TextOrImage::Text(words.into())).collect();
        messages.push(format!(r#"{{"role":"system","content":{}}}"#, content(words)));
    }
    let prompts = messages.len();
    let mut user_pieces: Vec<TextOrImage<'_>> = Vec::new();
    for step in std::mem::take(&mut all.steps) {
        let reply = reply(&mut all, &step);
        if let Some(reply) = reply {
            if messages.len() == prompts && user_pieces.is_empty() {
                user_pieces.push(TextOrImage::Text(OPENING.into()));
            }
            say(&mut messages, std::mem::take(&mut user_pieces));
            messages.push(reply);
        }
        for answer in &step.results {
            let mut words: Vec<String> = Vec::new();
            for part in all.parts(answer.output) {
                match part {
                    TextOrImage::Text(text) => words.push(text.into_owned()),
                    // The result is sent as text only: its pictures and unknown values follow in a
                    // user message.
                    picture @ (TextOrImage::Picture { .. } | TextOrImage::Carried(_)) => {
                        user_pieces.push(picture)
                    }
                }
            }
            messages.push(format!(
                r#"{{"role":"tool","tool_call_id":{},"content":{}}}"#,
                encode(all.id(answer.call)),
                encode(&words.join("\n")),
            ));
        }
        for said in &step.words {
            user_pieces.extend(all.text_and_images(&[*said]));
        }
    }
    say(&mut messages, user_pieces);
    let n = messages.len() - prompts;
    all.finish(format!(r#"{{"messages":[{}]}}"#, messages.join(",")), n)
}

/// A tool as an element of `tools`.
pub fn tool(tool: &Tool<'_>) -> String {
    let name = encode(tool.name);
    let about = encode(tool.description);
    let schema = tool.parameters;
    let function = format!(r#"{{"name":{name},"description":{about},"parameters":{schema}}}"#);
    format!(r#"{{"type":"function","function":{function}}}"#)
}

fn carries(part: &Value<'_>) -> bool {
    part.text_of("type").is_some_and(|kind| CARRIED.contains(&&*kind))
}

fn say(messages: &mut Vec<String>, words: Vec<TextOrImage<'_>>) {
    if !words.is_empty() {
        messages.push(format!(r#"{{"role":"user","content":{}}}"#, content(words)));
    }
}

fn reply(all: &mut Conversation<'_>, step: &Exchange<'_>) -> Option<String> {
    let mut pieces = Vec::new();
    let mut calls = Vec::new();
    for block in &step.reply {
        match block {
            Block::Text(words) => pieces.push(TextOrImage::Text(all.text(words))),
            Block::Call(call) => calls.push(format!(
                r#"{{"id":{},"type":"function","function":{{"name":{},"arguments":{}}}}}"#,
                encode(all.id(call)),
                encode(&name(&call.name)),
                encode(&all.arguments(call).object()),
            )),
            Block::Thinking(_) => all.leave(LeftBehind::Reasoning),
            _ => all.leave(LeftBehind::Opaque),
        }
    }
    if pieces.is_empty() && calls.is_empty() {
        return None;
    }
    let pieces = if pieces.is_empty() { "null".to_owned() } else { content(pieces) };
    let calls = if calls.is_empty() {
        String::new()
    } else {
        format!(r#","tool_calls":[{}]"#, calls.join(","))
    };
    Some(format!(r#"{{"role":"assistant","content":{pieces}{calls}}}"#))
}

/// The content of a message: a string, or a list of parts.
fn content(pieces: Vec<TextOrImage<'_>>) -> String {
    if let [TextOrImage::Text(words)] = pieces.as_slice() {
        return encode(words);
    }
    let parts = pieces.iter().map(|piece| match piece {
        TextOrImage::Text(words) => format!(r#"{{"type":"text","text":{}}}"#, encode(words)),
        TextOrImage::Picture { media, data } => format!(
            r#"{{"type":"image_url","image_url":{{"url":{}}}}}"#,
            encode(&format!("data:{media};base64,{data}")),
        ),
        TextOrImage::Carried(raw) => raw.clone(),
    });
    format!("[{}]", parts.collect::<Vec<_>>().join(","))
}
