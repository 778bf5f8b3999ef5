//! Converts entries into a transcript.

use std::collections::HashMap;

use epitome_model::{
    Block, Call, Entry, Faults, FieldRemainder, Image, Item, Output, Part, Role, Source, Span,
    Thinking, ToolKind, Transcript,
};

use super::invariants::ACCOUNTING;
use super::tools::TOOLS;
use super::{append, raw};
use crate::accounting;
use crate::fields::{Found, List};
use crate::lines;
use crate::place::RecordBytes;
use crate::records::{self, RecordContent, Records, TranscriptBuilder};
use crate::tree::{self, Orphan};

const VERSIONS: [&str; 3] = ["1", "2", "3"];
/// Types of entries. `session` may occur after the first line if files were concatenated.
const ENTRIES: [&str; 12] = [
    "session",
    "message",
    "model_change",
    "thinking_level_change",
    "compaction",
    "branch_summary",
    "context_edit",
    "custom",
    "custom_message",
    "label",
    "session_info",
    "usage",
];
/// Roles of messages; `hookMessage` was the name of `custom` before version 3.
const ROLES: [&str; 9] = [
    "user",
    "assistant",
    "toolResult",
    "bashExecution",
    "system",
    "custom",
    "hookMessage",
    "branchSummary",
    "compactionSummary",
];
const BLOCKS: [&str; 4] = ["text", "thinking", "toolCall", "image"];

/// Whether the first line is a header: a `session` with an id.
pub fn sniff(head: &[u8]) -> bool {
    let header = lines::first(head, |line| {
        let record = raw::Record::parse(line.bytes).ok()?;
        let kind = RecordBytes::from_line(line).maybe(record.kind.as_ref())?;
        (&*kind == "session" && record.id.is_some()).then_some(())
    });
    header.is_some()
}

/// Reads a session.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    records::read::<Reader>(source, faults)
}

/// The kind of an entry, without its content.
enum Turn {
    /// A message, the summary of a branch, or an entry that is not sent.
    Plain,
    /// The agent's prompt. It is not sent any more if a compaction follows it.
    Prompt,
    /// A message of an extension of pi.
    Custom,
    /// A summary that replaces the history before it, except the entries from the given one on.
    Compaction(From),
    /// New content for the entry `target`; `None` if that entry is not sent any more.
    Replaces { target: Box<str>, with: Option<Span> },
}

enum From {
    Id(Option<Box<str>>),
    /// The number of the entry in the file; the header has the number 0. Version 1 refers to
    /// entries by their numbers.
    Index(u64),
}

#[derive(Default)]
struct Reader {
    turns: Vec<Turn>,
    /// The number of records so far, including the header.
    records: u64,
    /// The record number of each node.
    numbers: Vec<u64>,
    linear: bool,
}

impl Records for Reader {
    type Record<'a> = raw::Record;

    fn record(
        &mut self,
        session: &mut TranscriptBuilder<'_>,
        at: &RecordBytes<'_>,
        raw: raw::Record,
    ) -> RecordContent {
        let number = self.records;
        self.records += 1;
        let kind = at.maybe(raw.kind.as_ref()).unwrap_or_default();
        report_unknown(session, at, &kind, &raw);
        if &*kind == "session" && number == 0 {
            self.header(session, at, &raw);
            return RecordContent::default();
        }
        if &*kind == "session_info"
            && let Some(name) = &raw.name
        {
            session.name(&at.text(name));
        }
        let (entry, turn) = entry(at, &raw, &kind, number);
        self.node(session, at, &raw, turn, number);
        let Some(mut entry) = entry else { return RecordContent::default() };
        entry.id = at.maybe(raw.id.as_ref());
        entry.parent = at.maybe(raw.parent.as_ref());
        entry.time = at.maybe(raw.timestamp.as_ref());
        RecordContent { entries: vec![entry], ..RecordContent::default() }
    }

    fn finish(mut self, session: &mut TranscriptBuilder<'_>) {
        if !session.nodes.is_empty() {
            session.transcript.context = self.context(session);
        }
    }
}

