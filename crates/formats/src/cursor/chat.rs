//! Chats of the CLI: rows of a `store.db`.

use std::collections::{HashMap, HashSet};

use epitome_json::{Document, Value};
use epitome_model::{Entry, Faults, Item, Role, Source, Transcript};

use super::message::{self, Calls};
use super::record::title;
use super::state;
use super::transcript::first_words;
use crate::database::folder;
use crate::place::RecordBytes;
use crate::records::{self, RecordContent, Records, TranscriptBuilder};

/// A message of at most this many bytes is sent as often as the state lists it.
///
/// Messages are identified by a hash of their bytes, so a repeated message is stored once. A longer
/// message is sent only once, because no user types it twice, and a small state must not expand to
/// a huge context.
const OFTEN: u64 = 1 << 10;

/// Reads a chat.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    let mut transcript = records::read::<Reader>(source, faults);
    if transcript.head.title.is_none() {
        transcript.head.title = first_words(&transcript, source);
    }
    transcript
}

#[derive(Default)]
struct Reader {
    messages: HashMap<Box<str>, usize>,
    /// The hashes of the messages that are sent, in the order in which the state lists them.
    sent: Vec<Box<str>>,
    model: Option<Box<str>>,
    calls: Calls,
}

impl Records for Reader {
    type Record<'a> = Document<'a>;

    fn record(
        &mut self,
        session: &mut TranscriptBuilder<'_>,
        _: &RecordBytes<'_>,
        record: Document<'_>,
    ) -> RecordContent {
        let root = &record.root;
        let mut content = RecordContent::default();
        let Some(data) = root.get("data") else { return content };
        if root.get("meta").is_some() {
            self.meta(session, data);
        } else if root.get("state").is_some() {
            if let Some(digits) = data.text() {
                self.state(session, &digits);
            }
        } else if let (Some(id), Some(entry)) =
            (root.boxed_text_of("message"), entry(data, &mut self.calls))
        {
            self.messages.insert(id.clone(), session.next());
            content.entries.push(Entry { id: Some(id), ..entry });
        }
        content
    }

    /// Messages give no title while they are read: if the chat has no name, [`read`] takes the
    /// title afterwards from the first text that the user typed.
    fn title(_: Option<&str>, _: &dyn Fn() -> Option<Box<str>>) -> Option<String> {
        None
    }

    fn finish(self, session: &mut TranscriptBuilder<'_>) {
        let transcript = &mut session.transcript;
        let mut seen = HashSet::new();
        for id in &self.sent {
            let Some(&item) = self.messages.get(id) else { continue };
            let length = transcript.items[item].record().span.len();
            if seen.insert(item) || length <= OFTEN {
                transcript.context.push(item);
            }
        }
        let prompt = transcript.context.iter().copied().take_while(|&item| {
            transcript.items[item].entry().is_some_and(|entry| entry.role == Role::System)
        });
        transcript.head.prompt = prompt.collect();
        for item in &mut transcript.items {
            if let Item::Entry(entry) = item
                && entry.role == Role::Assistant
                && entry.model.is_none()
            {
                entry.model.clone_from(&self.model);
            }
        }
    }
}

impl Reader {
    fn meta(&mut self, session: &mut TranscriptBuilder<'_>, data: &Value<'_>) {
        let head = &mut session.transcript.head;
        head.id = data.boxed_text_of("agentId");
        let name = data.text_of("name").and_then(|name| title(&name));
        head.title = name.filter(|name| &**name != "New Agent");
        self.model = data.boxed_text_of("lastUsedModel");
    }

    fn state(&mut self, session: &mut TranscriptBuilder<'_>, digits: &str) {
        let state = state::read(digits);
        self.sent = state.messages;
        session.transcript.head.cwd = state.folders.last().map(|url| folder(url).into());
        if !state.is_whole {
            session.fault("the state of the chat is damaged");
        }
    }
}

fn entry(data: &Value<'_>, calls: &mut Calls) -> Option<Entry> {
    let role = message::role(&data.text_of("role")?)?;
    let blocks = message::content(data.get("content")?, calls);
    let cursor = data.get("providerOptions").and_then(|options| options.get("cursor"));
    let model = cursor.and_then(|cursor| cursor.text_of("modelName")).map(Into::into);
    Some(Entry { role, blocks, model, ..Entry::default() })
}
