//! Converts records into a transcript.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use epitome_json::Malformed;
use epitome_model::{
    Block, Entry, Fault, Faults, HiddenField, HiddenRecord, Item, Left, Record, Role, Source,
    ToolKind, Transcript, Usage,
};

use super::{items, raw};
use crate::lines::record;
use crate::place::Place;
use crate::{Line, lines};

/// Records that no model sees, other than those that are read here.
const KNOWN: [&[u8]; 3] =
    [b"world_state", b"inter_agent_communication_metadata", b"rollout_reference"];

/// Whether the first line is a `session_meta` with a payload.
pub fn sniff(head: &[u8]) -> bool {
    let mut first = None;
    lines(&head, |line| {
        if first.is_none() && !line.bytes.trim_ascii().is_empty() {
            first = Some(raw::record(line.bytes).is_ok_and(|record| {
                let kind = Place::of(&line).maybe(record.kind.as_ref());
                kind.as_deref() == Some("session_meta") && record.payload.is_some()
            }));
        }
    });
    first == Some(true)
}

/// Reads a rollout.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    let mut reader = Reader::default();
    lines(source, |line| reader.line(&line, faults));
    reader.finish()
}

#[derive(Default)]
struct Reader {
    transcript: Transcript,
    /// The model of the turn.
    model: Option<Box<str>>,
    /// The number of responses so far, and whether one is open.
    responses: u64,
    in_response: bool,
    last_said: Option<usize>,
    /// Whether each response has a usage record of its own.
    usage_recorded: bool,
    /// Whether calls failed, according to the events.
    failed: HashMap<Box<str>, bool>,
    /// Calls that ask the user.
    asked: HashSet<Box<str>>,
    /// Items in which Codex tells the model its permissions and environment.
    told: HashSet<usize>,
    has_meta: bool,
}

impl Reader {
    fn line(&mut self, line: &Line<'_>, faults: &mut dyn Faults) {
        let kept = Item::Kept(HiddenRecord { record: line.record, copies: Vec::new() });
        let Some(found) = record(line, raw::record, faults) else {
            self.transcript.items.push(kept);
            return;
        };
        let at = Place::of(line);
        let before = self.transcript.items.len();
        // The line is valid JSON, so its values are, too.
        if self.record(&at, line.record, &found, faults).is_err()
            || self.transcript.items.len() == before
        {
            self.transcript.items.truncate(before);
            self.transcript.items.push(kept);
        }
    }

    fn record(
        &mut self,
        at: &Place<'_>,
        record: Record,
        found: &raw::Record,
        faults: &mut dyn Faults,
    ) -> Result<(), Malformed> {
        let kind = at.maybe(found.kind.as_ref()).unwrap_or_default();
        let none = 0..0;
        let payload = found.payload.as_ref().unwrap_or(&none);
        match (&*kind, payload.is_empty()) {
            ("response_item", true) => {
                let empty = Entry { role: Role::Assistant, ..Entry::default() };
                self.add_entry(at, record, found, empty);
            }
            ("response_item", false) => {
                let item = raw::item(at.line, payload)?;
                let entry = items::entry(at, &item);
                self.note_prompt(items::is_prompt(at, &item));
                if items::is_unknown(at, &item) {
                    let what = "an item of a kind that is not known".into();
                    faults.report(Fault { line: record.line, what });
                }
                self.add_entry(at, record, found, entry);
            }
            ("inter_agent_communication", false) => {
                let blocks = vec![Block::Opaque(at.span(payload))];
                let entry = Entry { role: Role::System, blocks, ..Entry::default() };
                self.add_entry(at, record, found, entry);
            }
            ("compacted", false) => self.compacted(at, record, found, payload)?,
            ("event_msg", false) => {
                let event = raw::event(at.line, payload)?;
                self.event(at, record, &event);
            }
            ("session_meta", false) => {
                let is_first = !self.has_meta;
                self.meta(at, &raw::meta(at.line, payload)?);
                if is_first && raw::origin(at.line, payload)?.base.is_some() {
                    let what = "it continues another rollout, of which nothing is read here";
                    faults.report(Fault { line: record.line, what: what.into() });
                }
            }
            ("turn_context", false) => {
                let model = raw::model(at.line, payload)?;
                self.model = at.maybe(model.as_ref()).or(self.model.take());
            }
            ("token_usage_record", false) => {
                self.usage_recorded = true;
                self.usage(raw::usage(at.line, payload)?);
            }
            (kind, _) => {
                if !KNOWN.contains(&kind.as_bytes()) {
                    let what = "a record of a kind that is not known".into();
                    faults.report(Fault { line: record.line, what });
                }
            }
        }
        Ok(())
    }