/// Reports versions, kinds and roles that this reader does not know: a newer pi may have written
/// them.
fn report_unknown(
    session: &mut TranscriptBuilder<'_>,
    at: &RecordBytes<'_>,
    kind: &str,
    raw: &raw::Record,
) {
    if kind == "session" {
        session.unknown("a version", &text(at, &raw.version), &VERSIONS);
    }
    session.unknown("an entry of a kind", kind, &ENTRIES);
    let mut blocks: Vec<&raw::Block> = Vec::new();
    if let Some(message) = &raw.message {
        session.unknown("a role", &text(at, &message.role), &ROLES);
        blocks.extend(&message.content.items);
    }
    blocks.extend(&raw.content().items);
    for block in blocks {
        session.unknown("a block of a kind", &text(at, &block.kind), &BLOCKS);
    }
}

fn text(at: &RecordBytes<'_>, found: &Found) -> Box<str> {
    at.maybe(found.as_ref()).unwrap_or_default()
}

impl Reader {
    fn header(
        &mut self,
        session: &mut TranscriptBuilder<'_>,
        at: &RecordBytes<'_>,
        raw: &raw::Record,
    ) {
        let version = at.maybe(raw.version.as_ref()).unwrap_or_else(|| "1".into());
        self.linear = &*version == "1";
        session.head(|| at.maybe(raw.id.as_ref()), || at.maybe(raw.cwd.as_ref()), || Some(version));
    }

    fn node(
        &mut self,
        session: &mut TranscriptBuilder<'_>,
        at: &RecordBytes<'_>,
        raw: &raw::Record,
        turn: Turn,
        number: u64,
    ) {
        // Entries of version 1 have no ids, and each continues the entry before it. In the tree, an
        // entry's number is used as its id.
        match at.maybe(raw.id.as_ref()) {
            Some(id) if !self.linear => session.node(id, at.maybe(raw.parent.as_ref())),
            Some(_) | None => {
                let before = session.nodes.last().map(|node| node.id.clone());
                session.node(number.to_string().into(), before);
            }
        }
        self.turns.push(turn);
        self.numbers.push(number);
    }

    fn context(&mut self, session: &mut TranscriptBuilder<'_>) -> Vec<usize> {
        let nodes = &session.nodes;
        let mut path = tree::path(nodes, nodes.len() - 1, Orphan::Ends);
        let compaction =
            path.iter().rposition(|&node| matches!(self.turns[node], Turn::Compaction(_)));
        if let Some(at) = compaction {
            let first = match &self.turns[path[at]] {
                Turn::Compaction(From::Id(Some(id))) => {
                    path.iter().position(|&node| nodes[node].id == *id)
                }
                Turn::Compaction(From::Index(number)) => {
                    path.iter().position(|&node| self.numbers[node] >= *number)
                }
                _ => None,
            };
            let kept = path[first.unwrap_or(at).min(at)..at]
                .iter()
                .copied()
                .filter(|&node| !matches!(self.turns[node], Turn::Prompt | Turn::Compaction(_)));
            let kept = kept.collect();
            let after = path[at + 1..].to_vec();
            path = [vec![path[at]], kept, after].concat();
        }
        self.edited(session, &path)
    }

    /// The items that are sent for a path: each entry or, in its position, the newest edit of it,
    /// which gets the role of the entry. An entry that its newest edit omits is not sent.
    fn edited(&self, session: &mut TranscriptBuilder<'_>, path: &[usize]) -> Vec<usize> {
        let TranscriptBuilder { nodes, transcript, .. } = session;
        let mut edits: HashMap<&str, (usize, Option<Span>)> = HashMap::new();
        for &node in path {
            if let Turn::Replaces { target, with } = &self.turns[node] {
                edits.insert(target, (node, *with));
            }
        }
        let mut sent = Vec::new();
        let mut spoken = Vec::new();
        for &node in path {
            let item = nodes[node].item;
            let Some(entry) = transcript.items[item].entry() else { continue };
            let is_editable = match &self.turns[node] {
                Turn::Replaces { .. } => continue,
                Turn::Plain => append::is_editable(entry),
                Turn::Custom => true,
                Turn::Prompt | Turn::Compaction(_) => false,
            };
            match edits.get(&*nodes[node].id).filter(|_| is_editable) {
                None => sent.push(item),
                Some((_, None)) => {}
                Some((edit, Some(with))) => {
                    let edit = nodes[*edit].item;
                    spoken.push((edit, item, *with));
                    sent.push(edit);
                }
            }
        }
        for (edit, item, with) in spoken {
            speaks_for(&mut transcript.items, edit, item, with);
        }
        sent
    }
}

