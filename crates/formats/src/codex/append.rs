//! Writes Codex's own record of a replaced history. The record contains everything that is still
//! sent.
//!
//! Codex writes `compacted` with a `replacement_history` when it compacts by itself. After that
//! record it writes the world state and the turn context again: without them it would send its
//! environment to the model once more. It also writes the new size of the context, from which a
//! resume computes whether the context is full.

use std::collections::HashMap;
use std::ops::Range;

use epitome_json::Cursor;
use epitome_json::write::{self, Unwritable};
use epitome_model::{At, Block, Edit, Entry, Part, Source, Span, Splice, Transcript, Verb, encode};

use super::{SHAPES, raw};
use crate::accounting;
use crate::lines;
use crate::place::RecordBytes;

/// The lines that apply `edits`, to be appended to a rollout.
///
/// # Errors
///
/// [`Unwritable`] if an item is not as Codex writes it (Codex could not read the record then), if
/// an edit cannot be written, if the rollout continues another one, or if no record has a time.
pub fn append(
    transcript: &Transcript,
    source: &dyn Source,
    edits: &[Edit],
) -> Result<Vec<u8>, Unwritable> {
    let Some(first) = edits.first() else { return Ok(Vec::new()) };
    let not_written = |why| Unwritable { at: first.at, why };
    let splices: Vec<Splice> = write::splices(transcript, source, edits, &SHAPES)?
        .into_iter()
        .map(|(splice, _)| splice)
        .collect();
    let mut history = String::new();
    let nth = Nth::from_transcript(transcript);
    for (item, entry) in transcript.context() {
        let place = nth.place(source, item, entry).ok_or_else(|| not_written(MALFORMED))?;
        if is_dropped(item, entry, edits) {
            continue;
        }
        if !history.is_empty() {
            history.push(',');
        }
        let item = match place {
            HistoryItem::Value(span) => write::apply_splices(source, span, &splices),
            HistoryItem::Summary(literal) => Some(summary(&literal)),
        };
        history.push_str(&item.ok_or_else(|| not_written(MALFORMED))?);
    }
    after_last_record(source, "", &history).map_err(not_written)
}

/// Whether the edits drop every block of an entry. True for an entry without blocks.
fn is_dropped(item: usize, entry: &Entry, edits: &[Edit]) -> bool {
    (0..entry.blocks.len()).all(|block| {
        let at = At::Block { item, block };
        edits.iter().any(|edit| edit.at == at && edit.verb == Verb::Drop)
    })
}

/// The lines that replace the history. `message` is the text of a summary, or empty; `history` are
/// the items that are still sent, separated by commas.
///
/// # Errors
///
/// The reason, if the rollout continues another one, or if no record has a time.
pub fn after_last_record(
    source: &dyn Source,
    message: &str,
    history: &str,
) -> Result<Vec<u8>, &'static str> {
    let last = Last::read(source);
    if last.has_base {
        return Err("it continues another rollout, which a record would leave out");
    }
    let timestamp = last.timestamp.as_deref().ok_or("no record has a time")?;
    let mut lines = Lines { bytes: Vec::new(), timestamp, ordinal: last.ordinal };
    if !last.ended {
        lines.bytes.push(b'\n');
    }
    let message = encode(message);
    let compacted = format!(r#"{{"message":{message},"replacement_history":[{history}]}}"#);
    lines.push("compacted", &compacted);
    for world in &last.world {
        lines.push("world_state", world);
    }
    if let Some(turn) = &last.turn {
        lines.push("turn_context", turn);
    }
    // Four bytes are counted as one token, as Codex does.
    if let Some(count) = last.count.and_then(|count| count.with(history.len() as u64 / 4)) {
        lines.push("event_msg", &count);
    }
    Ok(lines.bytes)
}

/// A `token_count` line that sets the size of the context to `tokens`, or to the last recorded size
/// if that is smaller; `None` if the rollout has no `token_count` that states a size, or no record
/// has a time.
pub fn count(source: &dyn Source, tokens: u64) -> Option<Vec<u8>> {
    let last = Last::read(source);
    let count = last.count?;
    let tokens = count.total()?.min(tokens);
    let timestamp = last.timestamp.as_deref()?;
    let mut lines = Lines { bytes: Vec::new(), timestamp, ordinal: last.ordinal };
    if !last.ended {
        lines.bytes.push(b'\n');
    }
    lines.push("event_msg", &count.with(tokens)?);
    Some(lines.bytes)
}

