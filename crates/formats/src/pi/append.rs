//! pi's own way to shorten what it sends: `context_edit` entries, each with the new content of
//! another entry. pi reads them since 1.0; older versions ignore them.

use std::collections::{BTreeMap, HashSet};

use epitome_json::write::{self, Unwritable};
use epitome_model::{
    At, Block, Edit, Entry, Ref, Role, Source, Span, Splice, Summary, Transcript, Verb, encode,
};

use super::{SHAPES, raw};
use crate::lines;
use crate::place::RecordBytes;

/// Returns why pi would ignore `context_edit` entries in a session. `None` if the session has
/// version 3, which these entries require.
pub fn passed_over(transcript: &Transcript) -> Option<&'static str> {
    let is_today = transcript.head.version.as_deref() == Some("3");
    (!is_today).then_some("only sessions of version 3 have them")
}

/// Whether epitome can write a `context_edit` that replaces an item. The session must have version
/// 3. The item must be an entry for which [`is_editable`] is true, and must have an id, because the
/// edit refers to it by id.
pub fn reaches(transcript: &Transcript, item: usize) -> bool {
    passed_over(transcript).is_none()
        && transcript.items[item].entry().is_some_and(|it| it.id.is_some() && is_editable(it))
}

/// Whether an entry is a message of the user, a model or a tool. pi applies a `context_edit` to
/// these, but not to its own messages or to commands that the user ran. (It also applies one to a
/// `custom_message` of an extension; epitome writes none for that.)
pub fn is_editable(entry: &Entry) -> bool {
    match entry.role {
        Role::User | Role::Assistant => true,
        Role::Tool => matches!(entry.blocks.as_slice(), [Block::Output(_)]),
        Role::System => false,
    }
}

/// The entries that apply `edits`, to be appended to a session.
///
/// # Errors
///
/// [`Unwritable`] if an edit cannot be written, if an edited entry is not as pi writes it, if its
/// id or that of the last entry occurs more than once, or if the last entry has no id.
pub fn append(
    transcript: &Transcript,
    source: &dyn Source,
    edits: &[Edit],
) -> Result<Vec<u8>, Unwritable> {
    let mut edited: BTreeMap<usize, Vec<&Edit>> = BTreeMap::new();
    for edit in edits {
        edited.entry(edit.at.item()).or_default().push(edit);
    }
    let splices: Vec<Splice> = write::splices(transcript, source, edits, &SHAPES)?
        .into_iter()
        .map(|(splice, _)| splice)
        .collect();
    let mut end = End::read(source);
    let mut bytes = if end.ended { Vec::new() } else { b"\n".to_vec() };
    for (item, edits) in edited {
        let at = edits[0].at;
        let not_written = |why| Unwritable { at, why };
        let entry = transcript.items[item].entry().ok_or_else(|| not_written("it says nothing"))?;
        let located =
            Located::find(source, entry).ok_or_else(|| not_written("it is not as pi writes it"))?;
        if end.repeated.contains(&located.target) || end.repeated.contains(&end.leaf) {
            return Err(not_written("its id repeats"));
        }
        if end.leaf.is_empty() {
            return Err(not_written("the last entry has no id to continue from"));
        }
        let content = if is_gone(item, entry, &edits) {
            None
        } else {
            Some(
                write::apply_splices(source, located.content, &splices)
                    .ok_or_else(|| not_written("it is not UTF-8"))?,
            )
        };
        bytes.extend_from_slice(end.line(&located.target, content.as_deref()).as_bytes());
    }
    Ok(if edits.is_empty() { Vec::new() } else { bytes })
}