    fn meta(&mut self, at: &Place<'_>, meta: &raw::Meta) {
        // A fork also contains the meta record of its origin.
        if std::mem::replace(&mut self.has_meta, true) {
            return;
        }
        let head = &mut self.transcript.head;
        head.id = at.maybe(meta.id.as_ref());
        head.cwd = at.maybe(meta.cwd.as_ref());
        head.version = at.maybe(meta.version.as_ref());
    }

    /// Notes whether the next item is part of the prompt.
    fn note_prompt(&mut self, is_prompt: bool) {
        self.told.extend(is_prompt.then_some(self.transcript.items.len()));
    }

    /// Adds an item that a model sees to the end of the context.
    fn add_entry(&mut self, at: &Place<'_>, record: Record, found: &raw::Record, mut entry: Entry) {
        entry.record = record;
        entry.id = found.ordinal.as_ref().map(|place| {
            String::from_utf8_lossy(&at.line[place.clone()]).into_owned().into_boxed_str()
        });
        entry.time = at.maybe(found.timestamp.as_ref());
        let item = self.transcript.items.len();
        if entry.role == Role::Assistant {
            self.responses += u64::from(!self.in_response);
            self.in_response = true;
            self.last_said = Some(item);
            entry.group = Some(self.responses.to_string().into());
            entry.model = self.model.clone();
        } else {
            self.in_response = false;
        }
        for block in &mut entry.blocks {
            match block {
                Block::Call(call) if call.kind == ToolKind::Ask => {
                    self.asked.insert(call.id.clone());
                }
                Block::Output(output) => output.from_user = self.asked.contains(&output.call),
                _ => {}
            }
        }
        self.title(at, &entry);
        self.transcript.context.push(item);
        self.transcript.items.push(Item::Entry(Box::new(entry)));
    }

