//! Converts events into a transcript.
//!
//! The names of events and members are those of `session-events.schema.json`, from which the public
//! repository `github/copilot-sdk` generates its types.

use epitome_json::{Document, Value};
use epitome_model::{
    Block, Call, Entry, Faults, FieldRemainder, HiddenField, Output, Part, Role, Source, Span,
    Thinking, Transcript,
};

use super::tools::TOOLS;
use crate::place::RecordBytes;
use crate::records::{self, ContextEffect, RecordContent, Records, TranscriptBuilder};
use crate::{accounting, lines};

/// Whether the first event is `session.start`: every log begins with this event.
pub fn sniff(head: &[u8]) -> bool {
    let mut known = false;
    lines(&head, |line| {
        if line.record.line > 1 {
            return;
        }
        known = match Document::parse(line.bytes) {
            Ok(event) => {
                let has_data = event.root.get("data").is_some_and(Value::is_object);
                event.root.is("type", "session.start") && has_data
            }
            // The head may end within the first event.
            Err(_) => {
                let start = br#"{"type":"session.start","data":{"#;
                !line.ended && line.bytes.starts_with(start)
            }
        };
    });
    known
}

/// Reads a log.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    records::read::<Reader>(source, faults)
}

#[derive(Default)]
struct Reader;

impl Records for Reader {
    type Record<'a> = Document<'a>;

    fn record(
        &mut self,
        session: &mut TranscriptBuilder<'_>,
        at: &RecordBytes<'_>,
        record: Document<'_>,
    ) -> RecordContent {
        let event = &record.root;
        let kind = event.text_of("type").unwrap_or_default();
        let data = event.get("data").filter(|data| data.is_object());
        read_head(session, &kind, data);
        if let Some(id) = event.text_of("id") {
            session.check_id(&id);
        }
        if kind == "session.context_cleared" {
            session.forget();
        }
        let hidden_fields = data.map(hidden_fields).unwrap_or_default();
        let Some((entry, effect)) = entry(at, &kind, data) else {
            return RecordContent::nothing(hidden_fields);
        };
        let is_aside = event.string("agentId").is_some()
            || data.is_some_and(|data| data.string("parentToolCallId").is_some());
        if kind == "user.message"
            && let Some(typed) = data.and_then(|data| data.text_of("content"))
        {
            session.title(&typed);
        }
        let entry = Entry {
            id: event.boxed_text_of("id"),
            parent: event.boxed_text_of("parentId"),
            time: event.boxed_text_of("timestamp"),
            ..entry
        };
        let effect = if is_aside { ContextEffect::Unchanged } else { effect };
        RecordContent { entries: vec![entry], hidden_fields, effect }
    }
}

fn read_head(session: &mut TranscriptBuilder<'_>, kind: &str, data: Option<&Value<'_>>) {
    let Some(data) = data else { return };
    match kind {
        "session.start" | "session.resume" | "session.context_changed" => {
            session.head(
                || data.boxed_text_of("sessionId"),
                || data.get("context").and_then(|context| context.boxed_text_of("cwd")),
                || data.boxed_text_of("copilotVersion"),
            );
        }
        "session.title_changed" => {
            if let Some(title) = data.text_of("title") {
                session.name(&title);
            }
        }
        _ => {}
    }
}

fn entry(
    at: &RecordBytes<'_>,
    kind: &str,
    data: Option<&Value<'_>>,
) -> Option<(Entry, ContextEffect)> {
    match kind {
        "system.message" => {
            Some((says(Role::System, text(data, &["content"])), ContextEffect::Prompt))
        }
        "system.notification" => {
            Some((says(Role::System, text(data, &["content"])), ContextEffect::Adds))
        }
        "user.message" => {
            let blocks = text(data, &["transformedContent", "content"]);
            Some((says(Role::User, blocks), ContextEffect::Adds))
        }
        "assistant.message" => {
            let mut entry =
                says(Role::Assistant, data.map(|data| response(at, data)).unwrap_or_default());
            entry.group = data.and_then(|data| data.boxed_text_of("messageId"));
            entry.model = data.and_then(|data| data.boxed_text_of("model"));
            Some((entry, ContextEffect::Adds))
        }
        "tool.execution_complete" => {
            Some((says(Role::Tool, vec![Block::Output(output(data))]), ContextEffect::Adds))
        }
        // A failed compaction has no summary, and changed nothing.
        "session.compaction_complete" => {
            let summary = data?.string("summaryContent")?;
            Some((
                says(Role::System, vec![Block::Summary(summary.to_source_text())]),
                ContextEffect::Compacts,
            ))
        }
        _ => None,
    }
}