/// The line with pi's own record of a summarised history, to be appended.
///
/// # Errors
///
/// The reason, if the last entry has no id, or if pi could not tell where the kept part of the
/// history begins.
pub fn summarise(
    transcript: &Transcript,
    source: &dyn Source,
    summary: &Summary,
) -> Result<Vec<u8>, &'static str> {
    let mut end = End::read(source);
    if end.leaf.is_empty() || transcript.head.version.as_deref() == Some("1") {
        return Err("the last entry has no id to continue from");
    }
    let id = end.new_id("compaction");
    let first = match summary.kept.first() {
        Some(&item) => {
            let entry = transcript.items[item].entry();
            let located = entry.and_then(|entry| Located::find(source, entry));
            located.ok_or("what is kept first is not as pi writes it")?.target
        }
        None => id.clone(),
    };
    if end.repeated.contains(&first) {
        return Err("the id of the first kept entry repeats");
    }
    let [parent, time, text, first] = [
        &end.leaf,
        end.timestamp.get_or_insert_with(|| EPOCH.into()),
        summary.text.as_str(),
        &first,
    ]
    .map(encode);
    let line = format!(
        concat!(
            r#"{{"type":"compaction","id":"{}","parentId":{},"timestamp":{},"summary":{},"#,
            r#""firstKeptEntryId":{},"tokensBefore":{}}}"#,
        ),
        id, parent, time, text, first, summary.tokens.0,
    );
    let before = if end.ended { "" } else { "\n" };
    Ok(format!("{before}{line}\n").into_bytes())
}

const EPOCH: &str = "1970-01-01T00:00:00.000Z";

/// Whether edits remove every block of an entry, so that pi does not send the entry. True for an
/// entry without blocks.
fn is_gone(item: usize, entry: &Entry, edits: &[&Edit]) -> bool {
    (0..entry.blocks.len()).all(|block| {
        let at = At::Block { item, block };
        edits.iter().any(|edit| edit.at == at && edit.verb == Verb::Drop)
    })
}

/// What a `context_edit` states about the entry that it edits: the entry's id, and where the
/// content is that it replaces. For an entry that is itself a `context_edit`, the id is that of the
/// entry which it edits.
struct Located {
    target: Box<str>,
    content: Span,
}

impl Located {
    fn find(source: &dyn Source, entry: &Entry) -> Option<Located> {
        let line = source.at(entry.record.span);
        let at = RecordBytes { line: &line, base: entry.record.span.start };
        let record = raw::Record::parse(&line).ok()?;
        let content = match &record.message {
            Some(message) => message.content.whole.as_ref()?,
            None => record.content().whole.as_ref()?,
        };
        let target = record.target.as_ref().or(record.id.as_ref())?;
        Some(Located { target: at.text(target), content: at.span(content) })
    }
}

/// The end of a session, and the ids in use.
#[derive(Default)]
struct End {
    /// The id of the last entry; empty if that entry has no id.
    leaf: Box<str>,
    timestamp: Option<Box<str>>,
    ids: HashSet<Box<str>>,
    repeated: HashSet<Box<str>>,
    ended: bool,
}

impl End {
    fn read(source: &dyn Source) -> End {
        let mut end = End { ended: true, ..End::default() };
        lines(source, |line| {
            end.ended = line.ended;
            let Ok(record) = raw::Record::parse(line.bytes) else { return };
            let at = RecordBytes::from_line(&line);
            end.timestamp = at.maybe(record.timestamp.as_ref()).or(end.timestamp.take());
            end.leaf = at.maybe(record.id.as_ref()).unwrap_or_default();
            if !end.leaf.is_empty() && !end.ids.insert(end.leaf.clone()) {
                end.repeated.insert(end.leaf.clone());
            }
        });
        end
    }

    /// Makes a `context_edit` line. The line is then the last entry of the session.
    fn line(&mut self, target: &str, content: Option<&str>) -> String {
        let id = self.new_id(target);
        let parent = encode(&self.leaf);
        let time = encode(self.timestamp.as_deref().unwrap_or(EPOCH));
        let target = encode(target);
        let with = match content {
            Some(content) => format!(r#"{{"content":{content}}}"#),
            None => "null".to_owned(),
        };
        let members =
            format!(r#""id":"{id}","parentId":{parent},"timestamp":{time},"targetId":{target}"#);
        self.leaf.clone_from(&id);
        self.ids.insert(id);
        format!("{{\"type\":\"context_edit\",{members},\"replacement\":{with}}}\n")
    }

    /// An id of eight digits that no entry has yet. It is the same in every run.
    fn new_id(&self, target: &str) -> Box<str> {
        (0_u64..)
            .map(|salt| {
                let seed = format!("{} {target} {salt}", self.leaf);
                Box::from(format!("{}{:x}", Ref::from_bytes(seed.as_bytes()).digits(), salt % 16))
            })
            .find(|id| !self.ids.contains(id))
            .expect("there are more numbers than entries")
    }
}