/// Gives a `context_edit` the role, the model and the usage of the entry whose content it replaces.
/// If that entry is a result, the new content becomes a result as well.
fn speaks_for(items: &mut [Item], edit: usize, item: usize, with: Span) {
    let Some(target) = items[item].entry().cloned() else { return };
    let Item::Entry(entry) = &mut items[edit] else { return };
    entry.role = target.role;
    entry.model = target.model;
    entry.usage = target.usage;
    if let Some(Block::Output(output)) = target.blocks.into_iter().next() {
        let parts = entry.blocks.drain(..).map(part).collect();
        entry.blocks = vec![Block::Output(Output { parts, whole: with, ..output })];
    }
}

fn entry(
    at: &RecordBytes<'_>,
    raw: &raw::Record,
    kind: &str,
    number: u64,
) -> (Option<Entry>, Turn) {
    match kind {
        "message" => {
            let role = raw.message.as_ref().and_then(|message| at.maybe(message.role.as_ref()));
            let turn = if role.as_deref() == Some("system") { Turn::Prompt } else { Turn::Plain };
            (raw.message.as_ref().map(|message| entry_of(at, message, number)), turn)
        }
        "compaction" => {
            let from = match raw.first_kept_index {
                Some(index) if raw.first_kept_id.is_none() => From::Index(index),
                Some(_) | None => From::Id(at.maybe(raw.first_kept_id.as_ref())),
            };
            (Some(system(summary(at, raw))), Turn::Compaction(from))
        }
        "branch_summary" => (Some(system(summary(at, raw))), Turn::Plain),
        "custom_message" => (Some(system(content(at, raw.content()))), Turn::Custom),
        "context_edit" => {
            let Some(target) = at.maybe(raw.target.as_ref()) else { return (None, Turn::Plain) };
            let replacement = raw.replacement.as_ref().map(|it| &at.line[it.whole.clone()]);
            let is_omitted = replacement == Some(b"null");
            let content = raw.content();
            let with = content.whole.as_ref().filter(|_| !is_omitted).map(|place| at.span(place));
            (Some(system(self::content(at, content))), Turn::Replaces { target, with })
        }
        _ => (None, Turn::Plain),
    }
}

fn system(blocks: Vec<Block>) -> Entry {
    Entry { role: Role::System, blocks, ..Entry::default() }
}

fn summary(at: &RecordBytes<'_>, raw: &raw::Record) -> Vec<Block> {
    raw.summary.iter().map(|text| Block::Summary(at.source(text))).collect()
}

fn entry_of(at: &RecordBytes<'_>, raw: &raw::Message, number: u64) -> Entry {
    let role = at.maybe(raw.role.as_ref()).unwrap_or_default();
    let mut entry = Entry::default();
    match &*role {
        "toolResult" => {
            entry.role = Role::Tool;
            entry.blocks = vec![Block::Output(output(at, raw))];
            let inside = accounting::inside(ACCOUNTING, &["message", "details"]);
            let details = raw.details.iter().filter(|place| &at.line[(*place).clone()] != b"null");
            entry.hidden_fields = details
                .flat_map(|it| {
                    accounting::hidden_fields(at, ("details", it, FieldRemainder::Nothing), &inside)
                })
                .collect();
        }
        "bashExecution" => {
            entry.role = Role::Tool;
            entry.blocks = own_command(at, raw, number);
        }
        "assistant" => {
            entry.role = Role::Assistant;
            entry.model = at.maybe(raw.model.as_ref());
            entry.usage = raw.tokens.as_ref().map(|tokens| tokens.usage(at.line));
            entry.blocks = content(at, &raw.content);
        }
        "user" => entry.blocks = content(at, &raw.content),
        _ => {
            entry.role = Role::System;
            entry.blocks = content(at, &raw.content);
            entry.blocks.extend(raw.sections.iter().map(|place| Block::Opaque(at.span(place))));
        }
    }
    entry
}

