//! Converts entries into a transcript.

use std::collections::HashMap;
use std::ops::Range;

use epitome_model::{
    Block, Call, Entry, Fault, Faults, HiddenRecord, Image, Item, Left, Output, Part, Role, Source,
    Span, Thinking, ToolKind, Transcript,
};

use super::invariants::ACCOUNTING;
use super::{append, raw, tools};
use crate::accounting;
use crate::lines::record;
use crate::place::Place;
use crate::tree::{self, Node, Orphan};
use crate::unknown::Unknown;
use crate::{Line, lines};

const VERSIONS: [&str; 3] = ["1", "2", "3"];
/// Types of entries; `session` may occur after the first line where files were concatenated.
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
    let mut first = None;
    lines(&head, |line| {
        if first.is_none() && !line.bytes.trim_ascii().is_empty() {
            first = Some(raw::record(line.bytes).is_ok_and(|record| {
                let place = Place::of(&line);
                place.maybe(record.kind.as_ref()).as_deref() == Some("session")
                    && record.id.is_some()
            }));
        }
    });
    first == Some(true)
}

/// Reads a session.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    let mut reader = Reader::default();
    lines(source, |line| reader.line(&line, faults));
    reader.finish(faults)
}

/// The kind of an entry, without its content.
enum Turn {
    /// A message, or nothing at all.
    Plain,
    /// The agent's prompt: a compaction declares it again.
    Prompt,
    /// A message of an extension of pi.
    Custom,
    /// A summary that replaces the history before it, except the entries from this one on.
    Compaction(From),
    /// New content for another entry; `None` if it is omitted.
    Replaces { target: Box<str>, with: Option<Span> },
}

enum From {
    Id(Option<Box<str>>),
    /// Version 1: the number of the entry in the file, the header being 0.
    Index(u64),
}

#[derive(Default)]
struct Reader {
    transcript: Transcript,
    nodes: Vec<Node>,
    turns: Vec<Turn>,
    /// The number of records so far, including the header: version 1 refers to entries by it.
    records: u64,
    /// For each node, its number among the records.
    numbers: Vec<u64>,
    linear: bool,
    named: bool,
    unknown: Unknown,
}

impl Reader {
    fn line(&mut self, line: &Line<'_>, faults: &mut dyn Faults) {
        let item = match record(line, raw::record, faults) {
            Some(record) => {
                let item = self.record(line, &record, faults);
                self.records += 1;
                item
            }
            None => Item::Kept(HiddenRecord { record: line.record, copies: Vec::new() }),
        };
        self.transcript.items.push(item);
    }

    fn record(&mut self, line: &Line<'_>, raw: &raw::Record, faults: &mut dyn Faults) -> Item {
        let at = Place::of(line);
        let kind = at.maybe(raw.kind.as_ref()).unwrap_or_default();
        self.report_unknown(&at, (line.record.line, &kind), raw, faults);
        if &*kind == "session" && self.records == 0 {
            self.header(&at, raw);
            return Item::Kept(HiddenRecord { record: line.record, copies: Vec::new() });
        }
        if &*kind == "session_info"
            && let Some(name) = &raw.name
        {
            self.transcript.head.title = Some(epitome_model::title(&at.text(name)));
            self.named = true;
        }
        let (entry, turn) = entry(&at, raw, &kind, self.records);
        self.node(&at, raw, turn);
        let Some(mut entry) = entry else {
            return Item::Kept(HiddenRecord { record: line.record, copies: Vec::new() });
        };
        entry.record = line.record;
        entry.id = at.maybe(raw.id.as_ref());
        entry.parent = at.maybe(raw.parent.as_ref());
        entry.time = at.maybe(raw.timestamp.as_ref());
        self.title(&at, &entry);
        Item::Entry(Box::new(entry))
    }

    /// Reports kinds that a newer pi may have written.
    fn report_unknown(
        &mut self,
        at: &Place<'_>,
        (line, kind): (u64, &str),
        raw: &raw::Record,
        faults: &mut dyn Faults,
    ) {
        let mut report = |what, kind: Option<&Range<usize>>, known: &[&str]| {
            let kind = at.maybe(kind).unwrap_or_default();
            self.unknown.kind((line, what), &kind, known, faults);
        };
        if kind == "session" {
            report("a version", raw.version.as_ref(), &VERSIONS);
        }
        report("an entry of a kind", raw.kind.as_ref(), &ENTRIES);
        let message = raw.message.as_ref();
        report("a role", message.and_then(|message| message.role.as_ref()), &ROLES);
        let blocks = message.map_or(&[][..], |message| &message.blocks);
        for block in blocks.iter().chain(&raw.blocks) {
            report("a block of a kind", block.kind.as_ref(), &BLOCKS);
        }
    }

