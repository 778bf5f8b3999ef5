//! Codex's own record of a summarised history: what the user said, and the summary.
//!
//! So Codex 0.169 compacts by itself when the model's service does not: what it tells a model at
//! the beginning, the newest words of the user, the summary. What is kept of the end stands behind
//! it.

use std::collections::HashSet;

use epitome_model::{Block, Bytes, Entry, Role, Source, Transcript, encode};

use super::append::{self, MALFORMED, Nth, Said};
use super::{items, raw};
use crate::Summary;

/// How much Codex keeps of what the user said: 20,000 tokens, at the four bytes each that it
/// reckons with.
const WORDS: Bytes = Bytes(4 * 20_000);

/// How Codex introduces a summary, behind [`items::SUMMARY`].
const REST: &str = " process. You also have access to the state of the tools that were used by \
                    that language model. Use this to build on the work that has already been done \
                    and avoid duplicating work. Here is the summary produced by the other \
                    language model, use the information in this summary to assist with your own \
                    analysis:\n";

/// The lines that let a summary stand for all but the kept end.
///
/// # Errors
///
/// Says why, if something that stays is not as Codex writes it: it would not read the record.
pub fn summarise(
    transcript: &Transcript,
    source: &dyn Source,
    summary: &Summary<'_>,
) -> Result<Vec<u8>, &'static str> {
    let kept: HashSet<usize> = summary.kept.iter().copied().collect();
    let nth = Nth::of(transcript);
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
        let said = nth.place(source, item, entry);
        let value = match said.ok_or(MALFORMED)? {
            Said::Value(span) => {
                String::from_utf8(source.at(span).into_owned()).map_err(|_| MALFORMED)?
            }
            Said::Summary(literal) => append::summary(&literal),
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
    append::behind(source, &message, &history.join(","))
}

/// What the user said last before the kept end, as much of it as Codex keeps. No message is cut.
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

/// Whether Codex tells it to the model at the beginning of a conversation: its rules, its tools,
/// where it is. Without it Codex would not tell it again, as it has said so in a `world_state`.
fn introduces(entry: &Entry, value: &str) -> bool {
    const IN_THE_PLACE_OF_THE_USER: [&str; 3] =
        ["<environment_context>", "<user_instructions>", "# AGENTS.md instructions for "];
    if entry.blocks.iter().any(|block| matches!(block, Block::Summary(_))) {
        return false;
    }
    let line = value.as_bytes();
    let Ok(item) = raw::item(line, &(0..line.len())) else { return false };
    let is = |place: &Option<std::ops::Range<usize>>, literal: &str| {
        place.as_ref().is_some_and(|place| &value[place.clone()] == literal)
    };
    let begins = |start: &&str| {
        let text = item.parts.first().and_then(|part| part.text.clone());
        text.is_some_and(|text| epitome_model::decode(&line[text]).starts_with(*start))
    };
    is(&item.kind, "\"additional_tools\"")
        || is(&item.role, "\"developer\"")
        || is(&item.role, "\"user\"") && IN_THE_PLACE_OF_THE_USER.iter().any(begins)
}
