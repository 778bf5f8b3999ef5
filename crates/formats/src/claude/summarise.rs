//! Writes Claude Code's own records of a summarised history: a boundary, and the summary as a
//! message.
//!
//! The messages that the boundary lists as preserved are sent after the summary.

use epitome_json::{Document, Value};
use epitome_model::{Entry, Source, Summary, Transcript, encode};

use crate::port::uuid;

/// The two records to append: the boundary and the summary.
///
/// # Errors
///
/// The reason, if the context is empty, if the record of its last message is not JSON, or if an id
/// or time that the new records need is missing.
pub fn summarise(
    transcript: &Transcript,
    source: &dyn Source,
    summary: &Summary,
) -> Result<Vec<u8>, &'static str> {
    let last = transcript.context().last().ok_or("nothing is sent")?.1;
    let newest = Newest::from_entry(source, last).ok_or("the newest message has no id")?;
    // A resume continues from the message with the latest time, so the new records get the latest
    // time in the session. That may not be the time of the last message: a reminder may have an
    // earlier time than the message before it.
    let time = transcript.entries().filter_map(|(_, entry)| entry.time.as_deref()).max();
    let time = encode(time.ok_or("no message has a time")?);
    let kept = summary.kept.iter();
    let kept: Vec<&str> =
        kept.filter_map(|&item| transcript.items[item].entry()?.id.as_deref()).collect();
    if kept.len() < summary.kept.len() {
        return Err("a message that is kept has no id");
    }
    // The ids must also depend on the summary: two summaries may follow the same message.
    let of = format!("{} {} {}", newest.id, source.len(), summary.text);
    let boundary = uuid(&of, "boundary");
    let anchor = uuid(&of, "summary");
    let preserved = preserved(&kept, &anchor);
    let records = format!(
        "{}\n{}\n",
        newest.boundary_record(&boundary, &time, summary.tokens.0, &preserved),
        newest.summary_record(&anchor, &boundary, &time, &summary.text),
    );
    let is_ended = source.is_empty() || source.read(source.len() - 1..source.len())[..] == *b"\n";
    Ok([if is_ended { "" } else { "\n" }, &records].concat().into_bytes())
}

/// The members of the boundary record that list the kept messages; empty if no message is kept.
fn preserved(kept: &[&str], anchor: &str) -> String {
    let (Some(head), Some(tail)) = (kept.first(), kept.last()) else { return String::new() };
    let ids: Vec<String> = kept.iter().map(|id| encode(id)).collect();
    let ids = ids.join(",");
    format!(
        concat!(
            r#","preservedSegment":{{"headUuid":{},"anchorUuid":"{anchor}","#,
            r#""tailUuid":{}}}"#,
            r#","preservedMessages":{{"anchorUuid":"{anchor}","uuids":[{ids}],"#,
            r#""allUuids":[{ids}]}}"#,
        ),
        encode(head),
        encode(tail),
        anchor = anchor,
        ids = ids,
    )
}

/// The text that comes before the summary in its record.
const LEAD_IN: &str = "This session goes on from a longer conversation. What came before is \
                       summarised here; what follows the summary is its end, word for word.";

/// The newest message of the old context, after which the boundary and the summary are written.
struct Newest {
    id: Box<str>,
    /// The members of the message's record that describe the environment of the session, such as
    /// its folder and the version of Claude Code. Each is as stored, and is preceded by a comma.
    circumstances: String,
}

impl Newest {
    /// Reads the record of an entry. `None` if the entry has no id, or its record is not JSON.
    fn from_entry(source: &dyn Source, entry: &Entry) -> Option<Newest> {
        let line = source.at(entry.record.span);
        let record = Document::parse(&line).ok()?.root;
        let mut circumstances = String::new();
        let members = record.members().iter().filter(|(key, value)| is_circumstance(key, value));
        let session = record.string("sessionId");
        for (name, value) in
            members.map(|(key, value)| (&**key, value)).chain(session.map(|id| ("sessionId", id)))
        {
            if let Ok(value) = std::str::from_utf8(value.raw()) {
                circumstances += &format!(",\"{name}\":{value}");
            }
        }
        Some(Newest { id: entry.id.clone()?, circumstances })
    }

    /// The record that ends the old context. `time` is a JSON string; `preserved` are JSON members,
    /// each preceded by a comma.
    fn boundary_record(&self, id: &str, time: &str, tokens: u64, preserved: &str) -> String {
        let Newest { id: newest, circumstances } = self;
        format!(
            concat!(
                r#"{{"parentUuid":null,"logicalParentUuid":{},"isSidechain":false,"#,
                r#""type":"system","subtype":"compact_boundary","#,
                r#""content":"Conversation compacted","isMeta":false,"timestamp":{},"#,
                r#""uuid":"{}","level":"info","compactMetadata":{{"trigger":"manual","#,
                r#""preTokens":{}{}}}{}}}"#,
            ),
            encode(newest),
            time,
            id,
            tokens,
            preserved,
            circumstances,
        )
    }

    /// The record of the summary, which follows the boundary.
    fn summary_record(&self, id: &str, boundary: &str, time: &str, text: &str) -> String {
        format!(
            concat!(
                r#"{{"parentUuid":"{}","isSidechain":false,"type":"user","#,
                r#""message":{{"role":"user","content":{}}},"isVisibleInTranscriptOnly":true,"#,
                r#""isCompactSummary":true,"uuid":"{}","timestamp":{}{}}}"#,
            ),
            boundary,
            encode(&format!("{LEAD_IN}\n\n{text}")),
            id,
            time,
            self.circumstances,
        )
    }
}

/// Whether a member of a record describes the environment in which the session runs.
fn is_circumstance(key: &str, value: &Value<'_>) -> bool {
    match key {
        "cwd" | "version" => value.is_text(),
        "gitBranch" | "slug" | "userType" => true,
        _ => false,
    }
}
