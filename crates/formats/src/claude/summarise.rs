//! Writes Claude Code's own records of a summarised history: a boundary, and the summary as a
//! message.
//!
//! The messages that the boundary lists as preserved are sent after the summary.

use epitome_json::{Document, Value};
use epitome_model::{Entry, Source, Summary, Transcript, encode};

use crate::port::uuid;

/// The two records: the boundary and the summary.
///
/// # Errors
///
/// The reason, if a resume could not continue from the newest entry.
pub fn summarise(
    transcript: &Transcript,
    source: &dyn Source,
    summary: &Summary,
) -> Result<Vec<u8>, &'static str> {
    let entry = |item: usize| transcript.items[item].entry();
    let last = transcript.context().last().ok_or("nothing is sent")?.1;
    let newest = Newest::from_entry(source, last).ok_or("the newest message has no id")?;
    // A resume continues from the newest message, and reminders have earlier times than their
    // parents.
    let time = transcript.entries().filter_map(|(_, entry)| entry.time.as_deref()).max();
    let time = encode(time.ok_or("no message has a time")?);
    let kept: Vec<&str> =
        summary.kept.iter().filter_map(|&item| entry(item)?.id.as_deref()).collect();
    if kept.len() < summary.kept.len() {
        return Err("a message that is kept has no id");
    }
    // The id must depend on the summary, too: two summaries may follow the same message.
    let of = format!("{} {} {}", newest.id, source.len(), summary.text);
    let (boundary, anchor) = (uuid(&of, "boundary"), uuid(&of, "summary"));
    let preserved = match (kept.first(), kept.last()) {
        (Some(head), Some(tail)) => {
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
        (None, _) | (_, None) => String::new(),
    };
    let Newest { id: leaf, circumstances } = &newest;
    let leaf = encode(leaf);
    let tokens = summary.tokens.0;
    let words = encode(&format!("{LEAD_IN}\n\n{}", summary.text));
    let boundary = format!(
        concat!(
            r#"{{"parentUuid":null,"logicalParentUuid":{},"isSidechain":false,"type":"system","#,
            r#""subtype":"compact_boundary","content":"Conversation compacted","isMeta":false,"#,
            r#""timestamp":{},"uuid":"{}","level":"info","compactMetadata":{{"trigger":"manual","#,
            r#""preTokens":{}{}}}{}}}"#,
        ),
        leaf, time, boundary, tokens, preserved, circumstances,
    ) + "\n"
        + &format!(
            concat!(
                r#"{{"parentUuid":"{}","isSidechain":false,"type":"user","#,
                r#""message":{{"role":"user","content":{}}},"isVisibleInTranscriptOnly":true,"#,
                r#""isCompactSummary":true,"uuid":"{}","timestamp":{}{}}}"#,
            ),
            boundary, words, anchor, time, circumstances,
        )
        + "\n";
    let whole = source.is_empty() || source.read(source.len() - 1..source.len())[..] == *b"\n";
    Ok([if whole { "" } else { "\n" }, &boundary].concat().into_bytes())
}

const LEAD_IN: &str = "This session goes on from a longer conversation. What came before is \
                       summarised here; what follows the summary is its end, word for word.";

/// The newest message, which the summary continues.
struct Newest {
    id: Box<str>,
    /// The members of the message that say where and when, as stored, each preceded by a comma.
    circumstances: String,
}

impl Newest {
    fn from_entry(source: &dyn Source, entry: &Entry) -> Option<Newest> {
        let line = source.at(entry.record.span);
        let record = Document::parse(&line).ok()?.root;
        let is_circumstance = |key: &str, value: &Value<'_>| match key {
            "cwd" | "version" => value.is_text(),
            "gitBranch" | "slug" | "userType" => true,
            _ => false,
        };
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
}
