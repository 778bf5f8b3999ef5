//! Converts a transcript into a request body.

use epitome_model::{Block, Source, Transcript, encode};

use crate::{
    Conversation, Exchange, LeftBehind, OPENING, RequestBody, SummaryAs, TextOrImage, name,
};

/// Maximum length of a call id in characters. [`Conversation`] needs one; no ids are sent.
const ID: usize = 64;

pub fn make(transcript: &Transcript, source: &dyn Source) -> RequestBody {
    make_as(transcript, source, SummaryAs::User)
}

pub fn make_as(transcript: &Transcript, source: &dyn Source, summary: SummaryAs) -> RequestBody {
    let mut all = Conversation::with_summary(transcript, source, ID, summary);
    let mut messages: Vec<String> = Vec::new();
    if !all.prompt.is_empty() {
        let prompt = encode(&all.prompt.join("\n\n"));
        messages.push(format!(r#"{{"role":"system","content":{prompt}}}"#));
    }
    let prompts = messages.len();
    for step in std::mem::take(&mut all.steps) {
        if let Some(reply) = reply(&mut all, &step) {
            if messages.len() == prompts {
                messages.push(user(vec![TextOrImage::Text(OPENING.into())]));
            }
            messages.push(reply);
        }
        let mut words = Vec::new();
        for answer in &step.results {
            let mut texts: Vec<String> = Vec::new();
            for part in all.parts(answer.output) {
                match part {
                    TextOrImage::Text(text) => texts.push(text.into_owned()),
                    // Pictures of results follow in a user message.
                    TextOrImage::Picture { .. } | TextOrImage::Carried(_) => words.push(part),
                }
            }
            let tool = encode(&name(&answer.call.name));
            let text = encode(&texts.join("\n"));
            messages.push(format!(r#"{{"role":"tool","tool_name":{tool},"content":{text}}}"#));
        }
        for said in &step.words {
            words.extend(all.text_and_images(&[*said]));
        }
        if !words.is_empty() {
            messages.push(user(words));
        }
    }
    let n = messages.len() - prompts;
    all.finish(format!(r#"{{"messages":[{}]}}"#, messages.join(",")), n)
}

fn reply(all: &mut Conversation<'_>, step: &Exchange<'_>) -> Option<String> {
    let mut texts = Vec::new();
    let mut calls = Vec::new();
    for block in &step.reply {
        match block {
            Block::Text(text) => texts.push(all.text(text)),
            Block::Call(call) => calls.push(format!(
                r#"{{"function":{{"name":{},"arguments":{}}}}}"#,
                encode(&name(&call.name)),
                all.arguments(call).object(),
            )),
            Block::Thinking(_) => all.leave(LeftBehind::Reasoning),
            _ => all.leave(LeftBehind::Opaque),
        }
    }
    if texts.is_empty() && calls.is_empty() {
        return None;
    }
    let text = encode(&texts.join("\n"));
    let calls = if calls.is_empty() {
        String::new()
    } else {
        format!(r#","tool_calls":[{}]"#, calls.join(","))
    };
    Some(format!(r#"{{"role":"assistant","content":{text}{calls}}}"#))
}

fn user(pieces: Vec<TextOrImage<'_>>) -> String {
    let mut texts = Vec::new();
    let mut images = Vec::new();
    for piece in pieces {
        match piece {
            TextOrImage::Text(text) => texts.push(text.into_owned()),
            TextOrImage::Picture { data, .. } => images.push(encode(&data)),
            TextOrImage::Carried(_) => {}
        }
    }
    let text = encode(&texts.join("\n"));
    let images = if images.is_empty() {
        String::new()
    } else {
        format!(r#","images":[{}]"#, images.join(","))
    };
    format!(r#"{{"role":"user","content":{text}{images}}}"#)
}
