//! The lines appended to a log when its context is compacted: existing lines never change.

use std::collections::{BTreeMap, HashMap, HashSet};

use epitome_json::Document;
use epitome_json::write::{self, Unwritable};
use epitome_model::{Cut, Edit, Ref, Source, Span, Splice, Summary, Transcript, Verb, encode};

use super::{Log, SHAPES};

/// The reason for a batch of edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch<'a> {
    /// Results are truncated on ingest, before they are first sent. This cannot be undone.
    Ingest,
    /// A compaction. The text is the name of its recipe; `None` if the name is not recorded.
    Compaction(Option<&'a str>),
}

/// Whether an edit can refer to an item: it must be an entry with an id, and must not be part of
/// the prompt.
pub fn reaches(transcript: &Transcript, item: usize) -> bool {
    transcript.items[item].entry().is_some_and(|entry| entry.id.is_some())
        && !transcript.head.prompt.contains(&item)
}

/// The lines that carry out `edits`, to be appended to a log.
///
/// # Errors
///
/// [`Unwritable`] if an entry that an edit names has no id, or an id that does not occur exactly
/// once in the context; if the line of the entry is malformed; or if the content of an edit cannot
/// be written there.
pub fn append(
    transcript: &Transcript,
    source: &dyn Source,
    edits: &[Edit],
) -> Result<Vec<u8>, Unwritable> {
    batch(transcript, source, edits, Batch::Compaction(None))
}

/// The lines of a batch of edits: one for each cut and each summary, and one with the new content
/// of all entries whose blocks are edited.
///
/// # Errors
///
/// The same as of `append`.
pub fn batch(
    transcript: &Transcript,
    source: &dyn Source,
    edits: &[Edit],
    what: Batch<'_>,
) -> Result<Vec<u8>, Unwritable> {
    let mut lines = Vec::new();
    let mut edited: BTreeMap<usize, Vec<&Edit>> = BTreeMap::new();
    for edit in edits {
        let line = match &edit.verb {
            Verb::Cut(cut) => cut_line(transcript, source, cut),
            Verb::Summarise(summary) => summary_line(transcript, source, summary),
            Verb::Replace(_) | Verb::Drop => {
                edited.entry(edit.at.item()).or_default().push(edit);
                continue;
            }
        };
        lines.push(line.map_err(|why| Unwritable { at: edit.at, why })?);
    }
    if !edited.is_empty() {
        lines.push(edits_line(transcript, source, &edited, what)?);
    }
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    Ok([before(source), lines.concat().as_bytes()].concat())
}

/// The line with the edits of blocks, grouped by item.
fn edits_line(
    transcript: &Transcript,
    source: &dyn Source,
    edited: &BTreeMap<usize, Vec<&Edit>>,
    what: Batch<'_>,
) -> Result<String, Unwritable> {
    let edits: Vec<Edit> = edited.values().flatten().map(|edit| Edit::clone(edit)).collect();
    let splices: Vec<Splice> = write::splices(transcript, source, &edits, &SHAPES)?
        .into_iter()
        .map(|(splice, _)| splice)
        .collect();
    let items: Vec<usize> = edited.keys().copied().collect();
    let times = times(transcript, &items);
    let mut edits_made = Vec::new();
    // Several items may share a line, which may be long. So each line is parsed only once.
    let mut known: HashMap<Span, HashMap<Box<str>, Span>> = HashMap::new();
    for (&item, edits) in edited {
        let not_written = |why| Unwritable { at: edits[0].at, why };
        let entry = transcript.items[item].entry().ok_or_else(|| not_written("it says nothing"))?;
        let id = entry.id.as_deref().ok_or_else(|| not_written("the entry has no id"))?;
        if times.get(id) != Some(&1) {
            return Err(not_written("its id repeats"));
        }
        let record = entry.record.span;
        let blocks = known.entry(record).or_insert_with(|| places(source, record));
        let place = *blocks.get(id).ok_or_else(|| not_written("it is not as a log has it"))?;
        let inside = inside(&splices, place);
        let blocks = write::apply_splices(source, place, inside)
            .ok_or_else(|| not_written("it is not UTF-8"))?;
        edits_made.push(format!(r#"{{"of":{},"blocks":{blocks}}}"#, encode(id)));
    }
    let (kind, recipe) = match what {
        Batch::Ingest => ("birth", None),
        Batch::Compaction(recipe) => ("compaction", recipe),
    };
    let recipe = recipe.map(|name| format!(r#""recipe":{},"#, encode(name))).unwrap_or_default();
    let edits_made = edits_made.join(",");
    Ok(format!("{{\"type\":\"{kind}\",{recipe}\"edits\":[{edits_made}]}}\n"))
}

/// The line that replaces the beginning of a context with a summary.
///
/// # Errors
///
/// The reason, if the first kept entry cannot be identified.
pub fn summarise(
    transcript: &Transcript,
    source: &dyn Source,
    summary: &Summary,
) -> Result<Vec<u8>, &'static str> {
    let line = summary_line(transcript, source, summary)?;
    Ok([before(source), line.as_bytes()].concat())
}

fn summary_line(
    transcript: &Transcript,
    source: &dyn Source,
    summary: &Summary,
) -> Result<String, &'static str> {
    let kept = match summary.kept.first() {
        Some(&item) => {
            let id = transcript.items[item].entry().and_then(|entry| entry.id.as_deref());
            let id = id.ok_or("what is kept first has no id")?;
            if times(transcript, &[item]).get(id) != Some(&1) {
                return Err("the id of the first kept entry repeats");
            }
            encode(id)
        }
        None => "null".to_owned(),
    };
    let seed = format!("{} {}", source.len(), summary.text);
    let id = encode(&format!("summary {}", Ref::from_bytes(seed.as_bytes()).digits()));
    let tokens = summary.tokens.0;
    let text = encode(&summary.text);
    Ok(format!(
        "{{\"type\":\"summary\",\"id\":{id},\"kept\":{kept},\"before\":{tokens},\"text\":{text}}}\n"
    ))
}

/// The line that removes items from a context, and puts a text at the position of the first removed
/// item. The error says why the line cannot be written.
fn cut_line(
    transcript: &Transcript,
    source: &dyn Source,
    cut: &Cut,
) -> Result<String, &'static str> {
    let Cut { items, text, .. } = cut;
    let times = times(transcript, items);
    let mut of = Vec::new();
    for &item in items {
        let id = transcript.items[item].entry().and_then(|entry| entry.id.as_deref());
        let id = id.ok_or("what goes has no id")?;
        if times.get(id) != Some(&1) {
            return Err("the id of an entry to remove repeats");
        }
        of.push(encode(id));
    }
    let seed = format!("{} {text}", source.len());
    let id = encode(&format!("cut {}", Ref::from_bytes(seed.as_bytes()).digits()));
    let of = of.join(",");
    let text = encode(text);
    Ok(format!("{{\"type\":\"cut\",\"id\":{id},\"of\":[{of}],\"text\":{text}}}\n"))
}

/// Marks the line of a compaction as a further step of the compaction in the line before it. The
/// two are then undone together.
pub fn continuing(mut line: Vec<u8>) -> Vec<u8> {
    if line.ends_with(b"}\n") {
        line.truncate(line.len() - 2);
        line.extend_from_slice(b",\"continues\":true}\n");
    }
    line
}

/// Why a compaction is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoReason {
    /// The user requested it.
    UserRequest,
    /// The engine takes the compaction back because it did not help.
    NoGain,
}

