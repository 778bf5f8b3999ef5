//! Converts one message into what a resume sends for it.
//!
//! It works as `convertSessionToClientHistory` of Gemini CLI 0.61.0 does: a message of the model
//! becomes a turn of the model and, if its calls have results, a turn of the user.

use std::collections::HashMap;
use std::ops::Range;

use epitome_json::Kind;
use epitome_model::{
    Block, Entry, FieldRemainder, HiddenField, HiddenRecord, Image, Item, Output, Part, Record,
    RepeatedOutput, Role, Span, Thinking, is_left_by_recipe,
};

use super::raw::{self, Content};
use super::tools::{self, TOOLS};
use crate::place::RecordBytes;

/// A description of a call that is longer than this many bytes is assumed to repeat the arguments
/// of the call.
const DESCRIPTION: u64 = 200;

/// Beginnings of texts in the user's role that a resume leaves out.
const NOT_SENT: [&str; 4] = ["/", "?", CONTEXT, "<hook_context>"];

/// The beginning of the text that Gemini CLI puts before every conversation.
pub const CONTEXT: &str = "<session_context>";

/// Whether a resume sends a text in the user's role, judging by its beginning.
pub fn is_sent(text: &str) -> bool {
    !NOT_SENT.iter().any(|start| text.trim_start().starts_with(start))
}

/// A message of the file.
pub struct Message {
    /// The id of the message.
    pub id: Box<str>,
    /// The position of the message.
    pub record: Record,
    /// The content of the message: one item, or two that share the record.
    pub items: Vec<Item>,
    /// The fields that can be removed if a later record repeats the message.
    pub outdated: Vec<HiddenField>,
    /// Whether a resume sends the message.
    pub sent: bool,
}

/// The first character of a placeholder id, which a call or result without an id gets. The name of
/// the tool follows.
const NO_ID: char = '\0';

/// Gives ids to calls and results that have none: the name of the tool, and a number. The calls of
/// each tool are counted, and so are its results.
#[derive(Default)]
pub struct Numbers {
    calls: HashMap<Box<str>, usize>,
    results: HashMap<Box<str>, usize>,
}

impl Numbers {
    /// Sets the id of a call, if it is a placeholder.
    pub fn call(&mut self, id: &mut Box<str>) {
        name(&mut self.calls, id);
    }

    /// Sets the id of the call that a result answers, if it is a placeholder.
    pub fn result(&mut self, id: &mut Box<str>) {
        name(&mut self.results, id);
    }
}

fn name(numbers: &mut HashMap<Box<str>, usize>, id: &mut Box<str>) {
    if let Some(tool) = id.strip_prefix(NO_ID) {
        let number = numbers.entry(tool.into()).or_default();
        *number += 1;
        *id = format!("{tool}#{number}").into();
    }
}

fn no_id(tool: &str) -> Box<str> {
    format!("{NO_ID}{tool}").into()
}

/// Converts a message. Most results become repeated results at first: which results are no
/// repetitions is known only after the whole session was read.
pub fn convert(at: &RecordBytes<'_>, record: Record, raw: &raw::Message) -> Message {
    let kind = at.literal(&raw.kind);
    let mut sent = true;
    let mut entries = match kind {
        Some(b"\"user\"") => {
            let text = words(at, raw.content.as_ref());
            sent = is_sent(&text);
            vec![user(at, raw, &text)]
        }
        Some(b"\"gemini\"") => {
            let mut entries = vec![model(at, raw)];
            if let Some(calls) = raw.calls.array_items(at.line) {
                entries.push(results(at, calls));
            }
            entries
        }
        Some(_) | None => Vec::new(),
    };
    let id = at.maybe(raw.id.as_ref()).unwrap_or_default();
    for entry in &mut entries {
        entry.record = record;
        entry.time = at.maybe(raw.timestamp.as_ref());
    }
    if let Some(first) = entries.first_mut() {
        first.id = Some(id.clone());
    }
    let mut items: Vec<Item> =
        entries.into_iter().map(|entry| Item::Entry(Box::new(entry))).collect();
    if items.is_empty() {
        items.push(Item::Hidden(HiddenRecord { record, hidden_fields: Vec::new() }));
    }
    Message { id, record, items, outdated: outdated(at, raw), sent }
}

/// The text of a user message, with `[` in place of each part that is not a text (a picture, a
/// result, a thought). Whether a resume sends the message depends on how this text begins.
fn words(at: &RecordBytes<'_>, content: Option<&Content>) -> String {
    let Some(content) = content else { return String::new() };
    match content.kind {
        Kind::String => at.text(&content.whole).into(),
        Kind::Array | Kind::Object => {
            let texts = content.parts.iter().map(|part| match &part.text {
                Some(text) if !part.thought && part.response.is_none() => at.text(text),
                // Gemini CLI itself has a text such as `[Function Response: …]` in this place.
                Some(_) | None => "[".into(),
            });
            texts.collect()
        }
        Kind::Other => String::new(),
    }
}

