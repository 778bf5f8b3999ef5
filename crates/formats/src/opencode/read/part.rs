//! Converts one part of a message.

use std::collections::HashSet;
use std::ops::Range;

use epitome_model::{
    Block, Call, Entry, FieldRemainder, HiddenField, Image, Output, Part, Role, Text, Thinking,
};

use super::Message;
use crate::opencode::raw::{self, State};
use crate::opencode::tools::TOOLS;
use crate::place::RecordBytes;

/// The result that OpenCode sends for a call that never finished.
const INTERRUPTED: &str = "[Tool execution was interrupted]";
/// The text that OpenCode sends for a request to summarise.
const SUMMARISE: &str = "What did we do so far?";

/// The text that OpenCode sends for a tool that the user ran.
const BY_USER: &str = "The following tool was executed by the user";

/// Texts around the user's own text in results.
const FROM_USER: [&[u8]; 2] = [
    b"The user rejected permission to use this specific tool call with the following feedback",
    b"User has answered your questions",
];

/// Metadata of tool calls that OpenCode reads later, for example the instructions that a read has
/// shown, the session of a sub-agent, or the output of an interrupted call.
const LOOKED_UP: [&[u8]; 7] = [
    b"loaded",
    b"sessionId",
    b"sessionID",
    b"parentSessionId",
    b"model",
    b"interrupted",
    b"outputPath",
];

/// The entry of a part. `None` for a part of a kind that no model sees, and for a call without a
/// state. The entry of a text that is not sent has no blocks.
pub fn part(
    at: &RecordBytes<'_>,
    raw: &raw::Part,
    kind: &str,
    message: &Message,
    id: &str,
    calls: &mut HashSet<Box<str>>,
) -> Option<Entry> {
    let mut entry = Entry { role: message.role, ..Entry::default() };
    match (kind, message.role) {
        ("text", Role::User) => {
            if raw.is_synthetic {
                entry.role = Role::System;
            }
            // An empty text is not sent, and neither is one that is only displayed.
            let shown_text = raw.text.as_ref().filter(|text| text.len() > 2 && !raw.is_ignored);
            entry.blocks =
                shown_text.map(|text| Block::Text(at.source(text))).into_iter().collect();
        }
        ("text", Role::Assistant) => {
            let shown_text = raw.text.as_ref().filter(|text| text.len() > 2);
            let block = shown_text.map(|text| match message.is_summary {
                true => Block::Summary(at.source(text)),
                false => Block::Text(at.source(text)),
            });
            entry.blocks = block.into_iter().collect();
        }
        ("file", Role::User) => entry.blocks = file(at, raw).into_iter().collect(),
        ("compaction", Role::User) => {
            entry.role = Role::System;
            entry.blocks = vec![Block::Text(Text::Owned(SUMMARISE.into()))];
        }
        ("subtask", Role::User) => {
            entry.role = Role::System;
            entry.blocks = vec![Block::Text(Text::Owned(BY_USER.into()))];
        }
        ("reasoning", Role::Assistant) => entry.blocks = thinking(at, raw).into_iter().collect(),
        ("tool", Role::Assistant) => {
            let state = raw.state.as_ref()?;
            let own = at.maybe(raw.call.as_ref()).unwrap_or_default();
            // Some models number their calls from zero in each response. A call whose id was used
            // before gets the id of its part.
            let id = if calls.insert(own.clone()) { own } else { id.into() };
            let (call, output) = tool(at, raw, state, &id);
            entry.hidden_fields = hidden_fields(at, state, &output);
            entry.blocks = vec![Block::Call(call), Block::Output(output)];
        }
        _ => return None,
    }
    Some(entry)
}

/// The block of an attachment of the user. `None` for a text file or a directory, because its
/// content is in a separate part; and for an attachment without a type or a URL.
fn file(at: &RecordBytes<'_>, raw: &raw::Part) -> Option<Block> {
    let mime = at.maybe(raw.mime.as_ref())?;
    let url = raw.url.as_ref()?;
    if matches!(&*mime, "text/plain" | "application/x-directory") {
        return None;
    }
    Some(if mime.starts_with("image/") && is_data(at, url) {
        Block::Image(Image { media: mime, data: at.span(url), whole: at.span(&raw.whole) })
    } else {
        Block::Opaque(at.span(&raw.whole))
    })
}

