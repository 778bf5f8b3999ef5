//! Converts records into a transcript.
//!
//! It works as `SessionService.loadSession` and `buildApiHistoryFromConversation` of Qwen Code
//! 0.15.10 do: a resume sends the messages of all records or, after a compaction, the history in
//! the record of the compaction and the messages after it.

use epitome_json::{Document, Value};
use epitome_model::{
    Block, CacheUse, Entry, Faults, HiddenField, Image, Left, Output, Part, Role, Source, Span,
    Thinking, Transcript, Usage,
};

use crate::place::Place;
use crate::records::{self, RecordContent, Records, SessionReader};
use crate::tree::Orphan;

/// Kinds of records.
const KINDS: [&str; 4] = ["user", "assistant", "tool_result", "system"];

/// Subtypes of messages that the agent wrote in the user's role.
const BY_AGENT: [&str; 5] =
    ["notification", "background_task_completed", "cron", "goal_runtime", "agent_bootstrap"];

/// Whether a record has ids like Claude Code's and messages of Gemini's API, or is a record that
/// only Qwen Code writes.
pub fn sniff(head: &[u8]) -> bool {
    records::sniff(head, |record| {
        let is_message = record.at(&["message", "parts"]).is_some_and(Value::is_list);
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
    /// The items of each compaction: the entries of the history that a resume sends after it.
    compactions: Vec<std::ops::Range<usize>>,
    /// The indices of items with messages.
    messages: Vec<usize>,
}

impl Records for Reader {
    type Record<'a> = Document<'a>;

    fn record(
        &mut self,
        session: &mut SessionReader<'_>,
        _: &Place<'_>,
        record: Document<'_>,
    ) -> RecordContent {
        let record = &record.root;
        let kind = record.word("type").unwrap_or_default();
        session.unknown("a record of a kind", &kind, &KINDS);
        session.head(
            || record.boxed("sessionId"),
            || record.boxed("cwd"),
            || record.boxed("version"),
        );
        let item = session.next();
        if let Some(id) = record.boxed("uuid") {
            session.node(id, record.boxed("parentUuid"));
        }
        if kind == "system" {
            return self.system(session, record);
        }
        let copies = copies(record);
        let Some(message) = record.get("message").filter(|it| it.is_object()) else {
            return RecordContent::nothing(copies);
        };
        let mut entry = entry_of(message, false);
        entry.role = role(record, message, &entry);
        entry.id = record.boxed("uuid");
        entry.parent = record.boxed("parentUuid");
        entry.time = record.boxed("timestamp");
        entry.model = record.boxed("model");
        entry.usage = record.get("usageMetadata").and_then(usage);
        self.messages.push(item);
        RecordContent { entries: vec![entry], copies, ..RecordContent::default() }
    }

    fn finish(self, session: &mut SessionReader<'_>) {
        let path = session.path(Orphan::Ends);
        let is_on_path = |start: &usize| path.binary_search(start).is_ok();
        let last = self.compactions.iter().rev().find(|items| is_on_path(&items.start));
        let from = last.map_or(0, |items| items.end);
        let behind = path.iter().copied();
        let behind = behind.filter(|item| *item >= from && self.messages.contains(item));
        session.transcript.context = last.cloned().into_iter().flatten().chain(behind).collect();
    }
}

impl Reader {
    /// Reads a record of the agent's own: a compaction, a title, or a value that is only displayed.
    fn system(&mut self, session: &mut SessionReader<'_>, record: &Value<'_>) -> RecordContent {
        let payload = record.get("systemPayload");
        if let Some(title) = payload.and_then(|payload| payload.word("customTitle")) {
            session.name(&title);
        }
        let history = payload.map_or(&[][..], |payload| payload.list_of("compressedHistory"));
        if !record.is("subtype", "chat_compression") || history.is_empty() {
            return RecordContent::nothing(copies(record));
        }
        let start = session.next();
        self.compactions.push(start..start + history.len());
        let entries = history.iter().enumerate().map(|(idx, message)| {
            let mut entry = entry_of(message, idx == 0);
            entry.role = match message.word("role").as_deref() {
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
    let subtype = record.word("subtype").unwrap_or_default();
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

/// The entry of a message in the form of Gemini's API. `is_summary` is whether its first text is a
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
        let text = text.map(Value::source);
        return Block::Thinking(Thinking { text, whole: part.span(), removable: true });
    }
    if let Some(text) = text {
        return Block::Text(text.source());
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
    let (id, name, arguments) = (call.word("id")?, call.word("name")?, call.get("args")?);
    Some(Block::Call(epitome_api::call(&id, &name, arguments)))
}

fn image(data: &Value<'_>, whole: &Value<'_>) -> Option<Image> {
    let media = data.boxed("mimeType").filter(|media| media.starts_with("image/"))?;
    let data = data.string("data")?;
    Some(Image { media, data: data.span(), whole: whole.span() })
}

fn output(response: &Value<'_>) -> Output {
    let body = response.get("response");
    let member = |key| body.and_then(|body| body.get(key)).filter(|text| text.is_text());
    let (output, error) = (member("output"), member("error"));
    let mut parts = Vec::new();
    let mut whole = Span::default();
    if let Some(text) = output.or(error) {
        whole = text.span();
        parts.push(Part::Text(text.source()));
    } else if let Some(body) = body {
        whole = body.span();
        parts.push(Part::Opaque(whole));
    }
    let more = response.list_of("parts").iter().map(|part| Part::Opaque(part.span()));
    parts.extend(more);
    let name = response.word("name").unwrap_or_default();
    Output {
        call: response.boxed("id").unwrap_or_default(),
        error: output.is_none() && error.is_some(),
        parts,
        whole,
        from_user: matches!(&*name, "ask_user_question" | "exit_plan_mode"),
        ..Output::default()
    }
}

fn usage(usage: &Value<'_>) -> Option<Usage> {
    let count = |key| usage.get(key).and_then(Value::integer);
    let cache = |read| CacheUse { read, written: 0 };
    // Thoughts are counted as part of the candidates, as totals in recorded sessions show.
    Some(Usage {
        input: count("promptTokenCount")?,
        output: count("candidatesTokenCount").unwrap_or(0),
        cache: count("cachedContentTokenCount").map(cache),
        cost: None,
    })
}

/// Parts of a record that no request contains: the displayed form of a result, and telemetry that
/// repeats calls and answers.
fn copies(record: &Value<'_>) -> Vec<HiddenField> {
    const UNSEEN: [(&str, &[&str], Left); 3] = [
        ("resultDisplay", &["toolCallResult", "resultDisplay"], Left::Nothing),
        ("function_args", &["systemPayload", "uiEvent", "function_args"], Left::EmptyObject),
        ("response_text", &["systemPayload", "uiEvent", "response_text"], Left::EmptyText),
    ];
    let copy = |(name, path, left): (&'static str, &[&str], Left)| {
        let value = record.at(path)?;
        let is_as_left = match left {
            Left::EmptyObject => value.is_object(),
            Left::EmptyText => value.is_text(),
            Left::EmptyArray => value.is_list(),
            Left::Nothing => true,
        };
        is_as_left.then(|| HiddenField { name, value: value.span(), left })
    };
    UNSEEN.into_iter().filter_map(copy).collect()
}