fn says(role: Role, blocks: Vec<Block>) -> Entry {
    Entry { role, blocks, ..Entry::default() }
}

/// The first member of `keys` whose value is a text, as a block. Empty if there is no such member.
fn text(data: Option<&Value<'_>>, keys: &[&str]) -> Vec<Block> {
    let found = data.and_then(|data| keys.iter().find_map(|key| data.string(key)));
    found.map(|text| Block::Text(text.to_source_text())).into_iter().collect()
}

fn response(at: &RecordBytes<'_>, data: &Value<'_>) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(whole) = reasoning(data) {
        let text = data.string("reasoningText").map(Value::to_source_text);
        blocks.push(Block::Thinking(Thinking { text, whole, removable: false }));
    }
    // A response with only calls has an empty text, which is not sent.
    let content = data.string("content").filter(|text| text.raw().len() > 2);
    blocks.extend(content.map(|text| Block::Text(text.to_source_text())));
    let requests = data.list_of("toolRequests").iter();
    blocks.extend(requests.filter_map(|request| call(at, request)).map(Block::Call));
    blocks
}

fn call(at: &RecordBytes<'_>, request: &Value<'_>) -> Option<Call> {
    let id = request.boxed_text_of("toolCallId")?;
    let name = request.string("name")?;
    // Every call needs a range of arguments: a call without arguments gets an empty range after its
    // name.
    let end = name.range().end;
    let arguments = request.get("arguments").map_or(end..end, |it| it.range().clone());
    Some(at.call(TOOLS, id, name.text()?.into(), &arguments))
}

/// The span of the reasoning; `None` if there is no reasoning. If the text and the signature of the
/// reasoning are next to each other, the span covers both. If they are apart, the span covers only
/// the signature. If one of the two is missing, the span covers the other.
fn reasoning(data: &Value<'_>) -> Option<Span> {
    let seal = data.string("reasoningOpaque").or_else(|| data.string("encryptedContent"));
    let (words, seal) = match (data.string("reasoningText"), seal) {
        (Some(words), Some(seal)) => (words.span(), seal.span()),
        (one, other) => return one.or(other).map(Value::span),
    };
    let hull = Span { start: words.start.min(seal.start), end: words.end.max(seal.end) };
    let between = "\"reasoningOpaque\": , ".len() as u64;
    let are_neighbours = hull.len() < words.len() + seal.len() + between;
    Some(if are_neighbours { hull } else { seal })
}

fn output(data: Option<&Value<'_>>) -> Output {
    let result = data.and_then(|data| data.get("result")?.string("content"));
    let error = data.and_then(|data| data.get("error"));
    let message = error.and_then(|error| error.string("message"));
    let place = result.or(error.filter(|error| error.is_text())).or(message);
    Output {
        call: data.and_then(|data| data.boxed_text_of("toolCallId")).unwrap_or_default(),
        error: data.and_then(|data| data.get("success")).is_some_and(|it| it.raw() == b"false"),
        parts: place.iter().map(|text| Part::Text(text.to_source_text())).collect(),
        whole: place.map_or_else(Span::default, Value::span),
        ..Output::default()
    }
}

/// Values that no model sees: repetitions of other values, telemetry, and values that are only
/// displayed.
fn hidden_fields(data: &Value<'_>) -> Vec<HiddenField> {
    const UNSEEN: [(&str, &[&str]); 5] = [
        ("arguments", &["arguments"]),
        ("input", &["input"]),
        ("output", &["output"]),
        ("toolTelemetry", &["toolTelemetry"]),
        ("detailedContent", &["result", "detailedContent"]),
    ];
    let found = UNSEEN.iter().filter_map(|(name, path)| {
        Some(accounting::hidden(name, data.get_path(path)?, FieldRemainder::Nothing))
    });
    let mut hidden_fields: Vec<HiddenField> = found.collect();
    hidden_fields.sort_by_key(|field| field.value);
    if data.string("transformedContent").is_some() {
        let typed = data.string("content");
        hidden_fields.extend(
            typed.map(|typed| accounting::hidden("content", typed, FieldRemainder::Nothing)),
        );
    }
    hidden_fields
}