fn is_data(at: &RecordBytes<'_>, url: &Range<usize>) -> bool {
    at.line[url.clone()].starts_with(b"\"data:")
}

/// Reasoning; `None` if it has no text, or if its text is empty and it has no metadata: then it is
/// not sent.
fn thinking(at: &RecordBytes<'_>, raw: &raw::Part) -> Option<Block> {
    let text = raw.text.as_ref()?;
    if text.len() <= 2 && raw.metadata.is_none() {
        return None;
    }
    Some(Block::Thinking(Thinking {
        text: Some(at.source(text)),
        whole: at.span(&raw.whole),
        // OpenAI's Responses API refuses a call whose reasoning item was removed.
        removable: raw.metadata.as_ref().is_none_or(|metadata| metadata.openai.is_none()),
    }))
}

fn tool(at: &RecordBytes<'_>, raw: &raw::Part, state: &State, id: &str) -> (Call, Output) {
    let name = at.maybe(raw.tool.as_ref()).unwrap_or_default();
    let mut output = output(at, state);
    output.call = id.into();
    output.numbered = &*name == "read";
    let mut call = at.call(TOOLS, id.into(), name, &state.input.clone().unwrap_or_default());
    if state.input.is_none() {
        // A call without arguments gets an empty range at the beginning of the part instead.
        call.arguments = at.span(&(raw.whole.start..raw.whole.start));
    }
    (call, output)
}

fn output(at: &RecordBytes<'_>, state: &State) -> Output {
    let status = at.maybe(state.status.as_ref()).unwrap_or_default();
    match (&*status, &state.output, &state.error) {
        ("completed", _, _) if state.is_compacted(at.line) => {
            replaced(epitome_model::PRUNED, false)
        }
        ("completed", Some(literal), _) => {
            let mut output = stored(at, literal, false);
            output.parts.extend(state.attachments.items.iter().map(|file| attached(at, file)));
            output
        }
        ("error", _, Some(literal)) => match &state.metadata {
            Some(raw::Facts { is_interrupted: true, shown: Some(shown), .. }) => {
                stored(at, shown, false)
            }
            Some(_) | None => stored(at, literal, true),
        },
        _ => replaced(INTERRUPTED, true),
    }
}

/// A result in place of which OpenCode sends `words`.
fn replaced(words: &str, error: bool) -> Output {
    Output { error, parts: vec![Part::Text(Text::Owned(words.into()))], ..Output::default() }
}

/// A result that is sent as it is stored.
fn stored(at: &RecordBytes<'_>, literal: &Range<usize>, error: bool) -> Output {
    let text = &at.line[literal.clone()];
    Output {
        error,
        parts: vec![Part::Text(at.source(literal))],
        whole: at.span(literal),
        from_user: FROM_USER.iter().any(|words| memchr::memmem::find(text, words).is_some()),
        ..Output::default()
    }
}

fn attached(at: &RecordBytes<'_>, file: &raw::File) -> Part {
    let whole = at.span(&file.whole);
    let media = at.maybe(file.mime.as_ref()).unwrap_or_default();
    match &file.url {
        Some(url) if media.starts_with("image/") && is_data(at, url) => {
            Part::Image(Image { media, data: at.span(url), whole })
        }
        Some(_) | None => Part::Opaque(whole),
    }
}

/// Metadata that a tool recorded for display, and pruned results: no model sees them.
fn hidden_fields(at: &RecordBytes<'_>, state: &State, output: &Output) -> Vec<HiddenField> {
    let mut hidden_fields = Vec::new();
    for (key, place) in state.metadata.iter().flat_map(|metadata| &metadata.all) {
        let is_output = output.whole == at.span(place);
        if !LOOKED_UP.contains(&&**key) && !is_output {
            hidden_fields.push(HiddenField {
                name: "metadata",
                value: at.span(place),
                left: FieldRemainder::Nothing,
            });
        }
    }
    if state.is_compacted(at.line) {
        hidden_fields.extend(at.hidden("output", &state.output, FieldRemainder::EmptyText));
        hidden_fields.extend(at.hidden(
            "attachments",
            &state.attachments.whole,
            FieldRemainder::Nothing,
        ));
    }
    hidden_fields
}