/// Why the JSON of an item cannot be copied into a new record.
pub const MALFORMED: &str = "an item of the session is not as Codex writes it";

/// An item of the history.
pub enum HistoryItem {
    /// A value that is in the file.
    Value(Span),
    /// The string literal of a summary. An old version of Codex wrote it, and did not store it as
    /// an item.
    Summary(String),
}

/// The item that current versions of Codex write for a summary. `literal` is its text as a string
/// literal.
pub fn summary(literal: &str) -> String {
    let content = format!(r#"[{{"type":"input_text","text":{literal}}}]"#);
    let what = r#"{"content_item_kinds":["compaction.summary"]}"#;
    let passthrough = format!(r#""internal_chat_message_metadata_passthrough":{what}"#);
    format!(r#"{{"type":"message","role":"user","content":{content},{passthrough}}}"#)
}

/// For each item, its position among the items of the same record.
pub struct Nth {
    /// For each item, the number of items before it in the same record.
    before: HashMap<usize, usize>,
}

impl Nth {
    /// Counts the items of each record.
    pub fn from_transcript(transcript: &Transcript) -> Nth {
        let mut before = HashMap::new();
        let mut last: Option<(Span, usize)> = None;
        for (idx, item) in transcript.items.iter().enumerate() {
            let record = item.record().span;
            let n = match last {
                Some((span, n)) if span == record => n + 1,
                Some(_) | None => 0,
            };
            before.insert(idx, n);
            last = Some((record, n));
        }
        Nth { before }
    }

    /// Where the JSON of an item is, so that it can be copied into a new history. `None` if the
    /// record of the item has no such JSON, or if Codex could not read it.
    pub fn place(&self, source: &dyn Source, item: usize, entry: &Entry) -> Option<HistoryItem> {
        let record = entry.record.span;
        let line = source.at(record);
        let at = RecordBytes { line: &line, base: record.start };
        let found = raw::Record::parse(&line).ok()?;
        let payload = found.payload.as_ref()?;
        let raw = match &*at.maybe(found.kind.as_ref())? {
            "response_item" => raw::Item::at(&line, payload).ok()?,
            "compacted" => {
                let compacted = raw::Compacted::at(&line, payload).ok()?;
                if compacted.history.array_items(&line).is_none() {
                    let literal = line[compacted.message?].to_vec();
                    return String::from_utf8(literal).ok().map(HistoryItem::Summary);
                }
                compacted.history.items.into_iter().nth(self.before.get(&item).copied()?)?
            }
            _ => return None,
        };
        is_sound(&line, &raw, entry).then(|| HistoryItem::Value(at.span(&raw.whole)))
    }
}

/// Whether Codex can read the item. One item that Codex cannot read makes the whole record
/// unreadable.
fn is_sound(line: &[u8], item: &raw::Item, entry: &Entry) -> bool {
    let kind = item.kind.as_ref().map(|kind| &line[kind.clone()]);
    let understood = !entry.blocks.iter().any(|block| match block {
        Block::Output(output) => output.parts.iter().any(|part| matches!(part, Part::Opaque(_))),
        _ => false,
    });
    match kind {
        Some(b"\"message\"") => item.role.is_some() && begins_with(line, &item.content.whole, b'['),
        Some(b"\"agent_message\"") => begins_with(line, &item.content.whole, b'['),
        Some(b"\"reasoning\"") => begins_with(line, &item.summary.whole, b'['),
        Some(b"\"function_call\"") => {
            begins_with(line, &item.arguments, b'"') && item.name.is_some() && item.call.is_some()
        }
        Some(b"\"custom_tool_call\"") => {
            item.input.is_some() && item.name.is_some() && item.call.is_some()
        }
        Some(b"\"function_call_output\"" | b"\"custom_tool_call_output\"") => {
            item.call.is_some() && understood
        }
        Some(_) => true,
        None => false,
    }
}

fn begins_with(line: &[u8], place: &Option<Range<usize>>, first: u8) -> bool {
    place.as_ref().is_some_and(|place| line[place.start] == first)
}

/// The end of a rollout: the last time and number, and what Codex needs again after the record of a
/// replaced history, which is the newest world state, turn context and token count.
#[derive(Default)]
struct Last {
    timestamp: Option<Box<str>>,
    ordinal: Option<u64>,
    /// The last record with the full world state, and the later records with changes of this state.
    world: Vec<String>,
    turn: Option<String>,
    count: Option<Count>,
    ended: bool,
    /// Whether the rollout continues another one.
    has_base: bool,
}

impl Last {
    fn read(source: &dyn Source) -> Last {
        let mut last = Last { ended: true, ..Last::default() };
        lines(source, |line| {
            last.ended = line.ended;
            let Ok(record) = raw::Record::parse(line.bytes) else { return };
            let at = RecordBytes::from_line(&line);
            last.timestamp = at.maybe(record.timestamp.as_ref()).or(last.timestamp.take());
            let ordinal =
                record.ordinal.as_ref().and_then(|it| epitome_json::integer(line.bytes, it));
            last.ordinal = ordinal.or(last.ordinal);
            let Some(payload) = record.payload else { return };
            if line.record.line == 1 {
                last.has_base = super::origin(line.bytes).is_some_and(|it| it.base.is_some());
            }
            let text = String::from_utf8(line.bytes[payload.clone()].to_vec()).ok();
            match at.maybe(record.kind.as_ref()).as_deref() {
                Some("world_state") => {
                    if raw::World::at(line.bytes, &payload).is_ok_and(|world| world.is_full) {
                        last.world.clear();
                    }
                    last.world.extend(text);
                }
                Some("turn_context") => last.turn = text,
                Some("event_msg") => {
                    let Ok(event) = raw::Event::at(line.bytes, &payload) else { return };
                    let usage = event.info.last.map(|tokens| tokens.whole);
                    if let (Some(usage), Some(text)) = (usage, text) {
                        let span = usage.start - payload.start..usage.end - payload.start;
                        last.count = Some(Count { text, usage: span });
                    }
                }
                Some(_) | None => {}
            }
        });
        last
    }
}

/// The payload of a `token_count` event, and the range in it of the tokens of the last request.
struct Count {
    text: String,
    usage: Range<usize>,
}

impl Count {
    /// The tokens of the last request; `None` if the payload does not state them.
    fn total(&self) -> Option<u64> {
        let usage = self.text.get(self.usage.clone())?.as_bytes();
        let place = accounting::values(usage, &["total_tokens"]).pop()?;
        epitome_json::integer(usage, &place)
    }

    /// The payload with `total_tokens` of the last request set to `tokens` and its other counts set
    /// to 0. `None` if the counts of the last request are not an object.
    fn with(mut self, tokens: u64) -> Option<String> {
        let mut members = Vec::new();
        Cursor::new(self.text.get(self.usage.clone())?.as_bytes())
            .object(|value, key| {
                value.skip()?;
                let number = if key == b"total_tokens" { tokens } else { 0 };
                members.push(format!("\"{}\":{number}", String::from_utf8_lossy(key)));
                Ok(())
            })
            .ok()?;
        self.text.replace_range(self.usage, &format!("{{{}}}", members.join(",")));
        Some(self.text)
    }
}

/// Lines of a rollout that are being made, with the time and the numbers that they get.
struct Lines<'a> {
    bytes: Vec<u8>,
    timestamp: &'a str,
    ordinal: Option<u64>,
}

impl Lines<'_> {
    fn push(&mut self, kind: &str, payload: &str) {
        let timestamp = encode(self.timestamp);
        let ordinal = match &mut self.ordinal {
            Some(ordinal) => {
                *ordinal = ordinal.saturating_add(1);
                format!(r#""ordinal":{ordinal},"#)
            }
            None => String::new(),
        };
        let line =
            format!(r#"{{"timestamp":{timestamp},{ordinal}"type":"{kind}","payload":{payload}}}"#);
        self.bytes.extend_from_slice(line.as_bytes());
        self.bytes.push(b'\n');
    }
}
