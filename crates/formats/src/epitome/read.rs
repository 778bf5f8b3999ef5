//! Converts lines of a log into a transcript, incrementally: a live context reads its own log as it
//! writes it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use epitome_json::{Document, Value};
use epitome_model::{
    Block, CacheUse, Call, Entry, Fault, Faults, HiddenRecord, Image, Item, MicroDollars, Output,
    Part, Record, RecordedUsage, Role, Source, Thinking, ToolKind, Transcript,
};

use super::record::{ORIGIN, Origin};
use crate::Line;
use crate::lines::{self, lines, record};
use crate::place::RecordBytes;

/// The maximum number of edits in a line for which the edited items are searched for in the context
/// one by one. With more edits, the whole context is built again.
const FEW: usize = 16;

/// Types of blocks of reasoning in the APIs.
const REASONING: [&str; 3] = ["thinking", "redacted_thinking", "reasoning"];

/// Whether the first line is the header of a log.
pub fn sniff(head: &[u8]) -> bool {
    id(head).is_some()
}

/// The id in the first line of a log; `None` if the bytes are not a log.
pub fn id(head: &[u8]) -> Option<String> {
    in_header(head, |header| header.text_of("id").unwrap_or_default().into_owned())
}

/// The origin in the first line of a log; `None` if the bytes are not a log.
pub fn origin(head: &[u8]) -> Option<Origin> {
    in_header(head, origin_in)
}

/// The origin in the first line of a log, with the changes that later lines state; `None` if the
/// bytes are not a log.
pub fn last_origin(log: &[u8]) -> Option<Origin> {
    let mut origin = origin(log)?;
    lines(&log, |line| {
        if line.bytes.starts_with(ORIGIN.as_bytes())
            && let Ok(document) = Document::parse(line.bytes)
        {
            origin.update(origin_in(&document.root));
        }
    });
    Some(origin)
}

fn origin_in(root: &Value<'_>) -> Origin {
    Origin {
        cwd: root.text_of("cwd").map(Cow::into_owned),
        model: root.text_of("model").map(Cow::into_owned),
        recipe: root.text_of("recipe").map(Cow::into_owned),
    }
}

/// The value that `read` finds in the first line of a log; `None` if the bytes are not a log.
fn in_header<T>(head: &[u8], read: impl Fn(&Value<'_>) -> T) -> Option<T> {
    lines::first(head, |line| {
        let header = Document::parse(line.bytes).ok()?.root;
        let is_header = header.is("type", "epitome") && header.get("version").is_some();
        is_header.then(|| read(&header))
    })
}

/// Reads a log.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    let mut log = Log::default();
    lines(source, |line| log.line(&line, faults));
    log.transcript
}

/// The state of a log after the lines that were read so far.
#[derive(Clone, Debug, Default)]
pub struct Log {
    transcript: Transcript,
    /// For each entry that is sent, in order, the item with its current content. Entries that edits
    /// emptied are included.
    slots: Vec<usize>,
    /// The index in `slots` of each entry, by its id.
    places: HashMap<Box<str>, usize>,
    /// One more than the highest number that is the id of an entry, or was.
    after_ids: u64,
    /// The items whose content an edit removed completely.
    emptied: HashSet<usize>,
    /// The original item of each item that an edit made.
    originals: HashMap<usize, usize>,
    /// The items that each cut removed, by the item with the text that replaces them.
    cuts: BTreeMap<usize, Vec<usize>>,
    /// How to undo each compaction that is in effect, the oldest first.
    undo: Vec<Undo>,
    /// For each element of `undo`, whether its compaction continues the previous one: both are
    /// undone together.
    continues: Vec<bool>,
    /// The number of entries in the context directly after the user undid a compaction. `None` if
    /// the user undid none, or if another compaction, or an undo by the engine, came after that.
    undone: Option<usize>,
    /// The number of the last client message in the log. A client message is one of the messages
    /// that a program passes to the engine.
    messages: u64,
    /// The items of each client message.
    message_items: Vec<Vec<usize>>,
    /// The items that were added after the last client message.
    unnumbered: Vec<usize>,
    /// The current folder, model and recipe of the conversation.
    origin: Origin,
}

/// How to undo a compaction. A slot is an element of `Log::slots`, given by its index.
#[derive(Clone, Debug)]
enum Undo {
    /// A batch of edits: the slots that the edits changed, each with the item that was in it
    /// before.
    Edits(Vec<(usize, usize)>),
    /// A summary: the items that the summary replaced.
    Summary(Vec<usize>),
    /// A cut: the slot with the text that was inserted, and the removed slots with their items.
    Cut(usize, Vec<(usize, usize)>),
}

