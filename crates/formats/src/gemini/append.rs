//! Makes the records that are appended to a log of Gemini CLI.
//!
//! [`append`] writes messages again under their ids. Gemini CLI lets such a message replace the
//! earlier version, at the old position, and does so itself when the calls of a response are done.
//! [`summarise`] writes the record of Gemini CLI's own compaction: the whole new history, as
//! `$set.messages`.

use std::collections::HashSet;

use epitome_json::write::apply_splices;
use epitome_model::{
    Block, Edit, Entry, Ref, Role, Source, Span, Splice, Summary, Transcript, encode,
};

use super::message::{CONTEXT, is_sent};
use super::raw;
use super::read::THANKS;
use super::write::{part, write};
use crate::{Unwritable, lines};

/// The tags that Gemini CLI puts around a summary. If a history contains these tags, Gemini CLI's
/// next compaction asks the model to include the old summary in the new one.
const SNAPSHOT: [&str; 2] = ["<state_snapshot>", "</state_snapshot>"];

/// The messages that `edits` change, in their new form.
///
/// # Errors
///
/// [`Unwritable`] if the session is not a log, or if an edit cannot be written into its message.
pub fn append(
    transcript: &Transcript,
    source: &dyn Source,
    edits: &[Edit],
) -> Result<Vec<u8>, Unwritable> {
    let Some(first) = edits.first() else { return Ok(Vec::new()) };
    let end = End::read(source).map_err(|why| Unwritable { at: first.at, why })?;
    let splices: Vec<Splice> =
        write(transcript, source, edits)?.into_iter().map(|(splice, _)| splice).collect();
    let mut bytes = end.line_feed();
    let mut written: HashSet<Span> = HashSet::new();
    for edit in edits {
        // A response and its results may share a record.
        let message = transcript.items[edit.at.item()].record().span;
        if !written.insert(message) {
            continue;
        }
        let line = apply_splices(source, message, &splices)
            .ok_or(Unwritable { at: edit.at, why: "it is not UTF-8" })?;
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// Gemini CLI's own record of a summarised history: the newest message with Gemini CLI's context,
/// the summary as a user message, the model's thanks for it, and the items that are kept.
///
/// # Errors
///
/// The reason, if the session is not a log, if its context is empty, if the kept items begin within
/// a message, or if a record that is copied is not UTF-8.
pub fn summarise(
    transcript: &Transcript,
    source: &dyn Source,
    summary: &Summary,
) -> Result<Vec<u8>, &'static str> {
    let end = End::read(source)?;
    let (_, last) = transcript.context().last().ok_or("nothing is sent")?;
    let kept = record_spans(transcript, &summary.kept);
    let old = transcript.context.len() - summary.kept.len();
    let old = record_spans(transcript, &transcript.context[..old]);
    if kept.first().is_some_and(|first| old.contains(first)) {
        return Err("what is kept begins with results of calls that are not kept");
    }
    let time = last.time.as_deref().unwrap_or("1970-01-01T00:00:00.000Z");
    // The ids must also depend on the position: the same summary may be appended twice.
    let place = source.len().to_string();
    let last_id = last.id.as_deref().unwrap_or_default();
    let messages =
        [("summary", "user", snapshot(&summary.text)), ("thanks", "gemini", THANKS.to_owned())];
    let messages = messages.map(|(what, kind, text)| {
        let id = id(&[last_id, &place, what, &summary.text]);
        let time = encode(time);
        let part = part(&text);
        format!(r#"{{"id":"{id}","timestamp":{time},"type":"{kind}","content":[{part}]}}"#)
    });
    let before = transcript.entries().map(|(_, entry)| entry).filter(|it| is_context(it, source));
    let mut list: Vec<String> = Vec::new();
    if let Some(entry) = before.last() {
        list.push(text_at(source, entry.record.span)?);
    }
    list.extend(messages);
    for span in kept {
        list.push(text_at(source, span)?);
    }
    let set = format!(r#"{{"messages":[{}],"lastUpdated":{}}}"#, list.join(","), encode(time));
    let mut bytes = end.line_feed();
    bytes.extend_from_slice(format!("{{\"$set\":{set}}}\n").as_bytes());
    Ok(bytes)
}

fn text_at(source: &dyn Source, span: Span) -> Result<String, &'static str> {
    String::from_utf8(source.at(span).into_owned()).map_err(|_| "a kept record is not UTF-8")
}

/// The spans of the records of some items, each once: a response and its results may share one.
fn record_spans(transcript: &Transcript, items: &[usize]) -> Vec<Span> {
    let mut spans: Vec<Span> =
        items.iter().map(|&item| transcript.items[item].record().span).collect();
    spans.dedup();
    spans
}

/// A summary in the form that Gemini CLI recognises as a summary and not as a command.
fn snapshot(text: &str) -> String {
    let [open, close] = SNAPSHOT;
    if text.contains(open) && is_sent(text) {
        text.to_owned()
    } else {
        format!("{open}\n{text}\n{close}")
    }
}

/// Whether the entry is the context that Gemini CLI puts before every conversation.
fn is_context(entry: &Entry, source: &dyn Source) -> bool {
    let first = entry.blocks.first().and_then(|block| match block {
        Block::Text(text) => Some(text),
        _ => None,
    });
    entry.role == Role::System
        && first.is_some_and(|text| text.read(source).trim_start().starts_with(CONTEXT))
}

/// An id in the form that Gemini CLI uses, derived from `of`: the same in every run.
fn id(of: &[&str]) -> String {
    let digits = (0..5).map(|part| {
        let seed = format!("{part} {}", of.join(" "));
        Ref::from_bytes(seed.as_bytes()).digits().to_owned()
    });
    digits.collect::<String>()[..32].to_owned()
}

/// The end of a log, to which records are appended.
struct End {
    ended: bool,
}

impl End {
    /// Reads to the end of a session.
    ///
    /// # Errors
    ///
    /// The reason, if the session is not a log: then nothing can be appended to it.
    fn read(source: &dyn Source) -> Result<End, &'static str> {
        let mut is_log = false;
        let mut ended = true;
        lines(source, |line| {
            ended = line.ended;
            // In older versions, one object is the whole session: a header with messages.
            is_log = is_log
                || raw::Record::parse(line.bytes).is_ok_and(|record| {
                    record.is_header() && record.messages.array_items(line.bytes).is_none()
                });
        });
        if is_log {
            Ok(End { ended })
        } else {
            Err("it is one object of an older version, not a log")
        }
    }

    fn line_feed(&self) -> Vec<u8> {
        if self.ended { Vec::new() } else { b"\n".to_vec() }
    }
}