    fn title(&mut self, at: &Place<'_>, entry: &Entry) {
        if self.transcript.head.title.is_some() || entry.role != Role::User {
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

    /// A compaction replaces everything before it.
    fn compacted(
        &mut self,
        at: &Place<'_>,
        record: Record,
        found: &raw::Record,
        payload: &Range<usize>,
    ) -> Result<(), Malformed> {
        let compacted = raw::compacted(at.line, payload)?;
        self.in_response = false;
        match &compacted.history {
            Some(history) => {
                self.transcript.context.clear();
                for item in history {
                    let entry = Entry { repeated: true, ..items::entry(at, item) };
                    self.note_prompt(items::is_prompt(at, item));
                    self.add_entry(at, record, found, entry);
                }
                self.in_response = false;
            }
            // Old rollouts: the user's messages, and a summary.
            None => {
                let items = &self.transcript.items;
                self.transcript.context.retain(|&item| {
                    items[item].entry().is_some_and(|entry| entry.role == Role::User)
                });
                if let Some(message) = &compacted.message {
                    let blocks = vec![Block::Summary(at.source(message))];
                    let entry = Entry { role: Role::System, blocks, ..Entry::default() };
                    self.add_entry(at, record, found, entry);
                }
            }
        }
        Ok(())
    }

    fn event(&mut self, at: &Place<'_>, record: Record, event: &raw::Event) {
        let literal = |place: &Range<usize>| &at.line[place.clone()];
        if let Some(id) = &event.id {
            let failed = event.status.as_ref().map(|it| literal(it) == b"\"failed\"");
            let exited = event.exit_code.as_ref().map(|it| !matches!(literal(it), b"0" | b"null"));
            let refused = event.success.as_ref().map(|it| literal(it) == b"false");
            if let Some(failed) = failed.or(exited).or(refused) {
                self.failed.insert(at.text(id), failed);
            }
        }
        if event.kind.as_ref().is_some_and(|kind| literal(kind) == b"\"thread_rolled_back\"") {
            self.roll_back(event.rolled_back.unwrap_or(0));
        }
        if !self.usage_recorded {
            self.usage(event.usage);
        }
        let copies = copies(at, event);
        self.transcript.items.push(Item::Kept(HiddenRecord { record, copies }));
    }

    /// Removes the last turns: the context ends before the user messages that began them.
    fn roll_back(&mut self, turns: u64) {
        let Some(skipped) = usize::try_from(turns).ok().and_then(|turns| turns.checked_sub(1))
        else {
            return;
        };
        let items = &self.transcript.items;
        let is_user =
            |item: &usize| items[*item].entry().is_some_and(|entry| entry.role == Role::User);
        let context = &self.transcript.context;
        let starts: Vec<usize> = (0..context.len()).filter(|&at| is_user(&context[at])).collect();
        let Some(first) = starts.first().copied() else { return };
        let cut = starts.len().checked_sub(skipped + 1).map_or(first, |idx| starts[idx]);
        self.transcript.context.truncate(cut);
        self.in_response = false;
    }

    fn usage(&mut self, usage: Option<Usage>) {
        let (Some(usage), Some(said)) = (usage, self.last_said) else { return };
        if let Item::Entry(entry) = &mut self.transcript.items[said] {
            entry.usage = Some(usage);
        }
    }

    fn finish(mut self) -> Transcript {
        let is_user = |item: &usize| {
            let entry = self.transcript.items[*item].entry();
            entry.is_some_and(|entry| entry.role == Role::User)
        };
        // Within a turn the service requires the reasoning that led to a call.
        let turn = self.transcript.context.iter().rev().find(|item| is_user(item)).copied();
        for (idx, item) in self.transcript.items.iter_mut().enumerate() {
            let Item::Entry(entry) = item else { continue };
            for block in &mut entry.blocks {
                match block {
                    Block::Thinking(thinking) => {
                        thinking.removable = turn.is_some_and(|turn| idx < turn);
                    }
                    Block::Output(output) => {
                        output.error = self.failed.get(&output.call).copied().unwrap_or(false);
                    }
                    _ => {}
                }
            }
        }
        // Later ones only contain changes.
        let silent = |(_, entry): &(usize, &Entry)| entry.role != Role::Assistant;
        let before = self.transcript.context().take_while(silent).map(|(item, _)| item);
        self.transcript.head.prompt = before.filter(|item| self.told.contains(item)).collect();
        self.transcript
    }
}

/// The values that an event repeats for display.
fn copies(at: &Place<'_>, event: &raw::Event) -> Vec<HiddenField> {
    let mut copies: Vec<HiddenField> = event
        .printed
        .iter()
        .map(|(name, place)| HiddenField { name, value: at.span(place), left: Left::EmptyText })
        .collect();
    let mut copy = |name, place: &Option<Range<usize>>, left| {
        if let Some(place) = place {
            copies.push(HiddenField { name, value: at.span(place), left });
        }
    };
    if event.changes.as_ref().is_some_and(|place| at.line[place.start] == b'{') {
        copy("changes", &event.changes, Left::EmptyObject);
    }
    copy("structuredContent", &event.structured, Left::Nothing);
    copies
}
