//! Writes Codex's own record of a summarised history: the user's messages and the summary.
//!
//! Codex 0.169 writes the same when it compacts without the help of the service: the texts that
//! introduce a conversation to the model, the newest messages of the user, and the summary. epitome
//! writes the kept end of the context after them.

use std::collections::HashSet;

use epitome_model::{Block, Bytes, Entry, Role, Source, Summary, Transcript, encode};

use super::append::{self, HistoryItem, MALFORMED, Nth};
use super::{items, raw};
use crate::place::RecordBytes;

/// The limit of the user's messages that Codex keeps: 20,000 tokens, estimated at four bytes each.
const WORDS: Bytes = Bytes(4 * 20_000);

/// The rest of Codex's introduction of a summary, after [`items::SUMMARY`].
const REST: &str = " process. You also have access to the state of the tools that were used by \
                    that language model. Use this to build on the work that has already been done \
                    and avoid duplicating work. Here is the summary produced by the other \
                    language model, use the information in this summary to assist with your own \
                    analysis:\n";

/// The lines of the summarised history, to be appended to the rollout.
///
/// # Errors
///
/// The reason, if an item that remains, or a message of Codex itself, is not as Codex writes it
/// (Codex could not read the record then); and the reasons of [`append::after_last_record`].
pub fn summarise(
    transcript: &Transcript,
    source: &dyn Source,
    summary: &Summary,
) -> Result<Vec<u8>, &'static str> {
    let kept: HashSet<usize> = summary.kept.iter().copied().collect();
    let nth = Nth::from_transcript(transcript);
    let words = newest_words(transcript, source, &kept);
    let mut history: Vec<String> = Vec::new();
    let mut tail: Vec<String> = Vec::new();
    for (item, entry) in transcript.context() {
        let is_kept = kept.contains(&item);
        let may_stay = match entry.role {
            Role::User => words.contains(&item),
            Role::System => true,
            Role::Assistant | Role::Tool => false,
        };
        if !is_kept && !may_stay {
            continue;
        }
        let place_found = nth.place(source, item, entry);
        let value = match place_found.ok_or(MALFORMED)? {
            HistoryItem::Value(span) => {
                String::from_utf8(source.at(span).into_owned()).map_err(|_| MALFORMED)?
            }
            HistoryItem::Summary(literal) => append::summary(&literal),
        };
        match entry.role {
            _ if is_kept => tail.push(value),
            Role::System if !introduces(entry, &value) => {}
            Role::System | Role::User | Role::Assistant | Role::Tool => history.push(value),
        }
    }
    let message = format!("{}{REST}{}", items::SUMMARY, summary.text);
    history.push(append::summary(&encode(&message)));
    history.extend(tail);
    append::after_last_record(source, &message, &history.join(","))
}

/// The newest messages of the user before the kept end that together fit into Codex's limit. The
/// first that does not fit, and all before it, are left out; none is truncated.
fn newest_words(
    transcript: &Transcript,
    source: &dyn Source,
    kept: &HashSet<usize>,
) -> HashSet<usize> {
    let mut left = WORDS;
    let mut words = HashSet::new();
    for (item, entry) in transcript.context().rev() {
        if entry.role != Role::User || kept.contains(&item) {
            continue;
        }
        let size = entry.blocks.iter().map(|block| match block {
            Block::Text(text) => text.read(source).len() as u64,
            _ => 0,
        });
        match left.0.checked_sub(size.sum()) {
            Some(rest) => left = Bytes(rest),
            None => break,
        }
        words.insert(item);
    }
    words
}

/// Whether an entry is part of Codex's introduction of a conversation: rules, tools, environment.
/// Such an entry must stay in the history: Codex would not send it again, because a `world_state`
/// records that it was sent.
fn introduces(entry: &Entry, value: &str) -> bool {
    const IN_THE_PLACE_OF_THE_USER: [&str; 3] =
        ["<environment_context>", "<user_instructions>", "# AGENTS.md instructions for "];
    if entry.blocks.iter().any(|block| matches!(block, Block::Summary(_))) {
        return false;
    }
    let line = value.as_bytes();
    let Ok(item) = raw::Item::parse(line) else { return false };
    let at = RecordBytes { line, base: 0 };
    if at.literal(&item.kind) == Some(b"\"additional_tools\"") {
        return true;
    }
    match at.literal(&item.role) {
        Some(b"\"developer\"") => true,
        Some(b"\"user\"") => {
            let text = item.parts().next().and_then(|part| at.maybe(part.text.as_ref()));
            text.is_some_and(|text| {
                IN_THE_PLACE_OF_THE_USER.iter().any(|start| text.starts_with(start))
            })
        }
        Some(_) | None => false,
    }
}