impl Log {
    /// The transcript of all lines read so far.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The number of compactions that can be undone. A compaction of several steps counts once for
    /// each step.
    pub fn compactions(&self) -> usize {
        self.undo.len()
    }

    /// The number of steps of the last compaction, which are undone together.
    pub fn steps(&self) -> usize {
        let before = self.continues.iter().rev().take_while(|continues| **continues).count();
        (before + 1).min(self.undo.len())
    }

    /// The number of entries in the context directly after the user undid a compaction. `None` if
    /// the user undid none, or if another compaction, or an undo by the engine, came after that.
    pub fn entries_at_undo(&self) -> Option<usize> {
        self.undone
    }

    /// The items that are sent, in order, including those that edits emptied.
    pub fn slots(&self) -> &[usize] {
        &self.slots
    }

    /// The original item of `item`: the item itself, unless an edit made it.
    pub fn original_of(&self, item: usize) -> usize {
        self.originals.get(&item).copied().unwrap_or(item)
    }

    /// The items that were cut out and replaced by `item`. If the text of an earlier cut was cut
    /// out, the items of that cut are returned in place of its text. Empty if `item` is not the
    /// text of a cut.
    pub fn cut_out(&self, item: usize) -> Vec<usize> {
        let mut found = Vec::new();
        for &gone in self.cuts.get(&item).into_iter().flatten() {
            if self.cuts.contains_key(&gone) {
                found.extend(self.cut_out(gone))
            } else {
                found.push(gone)
            }
        }
        found
    }

    /// The items that hold the texts of cuts.
    pub fn cuts(&self) -> impl Iterator<Item = usize> {
        self.cuts.keys().copied()
    }

    /// The current origin of the conversation: folder, model and recipe.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The number of complete client messages in the log.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// The items of each client message, in order.
    pub fn message_items(&self) -> &[Vec<usize>] {
        &self.message_items
    }

    /// The items that were added after the last client message.
    pub fn unnumbered(&self) -> &[usize] {
        &self.unnumbered
    }

    /// The number of compactions to undo, beginning with the last one, until no compaction that
    /// changed one of the items `originals` is in effect.
    pub fn steps_about(&self, originals: &HashSet<usize>) -> usize {
        let first = self.undo.iter().position(|undo| match undo {
            Undo::Edits(held) | Undo::Cut(_, held) => {
                held.iter().any(|it| originals.contains(&self.original_of(it.1)))
            }
            Undo::Summary(items) => {
                items.iter().any(|&item| originals.contains(&self.original_of(item)))
            }
        });
        first.map_or(0, |first| self.undo.len() - first)
    }

    /// The item with the current content of the entry with the id `id`; `None` if there is no such
    /// entry.
    pub fn item(&self, id: &str) -> Option<usize> {
        self.places.get(id).map(|&slot| self.slots[slot])
    }

    /// A number that no entry has as its id, for the next one. It is the index of the next item,
    /// unless lines were removed from the log, as the restore of a stored session does.
    pub fn free_id(&self) -> u64 {
        self.after_ids.max(self.transcript.items.len() as u64)
    }

