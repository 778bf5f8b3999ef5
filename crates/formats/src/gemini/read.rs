//! Converts records into a transcript.

use std::collections::HashMap;
use std::ops::Range;

use epitome_model::{
    Block, Entry, Fault, Faults, Head, HiddenRecord, Item, Output, Part, Record, RepeatedOutput,
    Role, Source, Span, Stub, Text, Transcript, is_left_by_recipe,
};
use memchr::memmem;

use super::log::Log;
use super::message::{self, CONTEXT, Message, Numbers};
use super::raw;
use crate::lines::record;
use crate::place::RecordBytes;
use crate::unknown::Unknown;
use crate::{Line, lines};

/// The text that precedes the list of directories, in the context that Gemini CLI puts before a
/// conversation.
const FOLDERS: &str = "Workspace Directories:**\n  - ";

/// The model's reply to a summary, which Gemini CLI writes itself.
pub const THANKS: &str = "Got it. Thanks for the additional context!";

/// Types of messages.
const MESSAGES: [&str; 5] = ["user", "gemini", "info", "warning", "error"];

/// Whether one of the first lines is a header, or the text begins like the JSON object of older
/// versions.
pub fn sniff(head: &[u8]) -> bool {
    let mut known = false;
    lines(&head, |line| {
        known = known
            || raw::Record::parse(line.bytes)
                .is_ok_and(|record| record.session.is_some() && record.project.is_some());
    });
    known || begins_whole(head)
}

fn begins_whole(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    text.starts_with(b"{")
        && memmem::find(head, b"\"sessionId\":").is_some()
        && memmem::find(head, b"\"projectHash\":").is_some()
        && raw::Record::parse(text.split(|&byte| byte == b'\n').next().unwrap_or_default()).is_err()
}

/// Reads a session.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    let mut reader = Reader::default();
    let mut found_faults = Vec::new();
    lines(source, |line| reader.line(&line, &mut found_faults));
    if !reader.has_header
        && let Some(whole) = whole(source, faults)
    {
        return whole.finish(source);
    }
    found_faults.into_iter().for_each(|fault| faults.report(fault));
    reader.finish(source)
}

/// Reads a session of an older version, which is one object over all lines; `None` if the source is
/// not such an object.
fn whole(source: &dyn Source, faults: &mut dyn Faults) -> Option<Reader> {
    if source.read(0..1).as_ref() != b"{" {
        return None;
    }
    let bytes = source.read(0..source.len());
    let record = raw::Record::parse(&bytes).ok().filter(|record| record.session.is_some())?;
    let mut reader = Reader::default();
    let at = RecordBytes { line: &bytes, base: 0 };
    reader.head(&at, &record);
    let messages = record.messages.array_items(&bytes).unwrap_or_default();
    let mut line = 1;
    let mut from = 0;
    for raw in messages.iter().filter(|raw| raw.id.is_some()) {
        line += memchr::memchr_iter(b'\n', &bytes[from..raw.whole.start]).count() as u64;
        from = raw.whole.start;
        let message = reader.message(&at, line, raw, faults);
        reader.slots.push(Slot::Messages(message..message + 1));
    }
    Some(reader)
}

/// What the reader makes of one record of the file.
enum Slot {
    /// A record that no model sees.
    HiddenRecord(HiddenRecord),
    /// Messages, by their numbers.
    Messages(Range<usize>),
    /// A list of messages that replaces the history.
    List { record: Record, messages: Range<usize> },
}

#[derive(Default)]
struct Reader {
    head: Head,
    has_header: bool,
    named: bool,
    slots: Vec<Slot>,
    messages: Vec<Message>,
    log: Log,
    unknown: Unknown,
}

impl Reader {
    fn line(&mut self, line: &Line<'_>, faults: &mut Vec<Fault>) {
        let slot = match record::<raw::Record>(line, faults) {
            Some(record) => self.record(line, record, faults),
            None => Slot::HiddenRecord(kept(line)),
        };
        self.slots.push(slot);
    }

    /// Reads a record. The kinds are tested in the order in which Gemini CLI tests them.
    fn record(&mut self, line: &Line<'_>, raw: raw::Record, faults: &mut dyn Faults) -> Slot {
        let at = RecordBytes::from_line(line);
        if let Some(operation) = &raw.operation {
            self.unknown.kind((line.record.line, "an operation"), operation, &[], faults);
        }
        if let Some(id) = &raw.rewind_to {
            self.log.rewind(&at.text(id));
            return Slot::HiddenRecord(kept(line));
        }
        if raw.message.id.is_some() {
            let raw = raw::Message { whole: raw.whole, ..raw.message };
            let message = self.message(&at, line.record.line, &raw, faults);
            return Slot::Messages(message..message + 1);
        }
        if let Some(set) = &raw.set {
            self.name(&at, set.summary.as_ref());
            let Some(messages) = set.messages.array_items(at.line) else {
                return Slot::HiddenRecord(kept(line));
            };
            self.log.clear(self.messages.len());
            return self.messages(&at, line, messages, faults);
        }
        self.head(&at, &raw);
        match raw.messages.array_items(at.line) {
            Some(messages) if raw.session.is_some() && raw.project.is_some() => {
                self.messages(&at, line, messages, faults)
            }
            Some(_) | None => Slot::HiddenRecord(kept(line)),
        }
    }