fn user(at: &RecordBytes<'_>, raw: &raw::Message, words: &str) -> Entry {
    let parts = raw.content.as_ref().map_or(&[][..], |content| &content.parts);
    let answers = parts.iter().any(|part| part.response.is_some());
    let mut texts = parts.iter().filter_map(|part| part.text.as_ref());
    // A message whose only texts are stubs of pictures is not a message of the user.
    let speaks = raw.content.as_ref().is_some_and(|content| content.kind == Kind::String)
        || texts.any(|text| !is_left_by_recipe(&at.text(text)));
    let mut blocks: Vec<Block> = whole_text(at, raw.content.as_ref()).into_iter().collect();
    for part in parts {
        blocks.push(match convert_part(at, part, None) {
            // The results of this message are not marked as repeated, so that they stay: without
            // results, the message would become one of the user.
            Block::Repeated(again) if speaks => Block::Output(again.output),
            block => block,
        });
    }
    let by_agent = NOT_SENT[2..].iter().any(|start| words.trim_start().starts_with(start));
    let role = if answers || !speaks {
        Role::Tool
    } else if by_agent {
        Role::System
    } else {
        Role::User
    };
    Entry { role, blocks, ..Entry::default() }
}

fn model(at: &RecordBytes<'_>, raw: &raw::Message) -> Entry {
    let parts = raw.content.as_ref().map_or(&[][..], |content| &content.parts);
    let calls = raw.calls.array_items(at.line).unwrap_or_default();
    let calls_inside = parts.iter().any(|part| part.call.is_some());
    let thinks_inside = parts.iter().any(|part| part.thought);
    let mut entry = Entry { role: Role::Assistant, ..Entry::default() };
    entry.blocks.extend(whole_text(at, raw.content.as_ref()));
    for part in parts {
        if part.thought {
            // A thought in the content is never sent. But while there is one, the calls in
            // `toolCalls` are not sent either. So the thought may be removed only if its removal
            // does not cause these calls to be sent: if there are no such calls, or if the content
            // itself contains calls.
            if calls_inside || calls.is_empty() {
                let value = at.span(&part.whole);
                entry.hidden_fields.push(HiddenField {
                    name: "thought",
                    value,
                    left: FieldRemainder::Nothing,
                });
            }
            continue;
        }
        let block = convert_part(at, part, None);
        if let Some(signature) = part.signature.as_ref().filter(|_| !is_opaque(&block)) {
            let whole = at.span(signature);
            entry.blocks.push(Block::Thinking(Thinking { text: None, whole, removable: true }));
        }
        entry.blocks.push(block);
    }
    let calls_are_sent = !calls_inside && !thinks_inside;
    for call in calls {
        if calls_are_sent && let Some(block) = self::call(at, [&call.id, &call.name, &call.args]) {
            entry.blocks.push(block);
        }
        entry.hidden_fields.extend(unseen(at, call, calls_inside));
    }
    entry.hidden_fields.extend(at.hidden("thoughts", &raw.thoughts, FieldRemainder::Nothing));
    entry.model = at.maybe(raw.model.as_ref());
    entry.usage = raw.tokens.as_ref().map(raw::Tokens::usage);
    entry
}

/// Parts of a call in `toolCalls` that a resume never sends. `said_elsewhere` is whether the
/// content of the message contains calls: then these are sent, and the arguments of `call` are not.
fn unseen(at: &RecordBytes<'_>, call: &raw::ToolCall, said_elsewhere: bool) -> Vec<HiddenField> {
    let description = call.description.clone().filter(|place| place.len() as u64 > DESCRIPTION);
    let args = call.args.clone().filter(|args| said_elsewhere && at.line[args.start] == b'{');
    let hidden_fields = [
        at.hidden("resultDisplay", &call.display, FieldRemainder::Nothing),
        at.hidden("description", &description, FieldRemainder::Nothing),
        at.hidden("args", &args, FieldRemainder::EmptyObject),
    ];
    hidden_fields.into_iter().flatten().collect()
}

fn results(at: &RecordBytes<'_>, calls: &[raw::ToolCall]) -> Entry {
    let mut entry = Entry { role: Role::Tool, ..Entry::default() };
    for call in calls {
        let Some(result) = &call.result else { continue };
        match result.kind {
            Kind::String if result.whole.len() > 2 => {
                let name = at.maybe(call.name.as_ref()).unwrap_or_default();
                let whole = at.span(&result.whole);
                let output = Output {
                    call: at.maybe(call.id.as_ref()).unwrap_or_else(|| no_id(&name)),
                    parts: vec![Part::Text(at.source(&result.whole))],
                    whole,
                    from_user: tools::is_answered_by_user(&name),
                    ..Output::default()
                };
                entry.blocks.push(Block::Repeated(RepeatedOutput { output, whole }));
            }
            Kind::Array | Kind::Object => {
                let parts = result.parts.iter();
                entry.blocks.extend(parts.map(|part| convert_part(at, part, call.id.as_ref())));
            }
            Kind::String | Kind::Other => {}
        }
    }
    entry
}

