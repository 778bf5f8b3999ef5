//! Converts records into a transcript.
//!
//! It works as `SessionService.loadSession` and `buildApiHistoryFromConversation` of Qwen Code
//! 0.15.10 do: a resume sends the messages on the path through the tree of records that ends at the
//! last record. After a compaction, it sends the history in the record of the compaction and the
//! messages after that record.

use epitome_json::{Document, Value};
use epitome_model::{
    Block, CacheUse, Entry, Faults, FieldRemainder, HiddenField, Image, Output, Part,
    RecordedUsage, Role, Source, Span, Thinking, Transcript,
};

use crate::accounting;
use crate::place::RecordBytes;
use crate::records::{self, RecordContent, Records, TranscriptBuilder};
use crate::tree::Orphan;

/// Kinds of records.
const KINDS: [&str; 4] = ["user", "assistant", "tool_result", "system"];

/// Subtypes of messages that the agent wrote in the user's role.
const BY_AGENT: [&str; 5] =
    ["notification", "background_task_completed", "cron", "goal_runtime", "agent_bootstrap"];

/// Whether one of the first records has a `uuid` and a `sessionId`, as Claude Code's records do,
/// and either a message of Gemini's API or a payload that only Qwen Code writes.
pub fn sniff(head: &[u8]) -> bool {
    records::sniff(head, |record| {
        let is_message = record.get_path(&["message", "parts"]).is_some_and(Value::is_list);
        let is_own = record.is("type", "system") && record.get("systemPayload").is_some();
        record.get("uuid").is_some() && record.get("sessionId").is_some() && (is_message || is_own)
    })
}

/// Reads a session.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    records::read::<Reader>(source, faults)
}

#[derive(Default)]
struct Reader {
    /// The items of each compaction: the entries of the history that replaces the messages before
    /// it.
    compactions: Vec<std::ops::Range<usize>>,
    /// The indices of items with messages.
    messages: Vec<usize>,
}

impl Records for Reader {
    type Record<'a> = Document<'a>;

    fn record(
        &mut self,
        session: &mut TranscriptBuilder<'_>,
        _: &RecordBytes<'_>,
        record: Document<'_>,
    ) -> RecordContent {
        let record = &record.root;
        let kind = record.text_of("type").unwrap_or_default();
        session.unknown("a record of a kind", &kind, &KINDS);
        session.head(
            || record.boxed_text_of("sessionId"),
            || record.boxed_text_of("cwd"),
            || record.boxed_text_of("version"),
        );
        let item = session.next();
        if let Some(id) = record.boxed_text_of("uuid") {
            session.node(id, record.boxed_text_of("parentUuid"));
        }
        if kind == "system" {
            return self.system(session, record);
        }
        let hidden_fields = hidden_fields(record);
        let Some(message) = record.get("message").filter(|it| it.is_object()) else {
            return RecordContent::nothing(hidden_fields);
        };
        let mut entry = entry_of(message, false);
        entry.role = role(record, message, &entry);
        entry.id = record.boxed_text_of("uuid");
        entry.parent = record.boxed_text_of("parentUuid");
        entry.time = record.boxed_text_of("timestamp");
        entry.model = record.boxed_text_of("model");
        entry.usage = record.get("usageMetadata").and_then(usage);
        self.messages.push(item);
        RecordContent { entries: vec![entry], hidden_fields, ..RecordContent::default() }
    }

    fn finish(self, session: &mut TranscriptBuilder<'_>) {
        let path = session.path(Orphan::Ends);
        let last = self.compactions.iter().rfind(|items| path.binary_search(&items.start).is_ok());
        let from = last.map_or(0, |items| items.end);
        let behind = path.iter().copied();
        let behind = behind.filter(|item| *item >= from && self.messages.contains(item));
        session.transcript.context = last.cloned().into_iter().flatten().chain(behind).collect();
    }
}

impl Reader {
    /// Reads a record of the agent's own: a compaction, a title, or a value that is only displayed.
    fn system(&mut self, session: &mut TranscriptBuilder<'_>, record: &Value<'_>) -> RecordContent {
        let payload = record.get("systemPayload");
        if let Some(title) = payload.and_then(|payload| payload.text_of("customTitle")) {
            session.name(&title);
        }
        let history = payload.map_or(&[][..], |payload| payload.list_of("compressedHistory"));
        if !record.is("subtype", "chat_compression") || history.is_empty() {
            return RecordContent::nothing(hidden_fields(record));
        }
        let start = session.next();
        self.compactions.push(start..start + history.len());
        let entries = history.iter().enumerate().map(|(idx, message)| {
            let mut entry = entry_of(message, idx == 0);
            entry.role = match message.text_of("role").as_deref() {
                Some("model") => Role::Assistant,
                _ if idx == 0 => Role::System,
                _ if has_output(&entry) => Role::Tool,
                _ => Role::User,
            };
            entry.repeated = true;
            entry
        });
        RecordContent { entries: entries.collect(), ..RecordContent::default() }
    }
}