    fn head(&mut self, at: &RecordBytes<'_>, raw: &raw::Record) {
        if let (Some(session), Some(_)) = (&raw.session, &raw.project) {
            self.has_header = true;
            self.head.id = Some(at.text(session));
        }
        if self.head.id.is_none() {
            self.head.id = at.maybe(raw.session.as_ref());
        }
        self.name(at, raw.summary.as_ref());
    }

    fn name(&mut self, at: &RecordBytes<'_>, summary: Option<&Range<usize>>) {
        if let Some(summary) = summary {
            self.head.title = Some(epitome_model::title(&at.text(summary)));
            self.named = true;
        }
    }

    fn messages(
        &mut self,
        at: &RecordBytes<'_>,
        line: &Line<'_>,
        raw: &[raw::Message],
        faults: &mut dyn Faults,
    ) -> Slot {
        let first = self.messages.len();
        for message in raw.iter().filter(|message| message.id.is_some()) {
            self.message(at, line.record.line, message, faults);
        }
        let messages = first..self.messages.len();
        if messages.is_empty() {
            return Slot::HiddenRecord(kept(line));
        }
        Slot::List { record: line.record, messages }
    }

    fn message(
        &mut self,
        at: &RecordBytes<'_>,
        line: u64,
        raw: &raw::Message,
        faults: &mut dyn Faults,
    ) -> usize {
        let kind = at.maybe(raw.kind.as_ref()).unwrap_or_default();
        self.unknown.kind((line, "a message of a kind"), &kind, &MESSAGES, faults);
        let number = self.messages.len();
        let record = Record { line, span: at.span(&raw.whole) };
        let message = message::convert(at, record, raw);
        self.log.put(&message.id, number);
        if let Some(Item::Entry(entry)) = message.items.first() {
            self.look(at, entry, message.sent);
        }
        self.messages.push(message);
        number
    }

    /// Reads the title and the directory from an entry.
    fn look(&mut self, at: &RecordBytes<'_>, entry: &Entry, sent: bool) {
        match entry.role {
            Role::System if self.head.cwd.is_none() => {
                let text = at.first_text(entry).filter(|text| text.starts_with(CONTEXT));
                let folders = text.as_ref().and_then(|text| text.split_once(FOLDERS));
                self.head.cwd = folders
                    .and_then(|(_, rest)| rest.lines().next())
                    .map(|folder| folder.trim().into());
            }
            Role::User if sent && self.head.title.is_none() && !self.named => {
                let text = at.first_text(entry);
                self.head.title = text.map(|text| epitome_model::title(text.trim()));
            }
            Role::User | Role::System | Role::Assistant | Role::Tool => {}
        }
    }

    fn finish(self, source: &dyn Source) -> Transcript {
        let Reader { head, slots, messages: mut all, log, .. } = self;
        let mut transcript = Transcript { head, ..Transcript::default() };
        let mut places: Vec<Range<usize>> = vec![0..0; all.len()];
        for slot in slots {
            match slot {
                Slot::HiddenRecord(kept) => transcript.items.push(Item::Hidden(kept)),
                Slot::List { record, messages } if is_repeated(&log, &all, &messages) => {
                    let outdated = all[messages].iter_mut().map(|it| &mut it.outdated);
                    let hidden_fields = outdated.flat_map(std::mem::take).collect();
                    transcript.items.push(Item::Hidden(HiddenRecord { record, hidden_fields }));
                }
                Slot::Messages(messages) | Slot::List { messages, .. } => {
                    for message in messages {
                        let first = transcript.items.len();
                        transcript.items.extend(items(&log, &mut all[message], message));
                        places[message] = first..transcript.items.len();
                    }
                }
            }
        }
        for message in log.valid_messages().filter(|&message| all[message].sent) {
            let items = places[message].clone();
            let entries = items.filter(|&item| transcript.items[item].entry().is_some());
            transcript.context.extend(entries);
        }
        first_times(&mut transcript, source);
        summary(&mut transcript, source);
        transcript
    }
}

fn kept(line: &Line<'_>) -> HiddenRecord {
    HiddenRecord { record: line.record, hidden_fields: Vec::new() }
}