    /// Reads the next line.
    pub fn line(&mut self, line: &Line<'_>, faults: &mut dyn Faults) {
        let before = self.transcript.items.len();
        if let Some(document) = record::<Document<'_>>(line, faults) {
            if document.root.is_object() {
                self.record(&document.root, line.record, faults);
            } else {
                faults.report(Fault { line: line.record.line, what: "no record".into() });
            }
        }
        if self.transcript.items.len() == before {
            let kept = HiddenRecord { record: line.record, hidden_fields: Vec::new() };
            self.transcript.items.push(Item::Hidden(kept));
        }
    }

    fn record(&mut self, root: &Value<'_>, record: Record, faults: &mut dyn Faults) {
        match root.text_of("type").as_deref() {
            Some("epitome") if self.transcript.items.is_empty() => {
                let head = &mut self.transcript.head;
                head.id = root.boxed_text_of("id");
                head.cwd = root.boxed_text_of("cwd");
                let version = root.get("version").map(|it| String::from_utf8_lossy(it.raw()));
                head.version = version.map(|version| version.as_ref().into());
                self.origin = origin_in(root);
            }
            Some("origin") => self.origin.update(origin_in(root)),
            Some("entry") => self.entry(root, record, faults),
            Some("birth") => match root.get("back").and_then(number) {
                Some(messages) => self.back(root, messages),
                None => drop(self.edits(root, record, faults)),
            },
            Some("compaction") => {
                let edits = self.edits(root, record, faults);
                self.undo.push(Undo::Edits(edits));
                self.undone = None;
            }
            Some("summary") => self.summary(root, record),
            Some("cut") => self.cut(root, record, faults),
            Some("undo") => {
                self.take_back();
                let asked = root.get("asked").is_some_and(Value::is_true);
                self.undone = asked.then_some(self.transcript.context.len());
            }
            Some(_) | None => {}
        }
        let continues = root.get("continues").is_some_and(Value::is_true);
        self.continues.resize(self.undo.len(), continues);
    }

    fn entry(&mut self, root: &Value<'_>, record: Record, faults: &mut dyn Faults) {
        let role = root.text_of("role").unwrap_or_default();
        let id: Option<Box<str>> = root.boxed_text_of("id");
        let item = self.transcript.items.len();
        self.unnumbered.push(item);
        if let Some(message) = root.get("message").and_then(number) {
            self.messages = message;
            self.message_items.push(std::mem::take(&mut self.unnumbered));
        }
        let usage = root.get("usage").and_then(usage);
        let speaker = match &*role {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            _ => Role::System,
        };
        let group = root.boxed_text_of("group").or_else(|| id.clone());
        let entry = Entry {
            record,
            id: id.clone(),
            role: speaker,
            group: group.filter(|_| speaker == Role::Assistant),
            model: root.boxed_text_of("model"),
            usage,
            blocks: blocks(root.get("blocks")),
            ..Entry::default()
        };
        if role == "prompt" {
            self.transcript.head.prompt.push(item);
        }
        self.title(root, &entry);
        self.transcript.items.push(Item::Entry(Box::new(entry)));
        self.slots.push(item);
        self.transcript.context.push(item);
        if let Some(number) = id.as_ref().and_then(|id| id.parse::<u64>().ok()) {
            self.after_ids = self.after_ids.max(number.saturating_add(1));
        }
        if let Some(id) = id
            && let Some(_before) = self.places.insert(id.clone(), self.slots.len() - 1)
        {
            let what = format!("the id {id} repeats");
            faults.report(Fault { line: record.line, what });
        }
    }

    fn title(&mut self, root: &Value<'_>, entry: &Entry) {
        if self.transcript.head.title.is_some() || entry.role != Role::User {
            return;
        }
        let (bytes, base) = root.document();
        self.transcript.head.title = RecordBytes { line: bytes, base }
            .first_text(entry)
            .map(|text| epitome_model::title(text.trim()));
    }

    /// Sets the new content of entries. Returns the index in `slots` of each changed entry, with
    /// the item that was there before.
    fn edits(
        &mut self,
        root: &Value<'_>,
        record: Record,
        faults: &mut dyn Faults,
    ) -> Vec<(usize, usize)> {
        let mut held = Vec::new();
        let mut replaced = Vec::new();
        for edit in root.list_of("edits") {
            let id = edit.text_of("of").unwrap_or_default();
            let Some(&slot) = self.places.get(&*id) else {
                let what = format!("there is no entry {id}");
                faults.report(Fault { line: record.line, what });
                continue;
            };
            let was = self.slots[slot];
            let Some(old) = self.transcript.items[was].entry() else { continue };
            let entry = Entry {
                record,
                id: old.id.clone(),
                role: old.role,
                group: old.group.clone(),
                repeated: true,
                model: old.model.clone(),
                blocks: blocks(edit.get("blocks")),
                ..Entry::default()
            };
            held.push((slot, was));
            let item = self.transcript.items.len();
            if self.transcript.head.prompt.contains(&was) {
                self.transcript.head.prompt.push(item);
            }
            self.originals.insert(item, self.original_of(was));
            self.slots[slot] = item;
            if entry.blocks.is_empty() {
                self.emptied.insert(item);
            }
            self.transcript.items.push(Item::Entry(Box::new(entry)));
            replaced.push((was, item));
        }
        if !self.replace(&replaced) {
            self.send();
        }
        held
    }

    /// Reads a summary, which replaces everything from the end of the prompt to the first kept
    /// entry, or to the end of the context if no entry is kept.
    fn summary(&mut self, root: &Value<'_>, record: Record) {
        let Some(text) = root.string("text") else { return };
        let kept = root.text_of("kept").and_then(|id| self.places.get(&*id).copied());
        let from = kept.unwrap_or(self.slots.len());
        let blocks = vec![Block::Summary(text.to_source_text())];
        let id = root.boxed_text_of("id");
        let entry = Entry { record, id, role: Role::System, blocks, ..Entry::default() };
        let item = self.transcript.items.len();
        self.transcript.items.push(Item::Entry(Box::new(entry)));
        // The prompt is not part of the conversation and is not summarised.
        let prompt = self.slots[..from].iter().take_while(|item| self.is_prompt(**item)).count();
        let mut slots = self.slots[..prompt].to_vec();
        slots.push(item);
        slots.extend_from_slice(&self.slots[from..]);
        let before = std::mem::replace(&mut self.slots, slots);
        self.undo.push(Undo::Summary(before[prompt..from].to_vec()));
        self.undone = None;
        self.place();
        self.send();
    }

    /// Reads a cut, which replaces entries by a text.
    fn cut(&mut self, root: &Value<'_>, record: Record, faults: &mut dyn Faults) {
        let Some(text) = root.string("text") else { return };
        let mut gone = BTreeMap::new();
        for id in root.list_of("of").iter().filter_map(Value::text) {
            match self.places.get(&*id) {
                Some(&slot) => drop(gone.insert(slot, self.slots[slot])),
                None => {
                    let what = format!("there is no entry {id}");
                    faults.report(Fault { line: record.line, what });
                }
            }
        }
        let Some((&first, _)) = gone.first_key_value() else { return };
        let blocks = vec![Block::Text(text.to_source_text())];
        let id = root.boxed_text_of("id");
        let entry = Entry { record, id, role: Role::System, blocks, ..Entry::default() };
        let item = self.transcript.items.len();
        self.transcript.items.push(Item::Entry(Box::new(entry)));
        let slots = std::mem::take(&mut self.slots).into_iter().enumerate();
        for (slot, was) in slots {
            if slot == first {
                self.slots.push(item);
            } else if !gone.contains_key(&slot) {
                self.slots.push(was);
            }
        }
        let gone: Vec<(usize, usize)> = gone.into_iter().collect();
        self.cuts.insert(item, gone.iter().map(|(_, item)| *item).collect());
        self.undo.push(Undo::Cut(first, gone));
        self.undone = None;
        self.place();
        self.send();
    }

    /// Reads a line that takes the conversation back to its first `messages` client messages: the
    /// entries that the line names become hidden records.
    fn back(&mut self, root: &Value<'_>, messages: u64) {
        let ids = root.list_of("edits").iter().filter_map(|edit| edit.text_of("of"));
        let gone: HashSet<usize> =
            ids.filter_map(|id| self.item(&id)).map(|item| self.original_of(item)).collect();
        for item in 0..self.transcript.items.len() {
            if gone.contains(&self.original_of(item)) {
                let record = self.transcript.items[item].record();
                let hidden = HiddenRecord { record, hidden_fields: Vec::new() };
                self.transcript.items[item] = Item::Hidden(hidden);
            }
        }
        let slots = self.without(&self.slots, &gone);
        let prompt = self.without(&self.transcript.head.prompt, &gone);
        let left = usize::try_from(messages).unwrap_or(usize::MAX).min(self.message_items.len());
        let behind = self.without(&self.message_items[left..].concat(), &gone);
        let unnumbered = [behind, self.without(&self.unnumbered, &gone)].concat();
        self.message_items.truncate(left);
        self.slots = slots;
        self.transcript.head.prompt = prompt;
        self.messages = messages;
        self.unnumbered = unnumbered;
        self.place();
        self.send();
    }

    /// The items whose originals are not in `gone`.
    fn without(&self, items: &[usize], gone: &HashSet<usize>) -> Vec<usize> {
        items.iter().copied().filter(|item| !gone.contains(&self.original_of(*item))).collect()
    }

    fn is_prompt(&self, item: usize) -> bool {
        self.transcript.head.prompt.contains(&item)
    }

    fn take_back(&mut self) {
        match self.undo.pop() {
            Some(Undo::Cut(at, gone)) => {
                if at < self.slots.len() {
                    self.slots.remove(at);
                }
                for (slot, item) in gone {
                    self.slots.insert(slot.min(self.slots.len()), item);
                }
                self.place();
            }
            Some(Undo::Edits(held)) => {
                for (slot, item) in held.into_iter().rev() {
                    if let Some(held) = self.slots.get_mut(slot) {
                        *held = item;
                    }
                }
            }
            Some(Undo::Summary(items)) => {
                let prompt = self.slots.iter().take_while(|item| self.is_prompt(**item)).count();
                let summary = prompt..(prompt + 1).min(self.slots.len());
                self.slots.splice(summary, items);
                self.place();
            }
            None => {}
        }
        self.send();
    }

    fn place(&mut self) {
        self.places.clear();
        for (slot, &item) in self.slots.iter().enumerate() {
            if let Some(id) = self.transcript.items[item].entry().and_then(|it| it.id.clone()) {
                self.places.insert(id, slot);
            }
        }
    }

    /// Replaces items of the context: each pair is an old and a new item. Returns false if that is
    /// not possible, or if building the whole context again is as fast. The search begins at the
    /// end of the context, where new results are, so it is fast in a long context, too.
    fn replace(&mut self, replaced: &[(usize, usize)]) -> bool {
        let context = &mut self.transcript.context;
        replaced.len() <= FEW
            && replaced.iter().all(|(was, item)| {
                let place = context.iter().rposition(|sent| sent == was);
                match place.filter(|_| !self.emptied.contains(item)) {
                    Some(place) => {
                        context[place] = *item;
                        true
                    }
                    None => false,
                }
            })
    }

    /// Builds the context again, without entries that edits emptied.
    fn send(&mut self) {
        let sent = self.slots.iter().copied();
        self.transcript.context = sent.filter(|item| !self.emptied.contains(item)).collect();
    }
}