fn has_output(entry: &Entry) -> bool {
    entry.blocks.iter().any(|block| matches!(block, Block::Output(_)))
}

fn role(record: &Value<'_>, message: &Value<'_>, entry: &Entry) -> Role {
    let subtype = record.text_of("subtype").unwrap_or_default();
    if message.is("role", "model") {
        Role::Assistant
    } else if record.is("type", "tool_result") || has_output(entry) {
        Role::Tool
    } else if BY_AGENT.contains(&&*subtype) {
        Role::System
    } else {
        Role::User
    }
}

/// The entry of a message in the form of Gemini's API. `is_summary` is whether its texts are a
/// summary.
fn entry_of(message: &Value<'_>, is_summary: bool) -> Entry {
    let mut entry = Entry::default();
    for part in message.list_of("parts") {
        entry.blocks.push(match block(part) {
            Block::Text(text) if is_summary => Block::Summary(text),
            block => block,
        });
    }
    entry
}

fn block(part: &Value<'_>) -> Block {
    let opaque = Block::Opaque(part.span());
    let text = part.string("text");
    if part.get("thought").is_some_and(Value::is_true) {
        let text = text.map(Value::to_source_text);
        return Block::Thinking(Thinking { text, whole: part.span(), removable: true });
    }
    if let Some(text) = text {
        return Block::Text(text.to_source_text());
    }
    if let Some(call) = part.get("functionCall") {
        return function_call(call).unwrap_or(opaque);
    }
    if let Some(response) = part.get("functionResponse") {
        return Block::Output(output(response));
    }
    match part.get("inlineData") {
        Some(data) => image(data, part).map_or(opaque, Block::Image),
        None => opaque,
    }
}

fn function_call(call: &Value<'_>) -> Option<Block> {
    let id = call.text_of("id")?;
    let name = call.text_of("name")?;
    let arguments = call.get("args")?;
    Some(Block::Call(epitome_api::call(&id, &name, arguments)))
}

fn image(data: &Value<'_>, whole: &Value<'_>) -> Option<Image> {
    let media = data.boxed_text_of("mimeType").filter(|media| media.starts_with("image/"))?;
    let data = data.string("data")?;
    Some(Image { media, data: data.span(), whole: whole.span() })
}

fn output(response: &Value<'_>) -> Output {
    let body = response.get("response");
    let output = text_of(body, "output");
    let error = text_of(body, "error");
    let mut parts = Vec::new();
    let mut whole = Span::default();
    if let Some(text) = output.or(error) {
        whole = text.span();
        parts.push(Part::Text(text.to_source_text()));
    } else if let Some(body) = body {
        whole = body.span();
        parts.push(Part::Opaque(whole));
    }
    let more = response.list_of("parts").iter().map(|part| Part::Opaque(part.span()));
    parts.extend(more);
    let name = response.text_of("name").unwrap_or_default();
    Output {
        call: response.boxed_text_of("id").unwrap_or_default(),
        error: output.is_none() && error.is_some(),
        parts,
        whole,
        from_user: matches!(&*name, "ask_user_question" | "exit_plan_mode"),
        ..Output::default()
    }
}

fn text_of<'v, 'a>(object: Option<&'v Value<'a>>, key: &str) -> Option<&'v Value<'a>> {
    object.and_then(|object| object.string(key))
}

fn usage(usage: &Value<'_>) -> Option<RecordedUsage> {
    let cached = usage.integer_of("cachedContentTokenCount");
    // The tokens of thoughts are included in `candidatesTokenCount`: recorded totals show this.
    Some(RecordedUsage {
        input: usage.integer_of("promptTokenCount")?,
        output: usage.integer_of("candidatesTokenCount").unwrap_or(0),
        cache: cached.map(|read| CacheUse { read, written: 0 }),
        cost: None,
    })
}

/// Parts of a record that no request contains: the displayed form of a result, and telemetry that
/// repeats calls and answers.
fn hidden_fields(record: &Value<'_>) -> Vec<HiddenField> {
    const UNSEEN: [(&str, &[&str], FieldRemainder); 3] = [
        ("resultDisplay", &["toolCallResult", "resultDisplay"], FieldRemainder::Nothing),
        (
            "function_args",
            &["systemPayload", "uiEvent", "function_args"],
            FieldRemainder::EmptyObject,
        ),
        (
            "response_text",
            &["systemPayload", "uiEvent", "response_text"],
            FieldRemainder::EmptyText,
        ),
    ];
    let hidden_fields = UNSEEN.into_iter().filter_map(|(name, path, left)| {
        let value = record.get_path(path)?;
        let is_as_left = match left {
            FieldRemainder::EmptyObject => value.is_object(),
            FieldRemainder::EmptyText => value.is_text(),
            FieldRemainder::EmptyArray => value.is_list(),
            FieldRemainder::Nothing => true,
        };
        is_as_left.then(|| accounting::hidden(name, value, left))
    });
    hidden_fields.collect()
}
