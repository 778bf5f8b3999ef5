//! Converts records into a transcript.
//!
//! A record is a message or a part of one; what a resume sends is determined as in OpenCode 1.18.33
//! (`MessageV2.filterCompacted`, `MessageV2.toModelMessages`).

mod said;

use std::collections::HashMap;
use std::ops::Range;

use epitome_json::{Cursor, Malformed};
use epitome_model::{
    Entry, Faults, HiddenField, HiddenRecord, Item, Left, Record, Role, Transcript, Usage,
};

use super::{events, raw};
use crate::Line;
use crate::lines::record;
use crate::place::Place;
use crate::unknown::Unknown;

const ROLES: [&str; 2] = ["user", "assistant"];
/// Types of parts.
const PARTS: [&str; 12] = [
    "text",
    "reasoning",
    "tool",
    "file",
    "compaction",
    "subtask",
    "step-start",
    "step-finish",
    "patch",
    "snapshot",
    "agent",
    "retry",
];

/// The ids of a part and of its message, if they are next to it.
type Ids<'r> = (Option<&'r Range<usize>>, Option<&'r Range<usize>>);

/// A message, without the content of its parts.
#[derive(Debug, Default)]
struct Message {
    id: Box<str>,
    role: Role,
    parent: Option<Box<str>>,
    time: Option<Box<str>>,
    model: Option<Box<str>>,
    usage: Option<Usage>,
    /// Whether it is marked as a summary.
    is_summary: bool,
    /// Whether the history begins with it: a summary that finished without an error.
    summarises: bool,
    /// Whether it failed before it had content.
    is_failed: bool,
    was_aborted: bool,
    /// Its parts with content, as items.
    said: Vec<usize>,
    /// All of its parts, by id: a session may be reverted to one of them.
    parts: Vec<(Box<str>, usize)>,
    /// If it requests a summary: where the kept part of the history begins.
    compaction: Option<Option<Box<str>>>,
    /// Whether one of its parts counts although it failed.
    counts: bool,
}

/// Collects records in their order.
#[derive(Default)]
pub struct Reader {
    transcript: Transcript,
    messages: Vec<Message>,
    by_id: HashMap<Box<str>, usize>,
    revert: Option<(Box<str>, Option<Box<str>>)>,
    calls: std::collections::HashSet<Box<str>>,
    unknown: Unknown,
}

impl Reader {
    /// Reads a row in the form of a line.
    pub fn line(&mut self, line: &Line<'_>, faults: &mut dyn Faults) {
        let kept = Item::Kept(HiddenRecord { record: line.record, copies: Vec::new() });
        let Some(row) = record(line, raw::row, faults) else {
            self.transcript.items.push(kept);
            return;
        };
        let at = Place::of(line);
        let table = at.maybe(row.table.as_ref()).unwrap_or_default();
        // The line was parsed before, so its values are valid JSON.
        let done = match (&*table, &row.data) {
            ("session", data) => {
                self.session(&at, &row, data.as_ref());
                Ok(())
            }
            ("message", Some(data)) => {
                self.message(&at, line.record, (data, row.id.as_ref()), faults)
            }
            ("part", Some(data)) => {
                let ids = (row.id.as_ref(), row.message_id.as_ref());
                self.part(&at, line.record, (data, ids), faults)
            }
            ("event", Some(data)) => self.event(&at, line.record, &row, data),
            _ => Ok(()),
        };
        if done.is_err() || self.transcript.items.last().map(Item::record) != Some(line.record) {
            self.transcript.items.push(kept);
        }
    }

    /// Reads the facts about a session.
    pub fn session(&mut self, at: &Place<'_>, row: &raw::Row, revert: Option<&Range<usize>>) {
        let head = &mut self.transcript.head;
        head.id = at.maybe(row.id.as_ref());
        head.cwd = at.maybe(row.directory.as_ref());
        head.title = row.title.as_ref().map(|title| epitome_model::title(&at.text(title)));
        head.version = at.maybe(row.version.as_ref());
        let revert = revert.and_then(|at_data| raw::revert(&mut Cursor::at(at.line, at_data)).ok());
        self.revert =
            revert.and_then(|it| Some((at.text(it.message.as_ref()?), at.maybe(it.part.as_ref()))));
    }

