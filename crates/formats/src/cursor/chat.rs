//! Chats of the CLI: rows of a `store.db`.

use std::collections::{HashMap, HashSet};

use epitome_json::{Document, Value};
use epitome_model::{Entry, Fault, Faults, Item, Record, Role, Source, Transcript};

use super::message::{self, Calls};
use super::record::{kept, line, title};
use super::state;
use super::transcript::first_words;
use crate::database::folder;
use crate::lines;
use crate::place::Place;

/// Messages are identified by a hash of their bytes, so that a repeated message is stored once. A
/// message of at most this length is sent as often as the state lists it; a longer one, which no
/// user types twice, only once, so that a small state cannot expand to a huge context.
const OFTEN: u64 = 1 << 10;

/// Reads a chat.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    let mut reader = Reader::default();
    let mut items = Vec::new();
    lines(source, |it| {
        let mut fault = None;
        line(&it, &mut items, faults, |at, document, items| {
            fault = reader.row(at, document, it.record, items);
        });
        if let Some(what) = fault {
            faults.report(Fault { line: it.record.line, what });
        }
    });
    reader.transcript.items = items;
    reader.finish(source)
}

#[derive(Default)]
struct Reader {
    transcript: Transcript,
    messages: HashMap<Box<str>, usize>,
    /// The hashes of the messages that are sent.
    sent: Vec<Box<str>>,
    model: Option<Box<str>>,
    calls: Calls,
    name: Option<Box<str>>,
}

impl Reader {
    fn row(
        &mut self,
        at: &Place<'_>,
        document: &Document<'_>,
        record: Record,
        items: &mut Vec<Item>,
    ) -> Option<String> {
        let root = &document.root;
        let data = root.get("data")?;
        if root.get("meta").is_some() {
            self.meta(data);
        } else if root.get("state").is_some() {
            return self.state(&data.text()?);
        } else if let (Some(id), Some(mut entry)) =
            (root.word("message"), entry(at, data, &mut self.calls))
        {
            entry.record = record;
            entry.id = Some(id.as_ref().into());
            self.messages.insert(id.into(), items.len());
            items.push(Item::Entry(Box::new(entry)));
        } else {
            items.push(kept(record));
        }
        None
    }

    fn meta(&mut self, data: &Value<'_>) {
        let head = &mut self.transcript.head;
        head.id = data.word("agentId").map(Into::into);
        self.name = data.word("name").and_then(|name| title(&name));
        self.model = data.word("lastUsedModel").map(Into::into);
    }

    fn state(&mut self, digits: &str) -> Option<String> {
        let state = state::read(digits);
        self.sent = state.messages;
        self.transcript.head.cwd = state.folders.last().map(|url| folder(url).into());
        (!state.is_whole).then(|| "the state of the chat is damaged".to_owned())
    }

    fn finish(mut self, source: &dyn Source) -> Transcript {
        let transcript = &mut self.transcript;
        let mut seen = HashSet::new();
        for id in &self.sent {
            let Some(&item) = self.messages.get(id) else { continue };
            let length = transcript.items[item].record().span.len();
            if seen.insert(item) || length <= OFTEN {
                transcript.context.push(item);
            }
        }
        let role = |item: usize| transcript.items[item].entry().map(|entry| entry.role);
        let told = transcript.context.iter().copied();
        transcript.head.prompt =
            told.take_while(|&item| role(item) == Some(Role::System)).collect();
        for item in &mut transcript.items {
            if let Item::Entry(entry) = item
                && entry.role == Role::Assistant
                && entry.model.is_none()
            {
                entry.model.clone_from(&self.model);
            }
        }
        // The default name of every chat is less useful than its first words.
        let named = self.name.filter(|name| &**name != "New Agent");
        transcript.head.title = named.or_else(|| first_words(transcript, source));
        self.transcript
    }
}

fn entry(at: &Place<'_>, data: &Value<'_>, calls: &mut Calls) -> Option<Entry> {
    let role = message::role(&data.word("role")?)?;
    let blocks = message::content(at, data.get("content")?, calls);
    let cursor = data.get("providerOptions").and_then(|options| options.get("cursor"));
    let model = cursor.and_then(|cursor| cursor.word("modelName")).map(Into::into);
    Some(Entry { role, blocks, model, ..Entry::default() })
}