fn usage(counts: &Value<'_>) -> Option<RecordedUsage> {
    let count = |key| counts.get(key).and_then(number);
    let cached = count("cached");
    let cache_written = count("cache_written").unwrap_or(0);
    Some(RecordedUsage {
        input: count("input")?,
        output: count("output").unwrap_or(0),
        cache: cached.map(|read| CacheUse { read, written: cache_written }),
        cost: count("micro_dollars").map(MicroDollars),
    })
}

fn number(value: &Value<'_>) -> Option<u64> {
    std::str::from_utf8(value.raw()).ok()?.parse().ok()
}

fn blocks(value: Option<&Value<'_>>) -> Vec<Block> {
    value.map_or(&[][..], Value::list).iter().map(block).collect()
}

fn block(value: &Value<'_>) -> Block {
    let whole = value.span();
    if let Some(kind) = value.text_of("type") {
        return api_block(value, &kind);
    }
    if let Some(words) = value.string("thinking") {
        let text = Some(words.to_source_text());
        return Block::Thinking(Thinking { text, whole, removable: true });
    }
    if let Some(call) = call(value) {
        return Block::Call(call);
    }
    if let Some(id) = value.text_of("output") {
        return Block::Output(output(value, &id));
    }
    piece(value).into()
}

/// Reads a block in the format of an API.
fn api_block(value: &Value<'_>, kind: &str) -> Block {
    let whole = value.span();
    if !REASONING.contains(&kind) {
        return Block::Opaque(whole);
    }
    let summary = value.list_of("summary").first().and_then(|it| it.get("text"));
    let text = value.get("thinking").or(summary).filter(|text| text.is_text());
    // OpenAI's Responses API refuses a call whose reasoning item was removed.
    let removable = kind != "reasoning";
    Block::Thinking(Thinking { text: text.map(|it| it.to_source_text()), whole, removable })
}