    /// Reads a message. Its parts follow.
    pub fn message(
        &mut self,
        at: &Place<'_>,
        record: Record,
        (data, id): (&Range<usize>, Option<&Range<usize>>),
        faults: &mut dyn Faults,
    ) -> Result<(), Malformed> {
        let raw = raw::message(&mut Cursor::at(at.line, data), at.line)?;
        let id = at.maybe(id.or(raw.id.as_ref())).unwrap_or_default();
        let role = at.maybe(raw.role.as_ref());
        let spoken = role.as_deref().unwrap_or_default();
        self.unknown.kind((record.line, "a role"), spoken, &ROLES, faults);
        let role = match role.as_deref() {
            Some("assistant") => Role::Assistant,
            Some("user") => Role::User,
            Some(_) | None => Role::System,
        };
        let mut copies = Vec::new();
        let mut is_summary = false;
        if let Some(place) = &raw.summary {
            // The files that changed while the user was answered: only displayed.
            if at.line[place.start] == b'{' {
                copies.push(HiddenField {
                    name: "summary",
                    value: at.span(place),
                    left: Left::Nothing,
                });
            }
            is_summary = &at.line[place.clone()] == b"true";
        }
        let failed = raw.error.as_ref().is_some_and(|place| &at.line[place.clone()] != b"null");
        let aborted = at.maybe(raw.error_name.as_ref()).as_deref() == Some("MessageAbortedError");
        self.by_id.insert(id.clone(), self.messages.len());
        self.messages.push(Message {
            id,
            role,
            parent: at.maybe(raw.parent.as_ref()),
            time: raw.created.as_ref().map(|place| at.text(place)),
            model: at.maybe(raw.model.as_ref()),
            usage: raw.usage.map(|usage| match &raw.cost {
                Some(cost) => usage.with_cost(&String::from_utf8_lossy(&at.line[cost.clone()])),
                None => usage,
            }),
            is_summary,
            summarises: is_summary && raw.finish.is_some() && !failed,
            is_failed: failed,
            was_aborted: aborted,
            ..Message::default()
        });
        self.transcript.items.push(Item::Kept(HiddenRecord { record, copies }));
        Ok(())
    }

