//! Converts records into a transcript.
//!
//! A record is a message or a part of one. What a resume sends is computed as OpenCode 1.18.33 does
//! it (`MessageV2.filterCompacted`, `MessageV2.toModelMessages`).

mod part;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use epitome_json::MalformedJson;
use epitome_model::{Entry, FieldRemainder, RecordedUsage, Role};

use super::{events, raw};
use crate::place::RecordBytes;
use crate::records::{RecordContent, Records, TranscriptBuilder};

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

/// The ids of a part and of its message, if they are stored next to the part.
type Ids<'r> = (Option<&'r Range<usize>>, Option<&'r Range<usize>>);

/// A message, without the content of its parts.
#[derive(Debug, Default)]
struct Message {
    id: Box<str>,
    role: Role,
    parent: Option<Box<str>>,
    time: Option<Box<str>>,
    model: Option<Box<str>>,
    usage: Option<RecordedUsage>,
    /// Whether the message is marked as a summary.
    is_summary: bool,
    /// Whether the message is a summary that was completed without an error: a history may begin
    /// with it.
    summarises: bool,
    /// Whether the message has an error.
    is_failed: bool,
    was_aborted: bool,
    /// The items of the message's parts that a model sees.
    items: Vec<usize>,
    /// All parts of the message, by id: a session may be reverted to one of them.
    parts: Vec<(Box<str>, usize)>,
    /// `None` if the message does not request a summary. Otherwise the id of the first message that
    /// is kept, if the request names one.
    compaction: Option<Option<Box<str>>>,
    /// Whether the message has a part other than reasoning or the start of a step. A message with
    /// such a part is sent even if it was aborted.
    counts: bool,
}

impl Message {
    /// The id of the first kept message; `None` unless this message requests a summary and names
    /// one.
    fn tail(&self) -> Option<&str> {
        match self {
            Message { role: Role::User, compaction: Some(Some(tail)), .. } => Some(tail),
            _ => None,
        }
    }
}

/// Reads records in their order.
#[derive(Default)]
pub struct Reader {
    messages: Vec<Message>,
    by_id: HashMap<Box<str>, usize>,
    revert: Option<(Box<str>, Option<Box<str>>)>,
    calls: HashSet<Box<str>>,
}

impl Records for Reader {
    type Record<'a> = raw::Row;

    fn record(
        &mut self,
        session: &mut TranscriptBuilder<'_>,
        at: &RecordBytes<'_>,
        row: raw::Row,
    ) -> RecordContent {
        let table = at.maybe(row.table.as_ref()).unwrap_or_default();
        let content = match (&*table, &row.data) {
            ("session", data) => {
                self.session(session, at, &row, data.as_ref());
                Ok(RecordContent::default())
            }
            ("message", Some(data)) => self.message(session, at, (data, row.id.as_ref())),
            ("part", Some(data)) => {
                let ids = (row.id.as_ref(), row.message_id.as_ref());
                self.part(session, at, (data, ids))
            }
            ("event", Some(data)) => {
                let id = at.maybe(row.session.as_ref()).unwrap_or_default();
                session.head(|| Some(format!("{id}.events").into()), || None, || None);
                events::hidden_fields(at, data).map(RecordContent::nothing)
            }
            _ => Ok(RecordContent::default()),
        };
        // The line was parsed before, so its values are valid JSON.
        content.unwrap_or_default()
    }

    /// Messages give no title: only the row of a session has one.
    fn title(_: Option<&str>, _: &dyn Fn() -> Option<Box<str>>) -> Option<String> {
        None
    }

    fn finish(mut self, session: &mut TranscriptBuilder<'_>) {
        self.taken_back();
        let order = compacted(&self.messages);
        let sent = order.into_iter().map(|idx| &self.messages[idx]);
        session.transcript.context = sent
            .filter(|message| !message.is_failed || message.was_aborted && message.counts)
            .flat_map(|message| message.items.iter().copied())
            .collect();
    }
}

impl Reader {
    /// Reads the id, folder, title and version of a session, and to which message it was reverted.
    pub fn session(
        &mut self,
        session: &mut TranscriptBuilder<'_>,
        at: &RecordBytes<'_>,
        row: &raw::Row,
        revert: Option<&Range<usize>>,
    ) {
        let head = &mut session.transcript.head;
        head.id = at.maybe(row.id.as_ref());
        head.cwd = at.maybe(row.directory.as_ref());
        head.title = row.title.as_ref().map(|title| epitome_model::title(&at.text(title)));
        head.version = at.maybe(row.version.as_ref());
        let revert = revert.and_then(|place| raw::Revert::at(at.line, place).ok());
        self.revert =
            revert.and_then(|it| Some((at.text(it.message.as_ref()?), at.maybe(it.part.as_ref()))));
    }