/// The line that undoes the last compaction. `by` is the reason.
pub fn undo(by: UndoReason) -> &'static str {
    match by {
        UndoReason::UserRequest => "{\"type\":\"undo\",\"asked\":true}\n",
        UndoReason::NoGain => "{\"type\":\"undo\"}\n",
    }
}

/// The line, with its line feed, that takes a conversation back to its first `messages` messages,
/// as the client counts them (the program that passes messages to the engine). The entries whose
/// original items are in `originals` then no longer belong to the conversation; this cannot be
/// undone. Older versions of epitome read the line as an edit that emptied these entries.
///
/// # Errors
///
/// The reason, if an entry cannot be identified.
pub fn rewind(
    log: &Log,
    originals: &HashSet<usize>,
    messages: u64,
) -> Result<String, &'static str> {
    let gone =
        log.slots().iter().copied().filter(|&item| originals.contains(&log.original_of(item)));
    let mut edits = Vec::new();
    for item in gone {
        let entry = log.transcript().items[item].entry();
        let id = entry.and_then(|entry| entry.id.as_deref()).ok_or("what goes has no id")?;
        if log.item(id) != Some(item) {
            return Err("the id of what goes repeats");
        }
        edits.push(format!(r#"{{"of":{},"blocks":[]}}"#, encode(id)));
    }
    let edits = edits.join(",");
    Ok(format!("{{\"type\":\"birth\",\"back\":{messages},\"edits\":[{edits}]}}\n"))
}

/// What must come before new lines: a line feed if the last line of the log has none, otherwise
/// nothing.
fn before(source: &dyn Source) -> &'static [u8] {
    let end = source.len();
    let ended = source.read(end.saturating_sub(1)..end);
    if end == 0 || *ended == *b"\n" { b"" } else { b"\n" }
}

/// How often the id of each of these items occurs among the items that are sent.
fn times<'t>(transcript: &'t Transcript, items: &[usize]) -> HashMap<&'t str, usize> {
    let mut times: HashMap<&str, usize> =
        items.iter().filter_map(|&item| Some((id(transcript, item)?, 0))).collect();
    for item in transcript.context.iter().filter_map(|&item| id(transcript, item)) {
        times.entry(item).and_modify(|times| *times += 1);
    }
    times
}

fn id(transcript: &Transcript, item: usize) -> Option<&str> {
    transcript.items[item].entry()?.id.as_deref()
}

/// The positions of the lists of blocks in a line, by the id of their entry.
fn places(source: &dyn Source, record: Span) -> HashMap<Box<str>, Span> {
    let line = source.at(record);
    let Ok(document) = Document::parse(&line) else { return HashMap::new() };
    let mut places = HashMap::new();
    let edits = document.root.list_of("edits").iter().map(|edit| (edit.text_of("of"), edit));
    for (id, entry) in edits.chain([(document.root.text_of("id"), &document.root)]) {
        if let (Some(id), Some(blocks)) = (id, entry.get("blocks").filter(|it| it.is_list())) {
            let range = blocks.range();
            let span = Span {
                start: record.start + range.start as u64,
                end: record.start + range.end as u64,
            };
            places.insert(id.as_ref().into(), span);
        }
    }
    places
}

/// The splices within a range. `splices` are sorted.
fn inside(splices: &[Splice], place: Span) -> &[Splice] {
    let from = splices.partition_point(|splice| splice.span.start < place.start);
    let to = splices.partition_point(|splice| splice.span.start < place.end);
    &splices[from..to]
}