/// The items of a message. If a later record repeats the message, hidden records take the place of
/// its items, as many as there would be items: a record that is appended to the log must not change
/// the indices of existing items.
fn items(log: &Log, message: &mut Message, number: usize) -> Vec<Item> {
    if log.is_outdated(&message.id, number) {
        let record = message.record;
        let mut items: Vec<Item> = (message.items.iter())
            .map(|_| Item::Hidden(HiddenRecord { record, hidden_fields: Vec::new() }))
            .collect();
        if let Some(Item::Hidden(first)) = items.first_mut() {
            first.hidden_fields = std::mem::take(&mut message.outdated);
        }
        return items;
    }
    std::mem::take(&mut message.items)
}

/// Whether a list of messages was replaced, and later records repeat every message of the list.
fn is_repeated(log: &Log, all: &[Message], messages: &Range<usize>) -> bool {
    log.was_replaced_after(messages.start)
        && messages.clone().all(|message| log.is_outdated(&all[message].id, message))
}

/// Converts repeated results back to results if they are no repetitions: the first result of each
/// call, and later results with other content. Also converts later results that a recipe shortened
/// to a text without a reference: their originals may differ although the texts are equal. The
/// pictures of converted later results become opaque, because without them the contents might
/// become equal.
fn first_times(transcript: &mut Transcript, source: &dyn Source) {
    let mut order = transcript.context.clone();
    let mut sent = vec![false; transcript.items.len()];
    order.iter().for_each(|&item| sent[item] = true);
    order.extend((0..transcript.items.len()).filter(|&item| !sent[item]));
    let mut first: HashMap<Box<str>, Vec<Span>> = HashMap::new();
    let mut numbers = Numbers::default();
    for item in order {
        let Item::Entry(entry) = &mut transcript.items[item] else { continue };
        for block in &mut entry.blocks {
            match block {
                Block::Call(call) => numbers.call(&mut call.id),
                Block::Repeated(RepeatedOutput { output, .. }) => {
                    numbers.result(&mut output.call);
                    let before = first.get(&output.call);
                    let same = before.is_some_and(|it| is_same(it, &spans(output), source));
                    if !same || is_counted(output, source) {
                        restore(&mut first, output);
                        *block = Block::Output(output.clone());
                    }
                }
                Block::Output(output) => {
                    numbers.result(&mut output.call);
                    restore(&mut first, output);
                }
                _ => {}
            }
        }
    }
}

/// Remembers the content of a result if it is the first of its call. Otherwise makes its pictures
/// opaque, so that no edit removes them.
fn restore(first: &mut HashMap<Box<str>, Vec<Span>>, output: &mut Output) {
    if !first.contains_key(&output.call) {
        first.insert(output.call.clone(), spans(output));
        return;
    }
    for part in &mut output.parts {
        if let Part::Image(image) = part {
            *part = Part::Opaque(image.whole);
        }
    }
}

/// The spans of the content of a result: its text, and the pictures and opaque parts next to it.
fn spans(output: &Output) -> Vec<Span> {
    let image_spans = output.parts.iter().filter_map(|part| match part {
        Part::Image(image) => Some(image.whole),
        Part::Opaque(whole) => Some(*whole),
        Part::Text(_) => None,
    });
    std::iter::once(output.whole).chain(image_spans).collect()
}

fn is_same(one: &[Span], other: &[Span], source: &dyn Source) -> bool {
    let mut pairs = one.iter().zip(other);
    one.len() == other.len() && pairs.all(|(one, other)| source.at(*one) == source.at(*other))
}

/// Whether the text of a result is a short text without a reference that a recipe left. Two such
/// texts may be equal although the results that they replaced differ.
fn is_counted(output: &Output, source: &dyn Source) -> bool {
    let small = output.whole.len() < 1024;
    small && {
        let text = output.text(source);
        is_left_by_recipe(&text) && Stub::parse(&text).is_none()
    }
}

/// Marks a summary that Gemini CLI wrote in the user's role, and the model's thanks for it, as
/// texts of the agent.
fn summary(transcript: &mut Transcript, source: &dyn Source) {
    let thanked = transcript.context.windows(2).find_map(|pair| {
        let summary = only_text(&transcript.items[pair[0]])?;
        let thanks = only_text(&transcript.items[pair[1]])?;
        let is_short = thanks.span().is_some_and(|span| span.len() < 64);
        let user = transcript.items[pair[0]].entry()?.role == Role::User;
        let is_thanked = user && is_short && thanks.read(source) == THANKS;
        is_thanked.then(|| ([pair[0], pair[1]], summary.clone()))
    });
    let Some((both, text)) = thanked else { return };
    for item in both {
        if let Item::Entry(entry) = &mut transcript.items[item] {
            entry.role = Role::System;
        }
    }
    if let Item::Entry(entry) = &mut transcript.items[both[0]] {
        entry.blocks = vec![Block::Summary(text)];
    }
}

fn only_text(item: &Item) -> Option<&Text> {
    match item.entry()?.blocks.as_slice() {
        [Block::Text(text)] => Some(text),
        _ => None,
    }
}
