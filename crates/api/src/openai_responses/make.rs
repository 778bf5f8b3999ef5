//! Converts a transcript into a request body.

use epitome_json::{Document, Value};
use epitome_model::{Block, Source, Transcript, encode};

use super::message::{CARRIED, SERVICE_CALLS};
use crate::response::raw;
use crate::{
    AnsweredCall, Arguments, Conversation, Exchange, LeftBehind, OPENING, RequestBody, SummaryAs,
    TextOrImage, Tool, name,
};

/// Maximum length of a call id in characters.
const ID: usize = 64;

/// The body of a request with the context of a transcript.
pub fn make(transcript: &Transcript, source: &dyn Source) -> RequestBody {
    make_as(transcript, source, SummaryAs::User)
}

/// Like [`make`], but sends a summary as `summary` says.
pub fn make_as(transcript: &Transcript, source: &dyn Source, summary: SummaryAs) -> RequestBody {
    let mut all = Conversation::with_summary(transcript, source, ID, summary).carrying(carries);
    let mut items: Vec<String> = Vec::new();
    for step in std::mem::take(&mut all.steps) {
        let reply = reply(&mut all, &step);
        if !reply.is_empty() && items.is_empty() {
            items.push(message(&[TextOrImage::Text(OPENING.into())]));
        }
        items.extend(reply);
        for answer in &step.results {
            items.push(result(&mut all, answer));
        }
        let mut words = Vec::new();
        for said in &step.words {
            words.extend(all.text_and_images(&[*said]));
        }
        if !words.is_empty() {
            items.push(message(&words));
        }
    }
    let leading_members = if all.prompt.is_empty() {
        String::new()
    } else {
        format!(r#""instructions":{},"#, encode(&all.prompt.join("\n\n")))
    };
    let n = items.len();
    all.finish(format!(r#"{{{leading_members}"input":[{}]}}"#, items.join(",")), n)
}

/// A tool as an element of `tools`.
pub fn tool(tool: &Tool<'_>) -> String {
    let name = encode(tool.name);
    let about = encode(tool.description);
    let schema = tool.parameters;
    let function = format!(r#""name":{name},"description":{about},"parameters":{schema}"#);
    format!(r#"{{"type":"function",{function},"strict":false}}"#)
}

fn carries(part: &Value<'_>) -> bool {
    let kind = part.text_of("type").unwrap_or_default();
    CARRIED.contains(&&*kind) || SERVICE_CALLS.contains(&&*kind)
}

fn reply(all: &mut Conversation<'_>, step: &Exchange<'_>) -> Vec<String> {
    let mut items = Vec::new();
    // Reasoning comes before the item that it led to; reasoning without such an item is left out.
    let mut waiting = Vec::new();
    for block in &step.reply {
        let item = match block {
            Block::Text(words) => {
                let words = encode(&all.text(words));
                format!(r#"{{"type":"message","role":"assistant","content":{words}}}"#)
            }
            Block::Call(call) => {
                let id = encode(all.id(call));
                let name = encode(&name(&call.name));
                let (kind, key, text) = match all.arguments(call) {
                    Arguments::Object(object) => ("function_call", "arguments", object),
                    Arguments::Text(text) => ("custom_tool_call", "input", text),
                };
                let text = encode(&text);
                format!(r#"{{"type":"{kind}","call_id":{id},"name":{name},"{key}":{text}}}"#)
            }
            Block::Thinking(thinking) => {
                match sealed(&all.raw(thinking.whole)) {
                    Some(item) => waiting.push(item),
                    None => all.leave(LeftBehind::Reasoning),
                }
                continue;
            }
            Block::Opaque(span) => match all.opaque_value(*span) {
                Some(TextOrImage::Carried(item)) => item,
                Some(_) | None => continue,
            },
            _ => {
                all.leave(LeftBehind::Opaque);
                continue;
            }
        };
        items.append(&mut waiting);
        items.push(item);
    }
    for _ in waiting {
        all.leave(LeftBehind::Reasoning);
    }
    items
}

/// A reasoning item with its summary and its encrypted content unchanged. `None` if `text` is not a
/// reasoning item of this API with a summary and encrypted content.
fn sealed(text: &str) -> Option<String> {
    let document = Document::parse(text.as_bytes()).ok()?;
    let item = &document.root;
    let seal = item.get("encrypted_content")?;
    let summary = item.get("summary")?;
    let whole = item.is("type", "reasoning") && seal.range().len() > 2 && summary.is_list();
    whole.then(|| {
        let summary = raw(summary);
        let seal = raw(seal);
        format!(r#"{{"type":"reasoning","summary":{summary},"encrypted_content":{seal}}}"#)
    })
}

fn result<'t>(all: &mut Conversation<'t>, answer: &AnsweredCall<'t>) -> String {
    let kind = match all.arguments(answer.call) {
        Arguments::Object(_) => "function_call_output",
        Arguments::Text(_) => "custom_tool_call_output",
    };
    let pieces = all.parts(answer.output);
    let output = match pieces.as_slice() {
        [] => encode(""),
        [TextOrImage::Text(words)] => encode(words),
        pieces => parts(pieces),
    };
    let id = encode(all.id(answer.call));
    format!(r#"{{"type":"{kind}","call_id":{id},"output":{output}}}"#)
}

fn message(words: &[TextOrImage<'_>]) -> String {
    format!(r#"{{"type":"message","role":"user","content":{}}}"#, parts(words))
}

fn parts(pieces: &[TextOrImage<'_>]) -> String {
    let parts = pieces.iter().map(|piece| match piece {
        TextOrImage::Text(words) => format!(r#"{{"type":"input_text","text":{}}}"#, encode(words)),
        TextOrImage::Picture { media, data } => format!(
            r#"{{"type":"input_image","image_url":{}}}"#,
            encode(&format!("data:{media};base64,{data}")),
        ),
        TextOrImage::Carried(raw) => raw.clone(),
    });
    format!("[{}]", parts.collect::<Vec<_>>().join(","))
}