    /// Reads a message, without its parts: they are separate records.
    pub fn message(
        &mut self,
        session: &mut TranscriptBuilder<'_>,
        at: &RecordBytes<'_>,
        (data, id): (&Range<usize>, Option<&Range<usize>>),
    ) -> Result<RecordContent, MalformedJson> {
        let raw = raw::Message::at(at.line, data)?;
        let id = at.maybe(id.or(raw.id.as_ref())).unwrap_or_default();
        let role = at.maybe(raw.role.as_ref()).unwrap_or_default();
        session.unknown("a role", &role, &ROLES);
        let summary = at.literal(&raw.summary).unwrap_or_default();
        let is_summary = summary == b"true";
        // The files that changed while the user's message was answered: they are only displayed.
        let changed = raw.summary.clone().filter(|_| summary.starts_with(b"{"));
        let hidden_fields =
            at.hidden("summary", &changed, FieldRemainder::Nothing).into_iter().collect();
        let error = raw.error.as_ref().filter(|error| at.line[error.whole.clone()] != *b"null");
        let error_name = error.and_then(|error| at.maybe(error.name.as_ref()));
        self.by_id.insert(id.clone(), self.messages.len());
        self.messages.push(Message {
            id,
            role: match &*role {
                "assistant" => Role::Assistant,
                "user" => Role::User,
                _ => Role::System,
            },
            parent: at.maybe(raw.parent.as_ref()),
            time: at.maybe(raw.time.created.as_ref()),
            model: at.maybe(raw.model.as_ref()),
            usage: raw.usage(at.line),
            is_summary,
            summarises: is_summary && raw.finish.is_some() && error.is_none(),
            is_failed: error.is_some(),
            was_aborted: error_name.as_deref() == Some("MessageAbortedError"),
            ..Message::default()
        });
        Ok(RecordContent::nothing(hidden_fields))
    }

    /// Reads a part of a message.
    pub fn part(
        &mut self,
        session: &mut TranscriptBuilder<'_>,
        at: &RecordBytes<'_>,
        (data, (id, message)): (&Range<usize>, Ids<'_>),
    ) -> Result<RecordContent, MalformedJson> {
        let raw = raw::Part::at(at.line, data)?;
        let kind = at.maybe(raw.kind.as_ref()).unwrap_or_default();
        session.unknown("a part of a kind", &kind, &PARTS);
        let nothing = Ok(RecordContent::default());
        let of = at.maybe(message).and_then(|id| self.by_id.get(&id).copied());
        let of = of.or(self.messages.len().checked_sub(1).filter(|_| message.is_none()));
        let Some(message) = of.map(|idx| &mut self.messages[idx]) else { return nothing };
        let item = session.next();
        let id = at.maybe(id.or(raw.id.as_ref())).unwrap_or_default();
        message.parts.push((id.clone(), item));
        message.counts |= !matches!(&*kind, "step-start" | "reasoning");
        if &*kind == "compaction" {
            message.compaction = Some(at.maybe(raw.tail.as_ref()));
        }
        let entry_of_part = part::part(at, &raw, &kind, message, &id, &mut self.calls);
        let Some(entry_of_part) = entry_of_part else { return nothing };
        let group = Some(message.id.clone());
        let mut entry = Entry { id: Some(id), group, ..entry_of_part };
        entry.time.clone_from(&message.time);
        if message.role == Role::Assistant {
            entry.model.clone_from(&message.model);
            // All parts of a message are from one request: only the first part gets its usage.
            if message.items.is_empty() {
                entry.usage = message.usage;
            }
        }
        message.items.push(item);
        Ok(RecordContent { entries: vec![entry], ..RecordContent::default() })
    }

    /// Removes what the user took back by a revert: a message, or only its parts from a given one
    /// on, and all later messages. OpenCode itself deletes them at the next prompt.
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
            message.items.retain(|&item| item < cut);
        }
    }
}

/// The messages that are sent, in order: the request for the newest summary, the summary, the
/// messages that the request keeps, and those after the summary. All messages if there is no
/// summary.
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

/// Moves the messages that were kept when a summary was made to the position after the summary:
/// OpenCode sends the request for the summary, the summary, and then these messages. All other
/// messages stay in their order.
fn with_tail_behind(messages: &[Message], order: Vec<usize>) -> Vec<usize> {
    let request = order.iter().rposition(|&idx| messages[idx].tail().is_some());
    let Some(request) = request else { return order };
    let id = &messages[order[request]].id;
    let summary = order.iter().enumerate().skip(request + 1).position(|(_, &idx)| {
        messages[idx].is_summary && messages[idx].parent.as_ref() == Some(id)
    });
    let tail = messages[order[request]].tail();
    let begins = order.iter().position(|&idx| Some(&*messages[idx].id) == tail);
    match (summary, begins) {
        (Some(behind), Some(begins)) if begins < request => {
            let summary = request + 1 + behind;
            let kept = &order[begins..request];
            let asked = &order[request..=summary];
            [asked, kept, &order[summary + 1..]].concat()
        }
        _ => order,
    }
}
