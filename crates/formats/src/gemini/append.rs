//! Records behind the end of a log, which Gemini CLI takes for the newest word on what they name.
//!
//! A message that is written again under its id says something else from its old place on: Gemini
//! CLI does so itself whenever the calls of a response are done. Its own compaction writes the
//! whole history anew, as `$set.messages`.

use std::collections::HashSet;

use epitome_model::{Block, Edit, Entry, Ref, Role, Source, Span, Splice, Transcript, encode};

use super::message::{CONTEXT, is_sent};
use super::raw;
use super::read::THANKS;
use super::write::{part, write};
use crate::write::spliced;
use crate::{Summary, Unwritable, lines};

/// How Gemini CLI marks a summary: where one stands, its own compaction asks the model to take over
/// what it says.
const SNAPSHOT: [&str; 2] = ["<state_snapshot>", "</state_snapshot>"];

/// The messages that `edits` change, once more.
///
/// # Errors
///
/// [`Unwritable`] if the session is no log.
pub fn append(
    transcript: &Transcript,
    source: &dyn Source,
    edits: &[Edit],
) -> Result<Vec<u8>, Unwritable> {
    let Some(first) = edits.first() else { return Ok(Vec::new()) };
    let end = End::of(source).map_err(|why| Unwritable { at: first.at, why })?;
    let splices: Vec<Splice> =
        write(transcript, source, edits)?.into_iter().map(|(splice, _)| splice).collect();
    let mut bytes = end.line_feed();
    let mut written: HashSet<Span> = HashSet::new();
    for edit in edits {
        // A response and its results share a record.
        let message = transcript.items[edit.at.item()].record().span;
        if !written.insert(message) {
            continue;
        }
        let line = spliced(source, message, &splices)
            .ok_or(Unwritable { at: edit.at, why: "it is no text" })?;
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// Gemini CLI's own record of a summarised history: the summary as words of the user, the model's
/// thanks, and what is kept.
///
/// # Errors
///
/// Says why, if the session is no log, or if what is kept begins within a message.
pub fn summarise(
    transcript: &Transcript,
    source: &dyn Source,
    summary: &Summary<'_>,
) -> Result<Vec<u8>, &'static str> {
    let end = End::of(source)?;
    let (_, last) = transcript.context().last().ok_or("nothing is sent")?;
    let kept = record_spans(transcript, summary.kept);
    let old = transcript.context.len() - summary.kept.len();
    let old = record_spans(transcript, &transcript.context[..old]);
    if kept.first().is_some_and(|first| old.contains(first)) {
        return Err("what is kept begins with the results of what is not");
    }
    let time = last.time.as_deref().unwrap_or("1970-01-01T00:00:00.000Z");
    // The same summary may be given again after another one.
    let place = source.len().to_string();
    let message = |what, kind, text: &str| {
        let id = id(&[last.id.as_deref().unwrap_or_default(), &place, what, summary.text]);
        let (time, part) = (encode(time), part(text));
        format!(r#"{{"id":"{id}","timestamp":{time},"type":"{kind}","content":[{part}]}}"#)
    };
    let messages =
        [message("summary", "user", &snapshot(summary.text)), message("thanks", "gemini", THANKS)];
    let before = transcript.entries().map(|(_, entry)| entry).filter(|it| is_context(it, source));
    let as_it_is = |span: Span| {
        String::from_utf8(source.at(span).into_owned()).map_err(|_| "something kept is no text")
    };
    let mut list: Vec<String> = Vec::new();
    if let Some(entry) = before.last() {
        list.push(as_it_is(entry.record.span)?);
    }
    list.extend(messages);
    for span in kept {
        list.push(as_it_is(span)?);
    }
    let set = format!(r#"{{"messages":[{}],"lastUpdated":{}}}"#, list.join(","), encode(time));
    let mut bytes = end.line_feed();
    bytes.extend_from_slice(format!("{{\"$set\":{set}}}\n").as_bytes());
    Ok(bytes)
}

/// Where the records of some items stand: a response and its results share one.
fn record_spans(transcript: &Transcript, items: &[usize]) -> Vec<Span> {
    let mut spans: Vec<Span> =
        items.iter().map(|&item| transcript.items[item].record().span).collect();
    spans.dedup();
    spans
}

/// A summary as Gemini CLI would find it again, and would not take for one of its commands.
fn snapshot(text: &str) -> String {
    let [open, close] = SNAPSHOT;
    match text.contains(open) && is_sent(text) {
        true => text.to_owned(),
        false => format!("{open}\n{text}\n{close}"),
    }
}

/// Whether an entry is what Gemini CLI puts before every conversation.
fn is_context(entry: &Entry, source: &dyn Source) -> bool {
    let first = entry.blocks.first().and_then(|block| match block {
        Block::Text(text) => Some(text),
        _ => None,
    });
    entry.role == Role::System
        && first.is_some_and(|text| text.read(source).trim_start().starts_with(CONTEXT))
}

/// An id in the form of those that Gemini CLI derives, the same in every run.
fn id(of: &[&str]) -> String {
    let digits = (0..5).map(|part| {
        let seed = format!("{part} {}", of.join(" "));
        Ref::of(seed.as_bytes()).digits().to_owned()
    });
    digits.collect::<String>()[..32].to_owned()
}

/// The end of a log.
struct End {
    ended: bool,
}

impl End {
    /// # Errors
    ///
    /// Says why nothing can stand behind this session's end.
    fn of(source: &dyn Source) -> Result<End, &'static str> {
        let (mut is_log, mut ended) = (false, true);
        lines(source, |line| {
            ended = line.ended;
            // A header that holds messages is all there is of an older session.
            let begins_log = |it: raw::Record| it.is_header() && it.messages.is_none();
            is_log = is_log || raw::record(line.bytes).is_ok_and(begins_log);
        });
        match is_log {
            true => Ok(End { ended }),
            false => Err("it is one object, as older versions kept sessions, and no log"),
        }
    }

    fn line_feed(&self) -> Vec<u8> {
        if self.ended { Vec::new() } else { b"\n".to_vec() }
    }
}