    fn header(&mut self, at: &Place<'_>, raw: &raw::Record) {
        let head = &mut self.transcript.head;
        head.id = at.maybe(raw.id.as_ref());
        head.cwd = at.maybe(raw.cwd.as_ref());
        head.version = Some(at.maybe(raw.version.as_ref()).unwrap_or_else(|| "1".into()));
        self.linear = raw.version.is_none() || head.version.as_deref() == Some("1");
    }

    fn node(&mut self, at: &Place<'_>, raw: &raw::Record, turn: Turn) {
        let item = self.transcript.items.len();
        let id = at.maybe(raw.id.as_ref());
        // Entries of version 1 have no ids: each continues the one before.
        let (id, parent) = match id {
            Some(id) if !self.linear => (id, at.maybe(raw.parent.as_ref())),
            _ => (self.records.to_string().into(), self.nodes.last().map(|node| node.id.clone())),
        };
        self.nodes.push(Node { item, id, parent });
        self.turns.push(turn);
        self.numbers.push(self.records);
    }

    fn title(&mut self, at: &Place<'_>, entry: &Entry) {
        if self.named || self.transcript.head.title.is_some() || entry.role != Role::User {
            return;
        }
        let span = entry.blocks.iter().find_map(|block| match block {
            Block::Text(text) => text.span(),
            _ => None,
        });
        if let Some(span) = span {
            let words = at.text(&((span.start - at.base) as usize..(span.end - at.base) as usize));
            self.transcript.head.title = Some(epitome_model::title(words.trim()));
        }
    }

    fn finish(mut self, faults: &mut dyn Faults) -> Transcript {
        let mut seen = std::collections::HashSet::new();
        for node in &self.nodes {
            if !seen.insert(&node.id) {
                let line = self.transcript.items[node.item].record().line;
                faults.report(Fault { line, what: format!("the id {} repeats", node.id) });
            }
        }
        if !self.nodes.is_empty() {
            self.transcript.context = self.context();
        }
        self.transcript
    }

    fn context(&mut self) -> Vec<usize> {
        let mut path = tree::path(&self.nodes, self.nodes.len() - 1, Orphan::Ends);
        let compaction =
            path.iter().rposition(|&node| matches!(self.turns[node], Turn::Compaction(_)));
        if let Some(at) = compaction {
            let first = match &self.turns[path[at]] {
                Turn::Compaction(From::Id(Some(id))) => {
                    path.iter().position(|&node| self.nodes[node].id == *id)
                }
                Turn::Compaction(From::Index(number)) => {
                    path.iter().position(|&node| self.numbers[node] >= *number)
                }
                _ => None,
            };
            let sent =
                |node: &&usize| !matches!(self.turns[**node], Turn::Prompt | Turn::Compaction(_));
            let kept = path[first.unwrap_or(at).min(at)..at].iter().filter(sent).copied().collect();
            let after = path[at + 1..].to_vec();
            path = [vec![path[at]], kept, after].concat();
        }
        self.edited(&path)
    }

    /// Puts the newest edit of an entry at the position of the entry, with its role.
    fn edited(&mut self, path: &[usize]) -> Vec<usize> {
        let mut edits: HashMap<&str, (usize, Option<Span>)> = HashMap::new();
        for &node in path {
            if let Turn::Replaces { target, with } = &self.turns[node] {
                edits.insert(target, (node, *with));
            }
        }
        let mut sent = Vec::new();
        let mut spoken = Vec::new();
        for &node in path {
            let item = self.nodes[node].item;
            let Some(entry) = self.transcript.items[item].entry() else { continue };
            let is_editable = match &self.turns[node] {
                Turn::Replaces { .. } => continue,
                Turn::Plain => append::is_editable(entry),
                Turn::Custom => true,
                Turn::Prompt | Turn::Compaction(_) => false,
            };
            match edits.get(&*self.nodes[node].id).filter(|_| is_editable) {
                None => sent.push(item),
                Some((_, None)) => {}
                Some((edit, Some(with))) => {
                    let edit = self.nodes[*edit].item;
                    spoken.push((edit, item, *with));
                    sent.push(edit);
                }
            }
        }
        for (edit, item, with) in spoken {
            self.speaks_for(edit, item, with);
        }
        sent
    }

    /// Gives an edit the role and the other properties of the entry that it replaces.
    fn speaks_for(&mut self, edit: usize, item: usize, with: Span) {
        let items = &mut self.transcript.items;
        let Some(target) = items[item].entry().cloned() else { return };
        let Item::Entry(entry) = &mut items[edit] else { return };
        entry.role = target.role;
        (entry.model, entry.usage) = (target.model, target.usage);
        if let Some(Block::Output(output)) = target.blocks.into_iter().next() {
            let parts = entry.blocks.drain(..).map(part).collect();
            entry.blocks = vec![Block::Output(Output { parts, whole: with, ..output })];
        }
    }
}

