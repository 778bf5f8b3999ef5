//! Converts a history to messages of Anthropic's API, and such messages to measured blocks.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use epitome_api::{Message, anthropic};
use epitome_measure::{BlockKind, History, MeasuredBlock};
use epitome_model::{Block, Counter, Entry, Role, Source, Text, encode};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Pieces;

/// Converts between a history and messages.
///
/// A policy may return a message with other white space or another order of keys than it received.
/// A block with the same content is still the same block of the history, with the same tokens, so
/// that the format of the policy's JSON does not change its costs.
pub struct Exchange<'j> {
    counter: &'j dyn Counter,
    /// For each entry of the history, the role of its message and its blocks as JSON.
    entries: Vec<(&'static str, Vec<String>)>,
    /// The measured blocks of the history and of messages, by an id that is computed from the
    /// block's JSON in canonical form.
    blocks: HashMap<u64, Arc<MeasuredBlock>>,
    /// The blocks of the messages that were read, by a hash of the message's text.
    messages: HashMap<u64, Pieces>,
}

impl<'j> Exchange<'j> {
    /// Converts a history. A block that Anthropic's API does not have is sent as reasoning without
    /// a signature or as text, or left out if it has no text.
    pub fn new(history: &History, source: &dyn Source, counter: &'j dyn Counter) -> Exchange<'j> {
        let entries = Vec::new();
        let mut exchange =
            Exchange { counter, entries, blocks: HashMap::new(), messages: HashMap::new() };
        let mut pieces = history.pieces.iter();
        for entry in &history.entries {
            let mut texts = Vec::new();
            for (block, piece) in entry.blocks.iter().zip(pieces.by_ref()) {
                texts.extend(exchange.encode(entry.role, block, piece, source));
            }
            exchange.entries.push((role_name(entry.role), texts));
        }
        exchange
    }

    /// The messages of a range of entries, as a JSON list. Adjacent entries of one role are one
    /// message.
    pub fn outgoing(&self, entries: Range<usize>) -> String {
        let mut messages: Vec<(&str, Vec<&str>)> = Vec::new();
        for (role, texts) in &self.entries[entries] {
            let texts = texts.iter().map(String::as_str);
            match messages.last_mut() {
                Some((last, content)) if last == role => content.extend(texts),
                Some(_) | None => messages.push((role, texts.collect())),
            }
        }
        messages.retain(|(_, content)| !content.is_empty());
        let messages = messages.iter().map(|(role, content)| message(role, &content.join(",")));
        format!("[{}]", messages.collect::<Vec<_>>().join(","))
    }

    /// The blocks of messages. An error says which of the messages is not valid, and why.
    pub fn incoming(&mut self, messages: &[&RawValue]) -> Result<Pieces, String> {
        let mut pieces = Vec::new();
        for (idx, message) in messages.iter().enumerate() {
            let mut hasher = DefaultHasher::new();
            message.get().hash(&mut hasher);
            let hash = hasher.finish();
            if !self.messages.contains_key(&hash) {
                let read = self.read(message.get()).map_err(|why| {
                    format!("message {} of {} is none of anthropic: {why}", idx + 1, messages.len())
                })?;
                self.messages.insert(hash, read);
            }
            pieces.extend_from_slice(&self.messages[&hash]);
        }
        Ok(pieces)
    }

    /// Adds a block of the history, and returns it as JSON. `None` if it can be sent neither as it
    /// is nor as reasoning or text.
    fn encode(
        &mut self,
        role: Role,
        block: &Block,
        piece: &Arc<MeasuredBlock>,
        source: &dyn Source,
    ) -> Option<String> {
        let own = block_json(role, block, source)?;
        if self.add(role, &own, piece).is_some() {
            return Some(own);
        }
        // The API has no block for reasoning of another provider, nor for a block that only the
        // session's agent can read.
        let text = match block {
            Block::Thinking(thinking) => thinking.text.clone(),
            Block::Opaque(span) => Some(Text::Owned(
                String::from_utf8_lossy(&source.at(*span)).into_owned().into_boxed_str(),
            )),
            _ => None,
        };
        let text = encode(&text?.read(source));
        let other = match piece.kind {
            BlockKind::Thinking => format!(r#"{{"type":"thinking","thinking":{text}}}"#),
            BlockKind::Text | BlockKind::Call | BlockKind::Result | BlockKind::Other => {
                format!(r#"{{"type":"text","text":{text}}}"#)
            }
        };
        self.add(role, &other, piece).map(|()| other)
    }

    /// Records that a block of a message corresponds to this block of the history. `None` if
    /// Anthropic's API has no such block.
    fn add(&mut self, role: Role, text: &str, piece: &Arc<MeasuredBlock>) -> Option<()> {
        let canonical = canonical(&message(role_name(role), text)).ok()?;
        let read = parse(&canonical).ok()?;
        let [(_, entry)] = read.entries.as_slice() else { return None };
        let [block] = entry.blocks.as_slice() else { return None };
        let id = MeasuredBlock::id_of(block, entry.role, &&*read.source);
        self.blocks.entry(id).or_insert_with(|| piece.clone());
        Some(())
    }

    /// The blocks of a message.
    fn read(&mut self, message: &str) -> Result<Pieces, String> {
        let canonical = canonical(message)?;
        let read = parse(&canonical)?;
        let source = &&*read.source;
        let mut pieces = Vec::new();
        for (_, entry) in &read.entries {
            for block in &entry.blocks {
                let id = MeasuredBlock::id_of(block, entry.role, source);
                let known = self.blocks.entry(id).or_insert_with(|| {
                    Arc::new(MeasuredBlock::from_block(block, entry.role, source, self.counter))
                });
                pieces.push(known.clone());
            }
        }
        Ok(pieces)
    }
}

/// A block as an element of the content of a message. `None` if a message cannot contain it.
fn block_json(role: Role, block: &Block, source: &dyn Source) -> Option<String> {
    let entry = Entry { role, blocks: vec![block.clone()], ..Entry::default() };
    let list = anthropic::messages_of(std::iter::once(&entry), source);
    let role = role_name(role);
    let text = list.strip_prefix(&format!(r#"[{{"role":"{role}","content":["#))?;
    text.strip_suffix("]}]").map(str::to_owned)
}

fn role_name(role: Role) -> &'static str {
    if role == Role::Assistant { "assistant" } else { "user" }
}

fn message(role: &str, content: &str) -> String {
    format!(r#"{{"role":"{role}","content":[{content}]}}"#)
}

/// Returns JSON in a canonical form, so that equal values have equal texts.
fn canonical(json: &str) -> Result<String, String> {
    let value: Value = serde_json::from_str(json).map_err(|err| err.to_string())?;
    Ok(value.to_string())
}

fn parse(message: &str) -> Result<Message<'_>, String> {
    anthropic::API.message(message).map_err(|why| why.to_string())
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;