    /// A part of a message.
    pub fn part(
        &mut self,
        at: &Place<'_>,
        record: Record,
        (data, (id, message)): (&Range<usize>, Ids<'_>),
        faults: &mut dyn Faults,
    ) -> Result<(), Malformed> {
        let raw = raw::part(&mut Cursor::at(at.line, data), at.line)?;
        let kind = at.maybe(raw.kind.as_ref()).unwrap_or_default();
        self.unknown.kind((record.line, "a part of a kind"), &kind, &PARTS, faults);
        let of = at.maybe(message).and_then(|id| self.by_id.get(&id).copied());
        let of = of.or(self.messages.len().checked_sub(1).filter(|_| message.is_none()));
        let Some(message) = of.map(|idx| &mut self.messages[idx]) else { return Ok(()) };
        let item = self.transcript.items.len();
        let id = at.maybe(id.or(raw.id.as_ref())).unwrap_or_default();
        message.parts.push((id.clone(), item));
        message.counts |= !matches!(&*kind, "step-start" | "reasoning");
        if &*kind == "compaction" {
            message.compaction = Some(at.maybe(raw.tail.as_ref()));
        }
        let Some(said) = said::part(at, &raw, &kind, message, &id, &mut self.calls) else {
            let copies = Vec::new();
            self.transcript.items.push(Item::Kept(HiddenRecord { record, copies }));
            return Ok(());
        };
        let group = Some(message.id.clone());
        let mut entry = Entry { record, id: Some(id), group, ..said };
        entry.time.clone_from(&message.time);
        if message.role == Role::Assistant {
            entry.model.clone_from(&message.model);
            // All parts of a message come from one request.
            if message.said.is_empty() {
                entry.usage = message.usage;
            }
        }
        message.said.push(item);
        self.transcript.items.push(Item::Entry(Box::new(entry)));
        Ok(())
    }

    fn event(
        &mut self,
        at: &Place<'_>,
        record: Record,
        row: &raw::Row,
        data: &Range<usize>,
    ) -> Result<(), Malformed> {
        if self.transcript.head.id.is_none() {
            let session = at.maybe(row.session.as_ref()).unwrap_or_default();
            self.transcript.head.id = Some(format!("{session}.events").into());
        }
        let copies = events::copies(at, data)?;
        self.transcript.items.push(Item::Kept(HiddenRecord { record, copies }));
        Ok(())
    }

    /// Adds a record that no model sees.
    pub fn keep(&mut self, record: Record) {
        self.transcript.items.push(Item::Kept(HiddenRecord { record, copies: Vec::new() }));
    }

    /// The transcript, with what a resume would send.
    pub fn finish(mut self) -> Transcript {
        self.taken_back();
        let order = compacted(&self.messages);
        let sent = order.into_iter().map(|idx| &self.messages[idx]);
        self.transcript.context = sent
            .filter(|message| !message.is_failed || message.was_aborted && message.counts)
            .flat_map(|message| message.said.iter().copied())
            .collect();
        self.transcript
    }

    /// With its next prompt OpenCode deletes the messages that a revert covers.
    fn taken_back(&mut self) {
        let Some((id, part)) = &self.revert else { return };
        let Some(&idx) = self.by_id.get(id) else { return };
        let Some(part) = part else {
            self.messages.truncate(idx);
            return;
        };
        self.messages.truncate(idx + 1);
        let message = &mut self.messages[idx];
        let cut = message.parts.iter().find(|(id, _)| id == part).map(|(_, item)| *item);
        if let Some(cut) = cut {
            message.said.retain(|&item| item < cut);
        }
    }
}

/// The messages that are sent, in order: from the newest summary on, followed by what it kept.
fn compacted(messages: &[Message]) -> Vec<usize> {
    let mut back: Vec<usize> = Vec::new();
    let mut summarised: Vec<&str> = Vec::new();
    let mut tail: Option<&str> = None;
    for (idx, message) in messages.iter().enumerate().rev() {
        back.push(idx);
        if let Some(tail) = tail {
            if *message.id == *tail {
                break;
            }
            continue;
        }
        match &message.compaction {
            Some(begins) if message.role == Role::User && summarised.contains(&&*message.id) => {
                let Some(begins) = begins.as_deref() else { break };
                tail = Some(begins);
                if *message.id == *begins {
                    break;
                }
            }
            Some(_) | None if message.summarises => {
                summarised.extend(message.parent.as_deref());
            }
            Some(_) | None => {}
        }
    }
    back.reverse();
    with_tail_behind(messages, back)
}

/// Puts the request for a summary and the summary before what was kept.
fn with_tail_behind(messages: &[Message], order: Vec<usize>) -> Vec<usize> {
    let asks = |idx: usize| match &messages[idx] {
        Message { role: Role::User, compaction: Some(Some(tail)), .. } => Some(tail),
        _ => None,
    };
    let Some(request) = order.iter().rposition(|&idx| asks(idx).is_some()) else { return order };
    let id = &messages[order[request]].id;
    let summary = order.iter().enumerate().skip(request + 1).position(|(_, &idx)| {
        messages[idx].is_summary && messages[idx].parent.as_ref() == Some(id)
    });
    let tail = asks(order[request]);
    let begins = order.iter().position(|&idx| Some(&messages[idx].id) == tail);
    match (summary, begins) {
        (Some(behind), Some(begins)) if begins < request => {
            let summary = request + 1 + behind;
            let (kept, asked) = (&order[begins..request], &order[request..=summary]);
            [asked, kept, &order[summary + 1..]].concat()
        }
        _ => order,
    }
}