/// A command that the user ran, with its output. pi sends both as a user message; they are read as
/// a call and its result in one entry.
fn own_command(at: &RecordBytes<'_>, raw: &raw::Message, number: u64) -> Vec<Block> {
    let (Some(command), Some(output)) = (&raw.command, &raw.output) else { return Vec::new() };
    // A call needs an id. The record has none, so the number of the record is used.
    let id: Box<str> = format!("record {number}").into();
    let call = Call {
        id: id.clone(),
        name: "bash".into(),
        kind: ToolKind::Shell,
        target: Some(at.source(command)),
        part: None,
        fields: Vec::new(),
        arguments: at.span(command),
    };
    let whole = at.span(output);
    let parts = vec![Part::Text(at.source(output))];
    let output = Output { call: id, parts, whole, ..Output::default() };
    vec![Block::Call(call), Block::Output(output)]
}

fn content(at: &RecordBytes<'_>, content: &List<raw::Block>) -> Vec<Block> {
    match &content.whole {
        // An empty string is no text block: pi does not send it.
        Some(place) if at.line[place.start] == b'"' && place.len() > 2 => {
            vec![Block::Text(at.source(place))]
        }
        Some(_) | None => content.items.iter().map(|raw| block(at, raw)).collect(),
    }
}

fn block(at: &RecordBytes<'_>, raw: &raw::Block) -> Block {
    let kind = at.maybe(raw.kind.as_ref()).unwrap_or_default();
    let whole = at.span(&raw.whole);
    match (&*kind, &raw.text, &raw.id, &raw.name, &raw.arguments) {
        ("text", Some(text), ..) => Block::Text(at.source(text)),
        ("thinking", ..) => {
            let text = raw.thinking.as_ref().map(|text| at.source(text));
            // With OpenAI's Responses API, the signature is the whole reasoning item as JSON text.
            // Such reasoning cannot be removed alone.
            let item = raw.signature.as_ref().is_some_and(|s| at.line[s.start + 1] == b'{');
            Block::Thinking(Thinking { text, whole, removable: !item })
        }
        ("toolCall", _, Some(id), Some(name), Some(arguments)) => {
            Block::Call(at.call(TOOLS, at.text(id), at.text(name), arguments))
        }
        ("image", ..) => match &raw.data {
            Some(data) => {
                let media = at.maybe(raw.media.as_ref()).unwrap_or_else(|| "image".into());
                Block::Image(Image { media, data: at.span(data), whole })
            }
            None => Block::Opaque(whole),
        },
        _ => Block::Opaque(whole),
    }
}

/// A block as a part of a result.
fn part(block: Block) -> Part {
    match block {
        Block::Text(text) => Part::Text(text),
        Block::Image(image) => Part::Image(image),
        Block::Thinking(Thinking { whole, .. }) | Block::Opaque(whole) => Part::Opaque(whole),
        Block::Call(call) => Part::Opaque(call.arguments),
        _ => Part::Opaque(Span::default()),
    }
}

fn output(at: &RecordBytes<'_>, raw: &raw::Message) -> Output {
    Output {
        call: at.maybe(raw.tool_call.as_ref()).unwrap_or_default(),
        error: raw.is_error,
        parts: raw.content.items.iter().map(|raw| part(block(at, raw))).collect(),
        whole: raw.content.whole.as_ref().map(|place| at.span(place)).unwrap_or_default(),
        ..Output::default()
    }
}
