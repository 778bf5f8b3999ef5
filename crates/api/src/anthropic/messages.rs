//! Converts a transcript into a list of messages in Anthropic's format, in the order of the
//! transcript: for callers that build the request themselves.

use epitome_model::{Block, Entry, Output, Part, Role, Source, Span, Text, Transcript, encode};

use crate::{SummaryAs, UNDERSTOOD};

/// The list of messages of a transcript, as JSON. The list has no system prompt, so a summary
/// becomes a user message even with [`SummaryAs::System`].
pub fn messages(transcript: &Transcript, source: &dyn Source, summary: SummaryAs) -> String {
    let prompt = &transcript.head.prompt;
    let entries = transcript.context().filter(|(item, _)| !prompt.contains(item));
    list(entries.map(|(_, entry)| entry), source, summary)
}

/// The list of messages of these entries, as JSON. A summary becomes a user message.
pub fn messages_of<'e>(entries: impl Iterator<Item = &'e Entry>, source: &dyn Source) -> String {
    list(entries, source, SummaryAs::User)
}

fn list<'e>(
    entries: impl Iterator<Item = &'e Entry>,
    source: &dyn Source,
    summary: SummaryAs,
) -> String {
    let mut all: Vec<(&str, String)> = Vec::new();
    let mut follows_summary = false;
    for entry in entries {
        let role = if entry.role == Role::Assistant { "assistant" } else { "user" };
        for block in &entry.blocks {
            let is_summary = matches!(block, Block::Summary(_));
            // No acknowledgement comes before a result, which must directly follow the response
            // with its call.
            let is_result = matches!(block, Block::Output(_));
            if follows_summary && role == "user" && !is_summary && !is_result {
                all.push(("assistant", block_json(&UNDERSTOOD, source)));
            }
            follows_summary = is_summary && summary == SummaryAs::Acknowledged;
            let block = block_json(block, source);
            match all.last_mut() {
                Some((last, content)) if *last == role => {
                    content.push(',');
                    content.push_str(&block);
                }
                Some(_) | None => all.push((role, block)),
            }
        }
    }
    let messages =
        all.iter().map(|(role, content)| format!(r#"{{"role":"{role}","content":[{content}]}}"#));
    format!("[{}]", messages.collect::<Vec<_>>().join(","))
}

fn block_json(block: &Block, source: &dyn Source) -> String {
    match block {
        Block::Text(words) | Block::Summary(words) => text(words, source),
        Block::Thinking(thinking) => match &thinking.text {
            Some(words) if !raw(thinking.whole, source).contains("\"type\"") => {
                format!(r#"{{"type":"thinking","thinking":{}}}"#, encode(&words.read(source)))
            }
            Some(_) | None => raw(thinking.whole, source),
        },
        Block::Call(call) => {
            let id = encode(&call.id);
            let name = encode(&call.name);
            let input = raw(call.arguments, source);
            let input =
                if input.starts_with('{') { input } else { format!(r#"{{"input":{input}}}"#) };
            format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#)
        }
        Block::Output(output) => {
            let failed = if output.error { r#","is_error":true"# } else { "" };
            let id = encode(&output.call);
            let content = content(output, source);
            format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{content}{failed}}}"#)
        }
        Block::Image(image) => picture(image, source),
        Block::Opaque(span) => raw(*span, source),
        _ => text(&Text::Owned("".into()), source),
    }
}

fn raw(span: Span, source: &dyn Source) -> String {
    String::from_utf8_lossy(&source.at(span)).into_owned()
}

/// The content of a tool result: a string, or a list of parts.
fn content(output: &Output, source: &dyn Source) -> String {
    if let [Part::Text(words)] = output.parts.as_slice() {
        return encode(&words.read(source));
    }
    let parts = output.parts.iter().map(|part| match part {
        Part::Text(words) => text(words, source),
        Part::Image(image) => picture(image, source),
        Part::Opaque(span) => String::from_utf8_lossy(&source.at(*span)).into_owned(),
    });
    format!("[{}]", parts.collect::<Vec<_>>().join(","))
}

fn text(words: &Text, source: &dyn Source) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, encode(&words.read(source)))
}

fn picture(image: &epitome_model::Image, source: &dyn Source) -> String {
    let media = encode(&image.media);
    let data = epitome_model::decode(&source.at(image.data)).into_owned();
    let data = encode(&data);
    format!(r#"{{"type":"image","source":{{"type":"base64","media_type":{media},"data":{data}}}}}"#)
}

#[cfg(test)]
mod tests {
    use epitome_model::Item;

    use super::*;

    #[test]
    fn a_summary_is_acknowledged_before_the_next_user_message() {
        let words = |text: &str| Text::Owned(text.into());
        let check = |summary_as: SummaryAs, role: Role, expect: &str| {
            let entries =
                [(Role::User, Block::Summary(words("S"))), (role, Block::Text(words("a")))];
            let items: Vec<Item> = entries
                .map(|(role, block)| {
                    let blocks = vec![block];
                    Item::Entry(Box::new(Entry { role, blocks, ..Entry::default() }))
                })
                .into();
            let transcript = Transcript { items, context: vec![0, 1], ..Transcript::default() };
            let source: &[u8] = b"";
            assert_eq!(
                messages(&transcript, &source, summary_as),
                expect,
                "{summary_as:?} {role:?}"
            );
        };
        let joined = concat!(
            r#"[{"role":"user","content":[{"type":"text","text":"S"},"#,
            r#"{"type":"text","text":"a"}]}]"#,
        );
        let acknowledged = concat!(
            r#"[{"role":"user","content":[{"type":"text","text":"S"}]},"#,
            r#"{"role":"assistant","content":["#,
            r#"{"type":"text","text":"Understood. I go on from the summary."}]},"#,
            r#"{"role":"user","content":[{"type":"text","text":"a"}]}]"#,
        );
        let answered = concat!(
            r#"[{"role":"user","content":[{"type":"text","text":"S"}]},"#,
            r#"{"role":"assistant","content":[{"type":"text","text":"a"}]}]"#,
        );
        check(SummaryAs::User, Role::User, joined);
        check(SummaryAs::Acknowledged, Role::User, acknowledged);
        check(SummaryAs::Acknowledged, Role::Assistant, answered);
    }
}