fn entry(at: &Place<'_>, raw: &raw::Record, kind: &str, number: u64) -> (Option<Entry>, Turn) {
    let system = |blocks| Some(Entry { role: Role::System, blocks, ..Entry::default() });
    let summary = || raw.summary.iter().map(|text| Block::Summary(at.source(text))).collect();
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
            (system(summary()), Turn::Compaction(from))
        }
        "branch_summary" => (system(summary()), Turn::Plain),
        "custom_message" => (system(content(at, raw.content.as_ref(), &raw.blocks)), Turn::Custom),
        "context_edit" => {
            let Some(target) = at.maybe(raw.target.as_ref()) else { return (None, Turn::Plain) };
            let with = raw.content.as_ref().filter(|_| !raw.omits).map(|place| at.span(place));
            let blocks = content(at, raw.content.as_ref(), &raw.blocks);
            (system(blocks), Turn::Replaces { target, with })
        }
        _ => (None, Turn::Plain),
    }
}

fn entry_of(at: &Place<'_>, raw: &raw::Message, number: u64) -> Entry {
    let role = at.maybe(raw.role.as_ref()).unwrap_or_default();
    let mut entry = Entry::default();
    match &*role {
        "toolResult" => {
            entry.role = Role::Tool;
            entry.blocks = vec![Block::Output(output(at, raw))];
            let inside = accounting::inside(ACCOUNTING, &["message", "details"]);
            let details = raw.details.iter().filter(|place| &at.line[(*place).clone()] != b"null");
            entry.copies = details
                .flat_map(|it| accounting::copies(at, ("details", it, Left::Nothing), &inside))
                .collect();
        }
        "bashExecution" => {
            entry.role = Role::Tool;
            entry.blocks = own_command(at, raw, number);
        }
        "assistant" => {
            entry.role = Role::Assistant;
            entry.model = at.maybe(raw.model.as_ref());
            entry.usage = raw.usage;
            entry.blocks = content(at, raw.content.as_ref(), &raw.blocks);
        }
        "user" => entry.blocks = content(at, raw.content.as_ref(), &raw.blocks),
        _ => {
            entry.role = Role::System;
            entry.blocks = content(at, raw.content.as_ref(), &raw.blocks);
            entry.blocks.extend(raw.sections.iter().map(|place| Block::Opaque(at.span(place))));
        }
    }
    entry
}

/// A command that the user ran, with its output: a call and its result in one, though pi sends them
/// as a user message.
fn own_command(at: &Place<'_>, raw: &raw::Message, number: u64) -> Vec<Block> {
    let (Some(command), Some(output)) = (&raw.command, &raw.output) else { return Vec::new() };
    // A call needs an id, and this one has none: its record number is used.
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
    let output = Output { call: id, error: false, parts, whole, numbered: false, from_user: false };
    vec![Block::Call(call), Block::Output(output)]
}

fn content(at: &Place<'_>, place: Option<&Range<usize>>, blocks: &[raw::Block]) -> Vec<Block> {
    match place {
        // An empty string is not a text: pi leaves it out.
        Some(place) if at.line[place.start] == b'"' && place.len() > 2 => {
            vec![Block::Text(at.source(place))]
        }
        Some(_) | None => blocks.iter().map(|raw| block(at, raw)).collect(),
    }
}

fn block(at: &Place<'_>, raw: &raw::Block) -> Block {
    let kind = at.maybe(raw.kind.as_ref()).unwrap_or_default();
    let whole = at.span(&raw.whole);
    match (&*kind, &raw.text, &raw.id, &raw.name, &raw.arguments) {
        ("text", Some(text), ..) => Block::Text(at.source(text)),
        ("thinking", ..) => {
            let text = raw.thinking.as_ref().map(|text| at.source(text));
            // With OpenAI's Responses the signature is the whole reasoning item as JSON text.
            let item = raw.signature.as_ref().is_some_and(|s| at.line[s.start + 1] == b'{');
            Block::Thinking(Thinking { text, whole, removable: !item })
        }
        ("toolCall", _, Some(id), Some(name), Some(arguments)) => {
            let name = at.text(name);
            let (kind, target, part, fields) = tools::known(&name, at.line, arguments, at.base);
            let (id, arguments) = (at.text(id), at.span(arguments));
            Block::Call(Call { id, name, kind, target, part, fields, arguments })
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

fn output(at: &Place<'_>, raw: &raw::Message) -> Output {
    let parts = raw.blocks.iter().map(|raw| part(block(at, raw)));
    Output {
        call: at.maybe(raw.tool_call.as_ref()).unwrap_or_default(),
        error: raw.is_error,
        parts: parts.collect(),
        whole: raw.content.as_ref().map_or(Span::default(), |place| at.span(place)),
        numbered: false,
        from_user: false,
    }
}