fn call(value: &Value<'_>) -> Option<Call> {
    let id = value.text_of("call")?;
    let name = value.text_of("name")?;
    let arguments = value.get("arguments")?;
    let mut call = epitome_api::call(&id, &name, arguments);
    let kind = value.get("kind").and_then(|kind| serde_json::from_slice(kind.raw()).ok());
    // The kind in the log is used only if the table of tools does not contain the tool. The
    // arguments of such a tool have no roles.
    if let Some(kind) = kind.filter(|_| call.kind == ToolKind::Other) {
        call.kind = kind;
    }
    Some(call)
}

fn output(value: &Value<'_>, id: &str) -> Output {
    let content = value.get("content").filter(|it| it.is_text() || it.is_list());
    let parts = match content {
        Some(content) if content.is_text() => vec![Part::Text(content.to_source_text())],
        Some(content) => content.list().iter().map(piece).collect(),
        None => Vec::new(),
    };
    Output {
        call: id.into(),
        error: value.get("error").is_some_and(Value::is_true),
        parts,
        whole: content.map(|it| it.span()).unwrap_or_default(),
        from_user: value.get("from_user").is_some_and(Value::is_true),
        ..Output::default()
    }
}

fn piece(value: &Value<'_>) -> Part {
    let whole = value.span();
    let is_ours = value.get("type").is_none();
    let text = value.string("text").filter(|_| is_ours);
    let image = value.string("image").filter(|_| is_ours);
    match (text, image) {
        (Some(words), _) => Part::Text(words.to_source_text()),
        (None, Some(data)) => {
            let media = value.text_of("media").unwrap_or_else(|| "image".into());
            Part::Image(Image { media: media.as_ref().into(), data: data.span(), whole })
        }
        (None, None) => Part::Opaque(whole),
    }
}
