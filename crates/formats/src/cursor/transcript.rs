//! Transcripts of JSON lines: messages and calls, without most results.

use epitome_json::{Document, Value};
use epitome_model::{Block, Entry, Faults, Role, Source, Transcript};

use super::message::{self, Calls};
use super::record::{title, user_query};
use crate::lines;
use crate::place::RecordBytes;
use crate::records::{self, ContextEffect, RecordContent, Records, TranscriptBuilder};

/// Whether the first line is a message in the form that transcripts have.
pub fn begins(head: &[u8]) -> bool {
    let mut known = false;
    lines(&head, |line| {
        if line.record.line > 1 {
            return;
        }
        known = match Document::parse(line.bytes) {
            Ok(document) => is_message(&document.root),
            // The head may end within the first message.
            Err(_) => {
                !line.ended
                    && line.bytes.starts_with(b"{\"role\":\"user\",\"message\":{\"content\":")
            }
        };
    });
    known
}

/// Reads a transcript.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    let mut transcript = records::read::<Reader>(source, faults);
    transcript.head.title = first_words(&transcript, source);
    transcript
}

#[derive(Default)]
struct Reader(Calls);

impl Records for Reader {
    type Record<'a> = Document<'a>;

    fn record(
        &mut self,
        _: &mut TranscriptBuilder<'_>,
        _: &RecordBytes<'_>,
        record: Document<'_>,
    ) -> RecordContent {
        let entries = entry(&record.root, &mut self.0).into_iter().collect();
        RecordContent { entries, effect: ContextEffect::Adds, ..RecordContent::default() }
    }

    fn title(_: Option<&str>, _: &dyn Fn() -> Option<Box<str>>) -> Option<String> {
        None
    }
}

/// A title: the first text that the user typed, or its beginning; `None` if there is no such text.
/// Cursor puts typed texts in tags, to distinguish them from its own texts in the user's role. If
/// no text has tags, the first text in the user's role is used.
pub fn first_words(transcript: &Transcript, source: &dyn Source) -> Option<Box<str>> {
    let users = transcript.context().filter(|(_, entry)| entry.role == Role::User);
    let texts = users.flat_map(|(_, entry)| &entry.blocks).filter_map(|block| match block {
        Block::Text(text) => Some(text.read(source)),
        _ => None,
    });
    let mut first = None;
    for text in texts {
        if let Some(typed) = user_query(&text) {
            return title(typed);
        }
        first = first.or_else(|| title(&text));
    }
    first
}

fn is_message(root: &Value<'_>) -> bool {
    let role = root.text_of("role").and_then(|role| message::role(&role));
    let content = root.get("message").and_then(|message| message.get("content"));
    role.is_some() && root.get("type").is_none() && content.is_some()
}

fn entry(root: &Value<'_>, calls: &mut Calls) -> Option<Entry> {
    let role = message::role(&root.text_of("role")?)?;
    let content = root.get("message")?.get("content")?;
    let blocks = message::content(content, calls);
    (!blocks.is_empty()).then(|| Entry { role, blocks, ..Entry::default() })
}
