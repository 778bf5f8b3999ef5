//! Converts a transcript into a request body.

use epitome_json::Value;
use epitome_model::{Block, Role, Source, Transcript, encode};

use super::message::CARRIED;
use crate::{
    Conversation, Exchange, InputBlock, LeftBehind, OPENING, RequestBody, SummaryAs, TextOrImage,
    Tool, name,
};

/// Maximum length of a call id in characters. Ids are only used here to connect calls with results;
/// they are not sent, because some services with this API refuse them.
const ID: usize = 64;

/// The signature that is sent with the first call of a response, because a transcript does not have
/// the signatures of calls. The provider's page on thought signatures documents this value.
const UNSIGNED: &str = r#","thoughtSignature":"skip_thought_signature_validator""#;

/// The body of a request with the context of a transcript.
pub fn make(transcript: &Transcript, source: &dyn Source) -> RequestBody {
    make_as(transcript, source, SummaryAs::User)
}

/// Like [`make`], but sends a summary as `summary` says.
pub fn make_as(transcript: &Transcript, source: &dyn Source, summary: SummaryAs) -> RequestBody {
    let mut all = Conversation::with_summary(transcript, source, ID, summary).carrying(carries);
    let mut contents: Vec<(&str, Vec<String>)> = Vec::new();
    for step in std::mem::take(&mut all.steps) {
        let (spoken, calls) = reply(&mut all, &step);
        if contents.is_empty() && !(spoken.is_empty() && calls.is_empty()) {
            contents.push(("user", vec![text(OPENING)]));
        }
        // The API refuses calls in a content that follows another content of the model.
        match contents.last_mut().filter(|(role, _)| *role == "model") {
            Some((_, before)) => before.extend(spoken.into_iter().chain(calls)),
            None => push(&mut contents, "model", spoken.into_iter().chain(calls).collect()),
        }
        let mut results = Vec::new();
        let mut words = Vec::new();
        for answer in &step.results {
            let mut texts = Vec::new();
            for part in all.parts(answer.output) {
                match part {
                    TextOrImage::Text(text) => texts.push(text.into_owned()),
                    // Pictures and unknown values of results follow in a user message.
                    TextOrImage::Picture { .. } | TextOrImage::Carried(_) => {
                        words.push(self::part(&part))
                    }
                }
            }
            let key = if answer.output.error { "error" } else { "output" };
            results.push(format!(
                r#"{{"functionResponse":{{"name":{},"response":{{"{key}":{}}}}}}}"#,
                encode(&name(&answer.call.name)),
                encode(&texts.join("\n")),
            ));
        }
        push(&mut contents, "user", results);
        for block in &step.words {
            words.extend(all.text_and_images(&[*block]).iter().map(part));
        }
        push(&mut contents, "user", words);
    }
    let instructions: Vec<String> = all.prompt.iter().map(|words| text(words)).collect();
    let instructions = if instructions.is_empty() {
        String::new()
    } else {
        format!(r#""systemInstruction":{{"parts":[{}]}},"#, instructions.join(","))
    };
    let turns = contents
        .iter()
        .map(|(role, parts)| format!(r#"{{"role":"{role}","parts":[{}]}}"#, parts.join(",")));
    let body = format!(r#"{{{instructions}"contents":[{}]}}"#, turns.collect::<Vec<_>>().join(","));
    all.finish(body, contents.len())
}

/// A tool as an element of `tools`.
pub fn tool(tool: &Tool<'_>) -> String {
    format!(r#"{{"functionDeclarations":[{}]}}"#, function(tool))
}

/// A tool as an element of `functionDeclarations`.
pub fn function(tool: &Tool<'_>) -> String {
    let name = encode(tool.name);
    let about = encode(tool.description);
    let schema = tool.parameters;
    format!(r#"{{"name":{name},"description":{about},"parameters":{schema}}}"#)
}

fn carries(part: &Value<'_>) -> bool {
    CARRIED.iter().any(|keys| part.any(&keys[..]).is_some())
}

fn push<'r>(contents: &mut Vec<(&'r str, Vec<String>)>, role: &'r str, parts: Vec<String>) {
    if !parts.is_empty() {
        contents.push((role, parts));
    }
}

/// The parts of a response in two lists: its texts, pictures and other values; and its calls.
fn reply<'t>(all: &mut Conversation<'t>, step: &Exchange<'t>) -> (Vec<String>, Vec<String>) {
    let mut parts = Vec::new();
    let mut calls = Vec::new();
    for block in &step.reply {
        match block {
            Block::Text(words) => parts.push(text(&all.text(words))),
            Block::Call(call) => calls.push(format!(
                r#"{{"functionCall":{{"name":{},"args":{}}}{}}}"#,
                encode(&name(&call.name)),
                all.arguments(call).object(),
                if calls.is_empty() { UNSIGNED } else { "" },
            )),
            Block::Thinking(_) => all.leave(LeftBehind::Reasoning),
            block => {
                let word = InputBlock { block, role: Role::Assistant, item: 0 };
                parts.extend(all.text_and_images(&[word]).iter().map(part));
            }
        }
    }
    (parts, calls)
}

fn text(words: &str) -> String {
    format!(r#"{{"text":{}}}"#, encode(words))
}

fn part(piece: &TextOrImage<'_>) -> String {
    match piece {
        TextOrImage::Text(words) => text(words),
        TextOrImage::Picture { media, data } => {
            format!(r#"{{"inlineData":{{"mimeType":"{media}","data":{}}}}}"#, encode(data))
        }
        TextOrImage::Carried(raw) => raw.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_that_begins_with_a_response_has_an_opening_before_it() {
        let body = concat!(
            r#"{"messages":[{"role":"assistant","content":"I look."},"#,
            r#"{"role":"user","content":"Go on."}]}"#,
        );
        let source = body.as_bytes();
        let transcript = (crate::anthropic::API.format.read)(&source, &mut ());
        let expect = concat!(
            r#"{"contents":[{"role":"user","parts":["#,
            r#"{"text":"[the session begins with the reply below]"}]},"#,
            r#"{"role":"model","parts":[{"text":"I look."}]},"#,
            r#"{"role":"user","parts":[{"text":"Go on."}]}]}"#,
        );
        let expect = RequestBody { body: expect.into(), messages: 3, ..RequestBody::default() };
        assert_eq!(make(&transcript, &source), expect);
    }
}