/// The text of a content that is one string. `None` if the content is missing, is empty, or is not
/// a string.
fn whole_text(at: &RecordBytes<'_>, content: Option<&Content>) -> Option<Block> {
    let content = content.filter(|it| it.kind == Kind::String && it.whole.len() > 2)?;
    Some(Block::Text(at.source(&content.whole)))
}

fn convert_part(at: &RecordBytes<'_>, part: &raw::Part, call: Option<&Range<usize>>) -> Block {
    let opaque = Block::Opaque(at.span(&part.whole));
    // An empty text with a signature must be kept: without the signature, Gemini CLI would leave
    // out the whole turn.
    let holds_signature =
        part.text.as_ref().is_some_and(|text| text.len() == 2) && part.signature.is_some();
    if part.other || part.thought || holds_signature {
        return opaque;
    }
    match (&part.response, &part.call, &part.inline.data, &part.text) {
        (Some(response), None, None, None) => {
            let output = output(at, response, call);
            if output.whole.is_empty() {
                return Block::Output(output);
            }
            Block::Repeated(RepeatedOutput { output, whole: at.span(&part.whole) })
        }
        (None, Some(raw), None, None) => {
            self::call(at, [&raw.id, &raw.name, &raw.args]).unwrap_or(opaque)
        }
        (None, None, Some(data), None) => {
            let media = at.maybe(part.inline.media.as_ref()).unwrap_or_else(|| "image".into());
            let data = at.span(data);
            let whole = at.span(&part.whole);
            if media.starts_with("image/") {
                Block::Image(Image { media, data, whole })
            } else {
                opaque
            }
        }
        (None, None, None, Some(text)) => Block::Text(at.source(text)),
        _ => opaque,
    }
}

fn is_opaque(block: &Block) -> bool {
    matches!(block, Block::Opaque(_))
}

fn call(at: &RecordBytes<'_>, [id, name, args]: [&Option<Range<usize>>; 3]) -> Option<Block> {
    let place = name.as_ref()?;
    let name = at.text(place);
    let id = at.maybe(id.as_ref()).unwrap_or_else(|| no_id(&name));
    // A call without arguments gets an empty range before its name instead.
    let args = args.clone().unwrap_or(place.start..place.start);
    Some(Block::Call(at.call(TOOLS, id, name, &args)))
}

fn output(at: &RecordBytes<'_>, raw: &raw::Response, call: Option<&Range<usize>>) -> Output {
    let name = at.maybe(raw.name.as_ref()).unwrap_or_default();
    let id = at.maybe(raw.id.as_ref().or(call));
    let body = raw.body.as_ref();
    let error = body.and_then(|body| body.error.as_ref());
    let text = body.and_then(|body| body.output.as_ref()).or(error);
    let text = text.filter(|_| body.is_some_and(|body| body.members == 1));
    let mut parts = Vec::new();
    let mut whole = Span::default();
    if let Some(text) = text {
        whole = at.span(text);
        parts.push(Part::Text(at.source(text)));
    } else if let Some(body) = body {
        whole = at.span(&body.whole);
        parts.push(Part::Opaque(whole));
    }
    parts.extend(raw.parts.items.iter().map(|part| match convert_part(at, part, None) {
        // The stub of a picture is written into the text of the result. If there is no text, the
        // picture is opaque, so that it stays.
        Block::Image(image) if text.is_some() => Part::Image(image),
        _ => Part::Opaque(at.span(&part.whole)),
    }));
    // A value that is not a list of parts is opaque.
    let other = raw.parts.whole.iter().filter(|place| at.line[place.start] != b'[');
    parts.extend(other.map(|place| Part::Opaque(at.span(place))));
    Output {
        call: id.unwrap_or_else(|| no_id(&name)),
        error: error.is_some(),
        parts,
        whole,
        from_user: tools::is_answered_by_user(&name),
        ..Output::default()
    }
}

/// The fields that can be removed from a message that a later record repeats. The id of the message
/// is kept, because it determines the position.
fn outdated(at: &RecordBytes<'_>, raw: &raw::Message) -> Vec<HiddenField> {
    let mut hidden_fields = Vec::new();
    if let Some(content) = &raw.content {
        let left = match content.kind {
            Kind::Array => FieldRemainder::EmptyArray,
            Kind::String => FieldRemainder::EmptyText,
            Kind::Object | Kind::Other => FieldRemainder::Nothing,
        };
        hidden_fields.push(HiddenField { name: "content", value: at.span(&content.whole), left });
    }
    if let Some(calls) = raw.calls.whole.as_ref().filter(|place| at.line[place.start] == b'[') {
        // An empty list remains: whether there is a list determines how many items share the
        // record.
        let value = at.span(calls);
        hidden_fields.push(HiddenField {
            name: "toolCalls",
            value,
            left: FieldRemainder::EmptyArray,
        });
    }
    hidden_fields.extend(at.hidden("thoughts", &raw.thoughts, FieldRemainder::Nothing));
    hidden_fields.extend(at.hidden("displayContent", &raw.display, FieldRemainder::Nothing));
    hidden_fields
}
